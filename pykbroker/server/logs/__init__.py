"""The logs of a node in their directories: loading, flushes, truncations, retention, the log cleaner."""
