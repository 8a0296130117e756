"""What groups of every kind are made of: records, subscriptions, deadlines, refusals."""
