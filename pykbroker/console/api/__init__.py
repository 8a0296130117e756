"""The console's endpoints, one module for each subject; `pykbroker.console.endpoints` is their table.

- `overview`, `throughput`: the cluster at a glance.
- `topics`, `topic`: a page of the list, and a page of one topic's partitions.
- `topic_changes`, `topic_configs`: create, delete, grow, purge and configure.
- `records`, `record`: a page of records, and one record whole or as a file.
- `record_search`, `record_tail`: records by key and records as they come, as live events.
- `record_production`: one record from a form.
- `record_rows`, `record_spans`, `topic_rows`, `partition_offsets`, `replica_sizes`, `pages`: what they share.

Functions get `Asking` and `Arguments`. They ask the broker with `pykbroker.client` alone, every wait with a limit, and
compute over many entries in `asking.threads`.
"""
