"""The quorum wing keeps the cluster's metadata: the raft driver, the metadata log and its snapshots, the publisher, and
the active controller. The modules, in reading order:

- `raft_driver`: carries out what raft asks of a node.
- `raft_channel`: raft's requests to other nodes.
- `metadata_log`: `__cluster_metadata-0` on disk.
- `metadata_snapshots`: its snapshots, as files.
- `snapshot_format`: a snapshot as bytes.
- `encoded_records`: records as bytes, before they have an offset.
- `metadata_publisher`: the image of what is committed, and who follows it.
- `image_conditions`: waits until the image has something.
- `snapshot_generator`: snapshots are written when they are due.
- `controller_driver`: gives the controller's rules the log, time and callers.
- `controller_channel`: the way to the active controller, here or elsewhere.
- `forwarding`: a client's request in an Envelope.
- `broker_watch`: a broker whose process is gone is fenced at once.
- `quorum_description`: DescribeQuorum.
- `formatting`: log directories are formatted.
- `bootstrap_checkpoint`: the first records of a new cluster.
- `initial_controllers`: the first voters of a dynamic quorum.
- `foreign_peers`: members of the quorum that are of another cluster.
- `metadata_remedy`: what to do about a damaged metadata log.
"""
