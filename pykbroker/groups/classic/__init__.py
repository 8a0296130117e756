"""Classic groups: a state machine per group, rebalances by JoinGroup and SyncGroup."""
