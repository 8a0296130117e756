"""Spark through PySpark and its stock Kafka connector, unchanged, against pykbroker."""
