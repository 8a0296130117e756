"""Applications of Kafka Streams in streams groups (KIP-1071)."""
