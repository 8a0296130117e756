"""The share coordinator's rules: what there is of share partitions in one partition of `__share_group_state` (KIP-932).

- `shard`: the state machine. It answers what leaders and the group coordinator ask, and writes it down.
- `batches`: what a write makes of the batches that there were.
- `state`: the state of a share partition, and the table of all.
- `redundant_offsets`: how far the log can be deleted.
- `records`, `requests`, `config`: what is written, what is asked, and by which settings.

Nothing here waits or touches a file or a socket.
"""
