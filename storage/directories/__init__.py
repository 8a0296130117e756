"""A node's log directories: `meta.properties`, names, checkpoints, logs that are moved between them.

- `log_dirs`: `LogDirectory`, the place to start, and `format_directory`.
- Its parts: `meta_properties` (whose it is), `directory_checkpoints` (the offsets in its four checkpoint files),
  `shutdown_marks` (`.kafka_cleanshutdown`, `.boot-id`), `partition_metadata` (topic ids), `future_logs` (copies).
- `directory_names`: what the names in a directory say.
"""
