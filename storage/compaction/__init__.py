"""Log compaction: which logs need it, which records stay, how a segment is replaced.

- `cleanable_logs`: which log needs cleaning most, and how far it may go.
- `compaction`: `Cleaning`, one round over one log; `cleaning_task`: what it has others do.
- `segment_cleaner`: its reading and copying, for any thread or process.
- `record_filter`: what stays of a batch; by `key_offsets`, `live_offsets` and `cleaned_transactions`.
"""
