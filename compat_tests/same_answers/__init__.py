"""The same requests in the same order, field by field: what Apache Kafka answers, pykbroker answers."""
