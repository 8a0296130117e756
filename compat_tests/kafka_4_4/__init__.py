"""What is new in Kafka 4.4, asked of Kafka 4.4.0 itself: its answers are recorded as those of 4.3.1 are elsewhere."""
