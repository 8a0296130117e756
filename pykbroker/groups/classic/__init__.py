"""Classic groups: one state machine for each group, and rebalances by JoinGroup and SyncGroup.

The modules, in reading order:

- `classic_group`: one group with its states, and the rules that hold between them.
- `classic_group_member`: one member.
- `classic_groups`: the door; SyncGroup, Heartbeat, LeaveGroup and timers.
- `joins`: JoinGroup.
- `rebalance`: the way from one generation to the next.
- `classic_records`: the record of a group.
- `descriptions`: DescribeGroups.
"""
