"""A node's log directories: `meta.properties`, names, checkpoints, logs that are moved between them."""
