"""What a log knows of the producers that write to it: sequences, transactions, snapshots of both."""
