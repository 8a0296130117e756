"""One segment: its batches, indexes, verification; and what is decided for a segment at a time, such as retention.

- `segment`: a `.log` file and what stands beside it; `indexes`, `transaction_index`, `leader_epochs` are those files.
- `log_config`: a topic's settings.
- Appending: `validation` (a client's batch), `trusted_batches` (all others), `record_errors`, `transaction_markers`.
- Reading what was there at the start: `verification`, `verified_extents`, `batch_scan`.
- Recovery: `log_evidence` (what may be cut off), `segment_names`, `replacements` (what a crash left of them),
  `rebuilt_transaction_index`.
- `retention`: which segments may go.
"""
