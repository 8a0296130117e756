"""The group coordinator's rules: classic groups (KIP-62, 134, 345, 394, 559, 800, 814) and committed offsets.

Pure: no Trio, no clock, no file. `shard.GroupShard` is the door; one shard stands for one partition of
`__consumer_offsets`, as in Kafka's `GroupCoordinatorShard`. It is driven by
`pykbroker.server.coordinators.coordinator_driver`.
"""
