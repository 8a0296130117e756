"""The denials of late: who was not allowed to do what, for who asks why a client gets nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType

MOST_DENIALS: Final = 1_000
_CHARACTERS: Final = 300


@dataclass(slots=True)
class Denial:
    """A denial and how often it was repeated. timestamp_ms: of the last time, by the wall clock."""

    principal: str
    address: str
    client_id: str
    operation: Operation
    resource_type: ResourceType
    name: str
    timestamp_ms: int = 0
    count: int = 0


class Denials:
    """The denials of a node, the newest of each kind."""

    def __init__(self, most: int = MOST_DENIALS) -> None:
        self._most = most
        self._denials: dict[tuple[str, str, str, int, int, str], Denial] = {}

    def note(
        self,
        principal: str,
        address: str,
        client_id: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        timestamp_ms: int,
    ) -> None:
        if max(len(principal), len(client_id), len(name)) > _CHARACTERS:
            return  # nobody fills the memory with names that nothing has
        key = principal, address, client_id, operation._value_, resource_type._value_, name
        denial = self._denials.pop(key, None)
        if denial is None:
            denial = Denial(principal, address, client_id, operation, resource_type, name)
        denial.timestamp_ms, denial.count = timestamp_ms, denial.count + 1
        self._denials[key] = denial
        if len(self._denials) > self._most:
            del self._denials[next(iter(self._denials))]

    def __iter__(self) -> Iterator[Denial]:
        """Iterate over the denials, the newest first."""
        return iter(list(reversed(self._denials.values())))
