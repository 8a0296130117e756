"""Batches of share partitions, as Apache Kafka's `PersisterStateBatchCombiner` combines them."""
