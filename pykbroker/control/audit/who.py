"""A client as far as the wire tells: a host and a client id.

Clients of one host that share a client id are one here. So nothing is found that only one of them did not do.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

_DEFAULT_IDS: Final = frozenset({None, "", "rdkafka", "sarama", "kgo", "pykbroker-testing"})


class Who(NamedTuple):
    host: str
    client_id: str | None

    def __str__(self) -> str:
        return f"client {self.client_id or 'without an id'} of {self.host}"

    @property
    def is_named(self) -> bool:
        """Tell whether somebody has chosen the client id: a library's own is shared by clients that know nothing of
        each other.
        """
        return self.client_id not in _DEFAULT_IDS and not (self.client_id or "").startswith("kafka-python-")


class Place(NamedTuple):
    """A partition: its topic's id, which a topic that is made again does not share, and its name."""

    topic_id: bytes
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def of_client_at(who: Who, place: Place) -> dict[str, Any]:
    """Return both as facts of a finding."""
    return {"host": who.host, "client_id": who.client_id, "topic": place.topic, "partition": place.partition}
