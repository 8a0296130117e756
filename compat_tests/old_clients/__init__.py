"""Clients as old as those that Apache Kafka 4 still serves, on both brokers.

kafka-python 2.0.2 (2020), librdkafka 1.9.2 (2022) with its Python client, and Kafka's own Java client 2.1.1 (2019), the
oldest that Kafka 4 names as supported (KIP-896). Each is another version of what other tests use, so each runs in a
process of its own: `client_program` for those in Python, a JVM for Java's.
"""
