"""One partition's log: `Log`, its segments, truncation, recovery, reads, searches by time.

- `log`: `Log`, through which everybody else works with a log.
- Its parts, which nobody but `Log` has: `log_state` (offsets), `log_segments` (which segments there are), `log_reads`
  (finding and reading), `log_names` (names that are not durable yet), `segment_replacement`.
- `recovery`: opening a log; `recovery_progress`, `transaction_index_recovery`.
- `truncation`: taking records off the end, in steps.
- `timestamp_search`: offsets by time, in steps; `timestamp_confirmation`: no wrong time index makes retention delete.
- `log_copy`: a log on its way to another directory.
"""
