"""Groups of the new protocols: what consumer, share and streams groups have in common. Kafka's word is `ModernGroup`.

Members of such a group send heartbeats, and the coordinator decides what each of them should have. The group has an
epoch, the target assignment is computed for an epoch, and each member catches up with it. A type of group says what its
members have (partitions or tasks), how a member gets there, and what its records are. The modules, in reading order:

- `modern_group`: one group with its epochs, its members and its target assignment.
- `committing_group`: a group whose members commit offsets, and give up what others wait for.
- `modern_member`: one member, as a value.
- `modern_records`: the kinds of records that groups of a type have, and how they are made.
- `modern_replay`: what these records do to the groups of a shard.
- `assignment_tasks`: target assignments that are computed beside the event loop.
- `preparations`: steps of large members that are computed there.
- `target_assignments`: when a target assignment is due, and what becomes of it.
- `membership`: epochs begin, members are forgotten, and have deadlines.
- `heartbeat_rules`: why a heartbeat is refused.
- `descriptions`: what a client is told of a group.
"""
