"""A broker that speaks Apache Kafka's binary protocol, written in Python on Trio."""

__version__ = "0.1.0"
"""The only place where the version stands: packages, clients, metrics and documentation take it from here."""
