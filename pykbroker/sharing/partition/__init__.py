"""A share partition at its leader: which records of one partition a share group has, and who has them (KIP-932).

- `values`: states, limits, and what goes in and out.
- `in_flight`: records that were handed out together, by runs of offsets that are in one state.
- `share_partition`: the rules: acquire, acknowledge, release, expire, move the start.
- `acknowledgements`: what a request may say of a partition's records.
- `byte_shares`: how a request's bytes are shared among its partitions, and which of them comes first.

Pure: no clock, no log, no persister. The driver is `server.sharing`.
"""
