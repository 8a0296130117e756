"""Rights: what Apache Kafka lets each client do and what it refuses, pykbroker does as well."""
