"""pykbroker beside Apache Kafka: the same work, the same client, in turns in one run; ratios, not absolute times."""
