"""Sequences of requests, as values that JSON can hold.

A request's tree has the fields that are not at their defaults: structs are mappings, and

    "~t1"                      a name of the sequence's own: `~` stands for its prefix
    {"ref": ["member", 2]}     the second member id that answers of this sequence told
    {"hex": "00ff"}            bytes
    {"uuid": "unknown"}        a UUID that nobody has; "none" is Kafka's zero UUID
    {"batches": [{...}, ...]}  record batches: `record_batches` knows the keys
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from compat_tests.referee_versions import newest_of_the_referee
from pykbroker.protocol.api_keys import ApiKey, request_type

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
"""The listeners."""

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One request. connection: steps of one number share a connection of the listener."""

    api_key: int
    version: int
    tree: Tree
    listener: str = BROKER
    connection: int = 0

    def to_json(self) -> list[Any]:
        place = [] if (self.listener, self.connection) == (BROKER, 0) else [self.listener, self.connection]
        return [self.api_key, self.version, self.tree, *place]

    @classmethod
    def from_json(cls, row: list[Any]) -> Step:
        return cls(*row)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Steps that are asked one after the other. name: letters, digits and `-`, unlike that of any other sequence."""

    name: str
    steps: tuple[Step, ...]

    def to_json(self) -> list[Any]:
        return [self.name, [step.to_json() for step in self.steps]]

    @classmethod
    def from_json(cls, row: list[Any]) -> Sequence:
        name, steps = row
        return cls(name, tuple(Step.from_json(each) for each in steps))


def ref(kind: str, number: int = 1) -> Tree:
    return {"ref": [kind, number]}


def hexed(data: bytes) -> Tree:
    return {"hex": data.hex()}


def versions_of(api_key: int) -> range:
    """Return the stable versions of an API's requests that Apache Kafka answers."""
    versions = request_type(api_key).__schema__.stable_versions
    newest = newest_of_the_referee(api_key, versions.high)
    return range(3 if api_key == ApiKey.PRODUCE else versions.low, newest + 1)
