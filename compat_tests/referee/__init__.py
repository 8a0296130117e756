"""Apache Kafka's half of every comparison, kept in files: what it answered, and to which state of the scenario.

A scenario with the fixture `kind` (or `cluster_kind`) is written once and holds for both brokers. `make test` runs it
on pykbroker alone, and compares the answers with those that `compat_tests/recorded/` holds of Apache Kafka. `make
record` asks Apache Kafka what is stale or missing there, `make referee` asks it everything again and compares.
"""
