"""One partition's log on disk, in Kafka's own files. Synchronous; touches the world only through `Disk`."""
