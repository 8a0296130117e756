"""A broker that speaks Apache Kafka's binary protocol, written in Python on Trio."""
