"""The group coordinator's rules: classic groups (KIP-62, 134, 345, 394, 559, 800, 814), consumer groups (KIP-848) and
committed offsets.

The rules are pure: they know no Trio, no clock and no file. `shard.GroupShard` is the door; one shard stands for one
partition of `__consumer_offsets`, as in Kafka's `GroupCoordinatorShard`. The shard is driven by
`pykbroker.server.coordinators.coordinator_driver`.
"""
