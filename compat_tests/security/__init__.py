"""Authentication and authorization: what Apache Kafka lets in and what it refuses, pykbroker does as well."""
