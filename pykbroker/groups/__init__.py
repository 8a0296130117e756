"""The group coordinator's rules: classic groups (KIP-62, 134, 345, 394, 559, 800, 814), consumer groups (KIP-848),
share groups (KIP-932), streams groups (KIP-1071) and committed offsets.

The rules are pure: they know no Trio, no clock and no file. `shard.GroupShard` is the door; one shard stands for one
partition of `__consumer_offsets`, as in Kafka's `GroupCoordinatorShard`. The shard is driven by
`pykbroker.server.coordinators.coordinator_driver`. The parts, in reading order:

- `shard`: the door; which package a request, a record or a timeout is for.
- `common`: what all groups share, such as records, steps, deadlines and the view of topics.
- `classic`: groups that rebalance by JoinGroup and SyncGroup.
- `modern`: what the groups have in common whose coordinator decides what each member gets.
- `consumer`: groups whose coordinator assigns the partitions (KIP-848).
- `share`: groups whose members share partitions (KIP-932).
- `streams`: groups of Kafka Streams, whose coordinator assigns the tasks (KIP-1071).
- `assignors`: the assignors that the coordinator has for consumer groups.
- `offsets`: committed offsets, also those of transactions.
- `deletions`: the deletion of groups on request, in several steps.
- `listing`: ListGroups.

`tests/groups/transcripts` hold what Apache Kafka answers, and writes, in the scenarios of `tests/groups/scenarios.py`;
the rules alone and a whole node are checked against them. `python -m tests.groups.record_transcripts` records them.
"""
