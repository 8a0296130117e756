"""The voters of a quorum, as `controller.quorum.voters` names them (KIP-595): `id@host:port,…`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


class InvalidVoters(ValueError):
    """A voter set that can't be; its text names the part at fault."""


@dataclass(frozen=True, slots=True)
class Voter:
    node_id: int
    host: str
    port: int


class VoterSet:
    """The voters by node id; never empty. A majority of them elects and commits."""

    def __init__(self, voters: Iterable[Voter]) -> None:
        self._by_id: dict[int, Voter] = {}
        for voter in voters:
            if voter.node_id in self._by_id:
                raise InvalidVoters(f"node id {voter.node_id} is named twice")
            self._by_id[voter.node_id] = voter
        if not self._by_id:
            raise InvalidVoters("a quorum needs at least one voter")

    @classmethod
    def parse(cls, entries: Iterable[str]) -> VoterSet:
        """entries: the elements of the list, each `id@host:port`. Raises InvalidVoters."""
        return cls(_parse_voter(entry) for entry in entries)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._by_id

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ids(self) -> list[int]:
        return sorted(self._by_id)

    @property
    def majority(self) -> int:
        return len(self._by_id) // 2 + 1


def _parse_voter(entry: str) -> Voter:
    node_id, at, address = entry.strip().partition("@")
    host, colon, port = address.rpartition(":")
    if not at or not colon or not host:
        raise InvalidVoters(f"{entry!r} is not of the form id@host:port")
    if not (node_id.isascii() and node_id.isdigit()):
        raise InvalidVoters(f"{entry!r} has no node id of 0 or more before the @")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise InvalidVoters(f"{entry!r} has no port of 0 to 65535")
    return Voter(int(node_id), host.removeprefix("[").removesuffix("]"), int(port))
