"""Share groups at the leaders of partitions (KIP-932): who has which records, and requests that wait for some.

- `share_partitions`: the share partitions and share sessions of a node, as handlers see them.
- `led_share_partition`: one share partition at its leader: loaded, persisted, told of what changes.
- `start_offsets`: where a group begins that has no start offset yet.
- `shared_reads`: what a share partition hands out, read from its log.
- `dead_letter_queues`: letters about what was rejected, on their way into another topic.
- `share_traffic`: counts of what they did, for metrics.
- `delayed_share_fetch`: a ShareFetch that waits until there is something to hand out.

The rules are in `pykbroker.sharing`; what was acknowledged is kept by a persister behind `sharing.persister`.
"""
