"""Hostile and malformed input over plain sockets: what Apache Kafka answers, and where pykbroker is stricter."""
