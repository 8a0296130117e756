"""A cluster that runs already, wherever it is: Apache Kafka, or a broker of pykbroker in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .threaded_kafka import ThreadedKafka


class ExternalKafka(ThreadedKafka):
    """A running cluster. client_properties: those of Java's clients, to log in."""

    def __init__(self, bootstrap_servers: str, client_properties: Mapping[str, str] | None = None) -> None:
        super().__init__(f"Kafka at {bootstrap_servers}", client_properties)
        self._bootstrap_servers: Final = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        return self._bootstrap_servers
