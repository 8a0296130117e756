"""The replicas of a node: `ReplicaManager`, fetchers from leaders, waits of fetches, moves between directories.

The modules, in reading order:

- `replica_manager`: the door; follows the metadata.
- `hosted_partitions`: finds a partition, or says why it is not here.
- `storage_failures`: partitions whose files fail go out of use.
- `record_appends`: appends to partitions that are led here.
- `partition_reads`: the reads of one Fetch request.
- `delayed_operation`: the wait of a request until something changes.
- `delayed_produce`: Produce waits for the disk and for in-sync replicas.
- `delayed_fetch`: Fetch waits until there is enough.
- `fetch_waits`: a bound on what waiting fetches hold together.
- `fetch_sightings`: which consumer fetches what, and since when.
- `replica_selector`: consumers are referred to closer replicas (KIP-392).
- `replica_fetcher`: copies what other brokers lead.
- `node_replication`: the fetchers, the changes of the ISR, and the look for laggards.
- `alter_partition`: the controller is asked to change an ISR.
- `image_brokers`: what partitions know of the cluster's brokers.
- `replication_quotas`: the two rates of replication (KIP-73).
- `log_moves`: replicas move between log directories (KIP-113).
- `directory_assignments`: the controller is told where replicas lie (KIP-858).
"""
