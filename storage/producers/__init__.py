"""The state of the producers that write to a log: sequences, transactions, snapshots of both."""
