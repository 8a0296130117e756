"""Placeholders stand for values that a broker draws, or that say where it is: `<member 1>`, `<topic id 2>`.

The same value has the same placeholder everywhere in one run; numbers are given as values come.
"""

from __future__ import annotations

from typing import Final

NODE, ADDRESS, MEMBER, TOPIC_ID, CLUSTER, PRODUCER, DIRECTORY = (
    "node",
    "address",
    "member",
    "topic id",
    "cluster",
    "producer",
    "directory",
)
KINDS: Final = {
    "node_id": NODE,
    "broker_id": NODE,
    "leader_id": NODE,
    "controller_id": NODE,
    "replica_id": NODE,
    "preferred_read_replica": NODE,
    "replica_nodes": NODE,
    "isr_nodes": NODE,
    "offline_replicas": NODE,
    "eligible_leader_replicas": NODE,
    "last_known_elr": NODE,
    "broker_ids": NODE,
    "host": ADDRESS,
    "port": ADDRESS,
    "client_host": ADDRESS,
    "member_id": MEMBER,
    "leader": MEMBER,
    "topic_id": TOPIC_ID,
    "cluster_id": CLUSTER,
    "producer_id": PRODUCER,
    "log_dir": DIRECTORY,
}
"""By the name of the field."""

_NOBODY: Final = (-1, None, "", bytes(16))
"""No value at all, which is told as it is."""


class Placeholders:
    """Those of one run. topic_names: by topic id, as far as answers have told them."""

    def __init__(self) -> None:
        self.topic_names: dict[bytes, str] = {}
        self._given: dict[tuple[str, object], str] = {}
        self._counts: dict[str, int] = {}

    def of(self, kind: str, value: object) -> object:
        if value in _NOBODY:
            return None
        if (kind, value) not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._given[kind, value] = f"<{kind} {self._counts[kind]}>"
        return self._given[kind, value]
