"""The voters of a quorum, as `controller.quorum.voters` names them (KIP-595)."""

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
