"""Consumer groups (KIP-848): heartbeats, target assignments, reconciliation, migration from and to classic groups.

The modules, in reading order:

- `consumer_group`: one group with its epochs and states.
- `consumer_group_member`: one member with its states.
- `consumer_groups`: the door, where the rules are put together.
- `heartbeats`: ConsumerGroupHeartbeat.
- `heartbeat_validation`: the rules for the fields of a heartbeat.
- `membership`: members come, are replaced, are fenced and leave.
- `member_progress`: what a request changes in a group and in its member.
- `target_assignment`: when a target assignment is due, and what it is.
- `assignment_tasks`: target assignments that are computed beside the event loop.
- `reconciliation`: one member's next step towards its target.
- `regular_expressions`: subscriptions by regular expression.
- `resolved_regular_expression`: what an expression has matched.
- `classic_protocol_members`: members that speak the classic protocol.
- `embedded_protocol`: the bytes of their subscriptions and assignments.
- `migration`: a group changes its type while members run.
- `consumer_records`: the records of a group.
- `consumer_replay`: what these records do to the groups of a shard.
- `descriptions`: ConsumerGroupDescribe.
"""
