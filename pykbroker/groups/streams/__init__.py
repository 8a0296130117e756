"""Streams groups: the rebalance protocol of Kafka Streams (KIP-1071).

A group has a topology, which its first member brings: subtopologies, each with the topics that it reads and the stores
that it keeps. The coordinator decides how many partitions internal topics need, has missing ones created, and assigns
tasks, one for each subtopology and partition. The parts, in reading order:

- `streams_groups`: the door.
- `streams_group`, `streams_group_member`: the state, and what must hold.
- `tasks`, `topology`: values.
- `heartbeats`, `heartbeat_validation`, `membership`: members join, stay and leave.
- `configured_topology`: internal topics, copartitioning, and what stands in the way.
- `target_assignment`, `assignment_tasks`, `sticky_assignor`, `java_collections`: who should have which task.
- `reconciliation`: one member's next step towards its target.
- `endpoints`: which partitions are at which endpoint, for interactive queries.
- `streams_records`, `streams_replay`: records of `__consumer_offsets`.
- `descriptions`: StreamsGroupDescribe.
- `topology_descriptions`, `description_backoff`: descriptions of topologies, which members bring.
- `task_offsets`: how far members have the state of tasks.
"""
