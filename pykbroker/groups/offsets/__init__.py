"""Committed offsets: commits, plain and in transactions, fetches, deletion and expiry.

The modules, in reading order:

- `offsets`: the door; OffsetFetch and OffsetDelete.
- `offset_commits`: OffsetCommit and TxnOffsetCommit.
- `committed_offsets`: the table of committed offsets.
- `pending_offsets`: offsets of transactions that have not ended.
- `all_offsets`: all offsets of a group at one time.
- `offset_expiration`: offsets that are too old go (KIP-211).
- `forgotten_topics`: offsets of deleted topics go.
- `groups_by_topic`: which groups have offsets of a topic.
"""
