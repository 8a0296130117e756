"""Classic groups: one state machine for each group, and rebalances by JoinGroup and SyncGroup."""
