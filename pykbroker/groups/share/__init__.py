"""Share groups at the group coordinator (KIP-932): members, epochs, assignments, and whose state is to be kept.

- `share_group`, `share_group_member`, `state_partitions`: one group, as values and what is derived from them.
- `share_records`, `share_replay`: its records, and what they do.
- `heartbeats`, `share_targets`, `share_assignment_tasks`: members join, are assigned partitions, and leave.
- `state_changes`: which share partitions the share coordinator keeps state of, from initialization to deletion.
- `share_descriptions`: what administrators see.
- `share_groups`: the door to this package.
"""
