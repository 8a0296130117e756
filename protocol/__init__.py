"""Kafka's wire: bytes to typed messages and back. Pure; knows neither sockets nor files."""
