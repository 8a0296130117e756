"""One scenario, two brokers: the same tests, with stock clients, against pykbroker and against Apache Kafka."""
