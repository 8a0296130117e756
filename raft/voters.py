"""The voters of a quorum: as `controller.quorum.voters` names them (KIP-595), or a VotersRecord does (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pykbroker.protocol.messages.control_records import Endpoint as RecordEndpoint
from pykbroker.protocol.messages.control_records import KRaftVersionFeature, VotersRecord, VotersRecordVoter


class InvalidVoters(ValueError):
    """A voter set that can't be; its text names the part at fault."""


NO_DIRECTORY = bytes(16)
"""The directory id of a replica that told none, as in a quorum of static voters."""


KRAFT_VERSIONS = (0, 1)
"""The levels of `kraft.version` that this implementation supports."""


class ReplicaKey(NamedTuple):
    """A replica that votes or fetches: a node with one directory. A node that lost its disk is another replica."""

    node_id: int
    directory_id: bytes = NO_DIRECTORY


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a node on one listener. name: of that listener."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter.

    host and port: the address by which this node reaches it. endpoints: all of its own addresses, by listener.
    kraft_versions: the lowest and the highest `kraft.version` that it supports.
    """

    node_id: int
    host: str
    port: int
    directory_id: bytes = NO_DIRECTORY
    endpoints: tuple[Endpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, 0)

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    def matches(self, key: ReplicaKey) -> bool:
        """A voter of a static quorum has no directory id, and any directory will do."""
        return self.node_id == key.node_id and self.directory_id in (NO_DIRECTORY, key.directory_id)

    def endpoint(self, listener_name: str) -> Endpoint:
        """Return the address on that listener, or else the one by which this node reaches the voter."""
        named = [each for each in self.endpoints if each.name == listener_name]
        return named[0] if named else Endpoint(listener_name, self.host, self.port)


class VoterSet:
    """The voters by node id. A majority of them elects and commits.

    Never empty, but for `VoterSet.unknown()`: of a node that has still to learn who votes.
    """

    def __init__(self, voters: Iterable[Voter]) -> None:
        self._by_id: dict[int, Voter] = {}
        for voter in voters:
            if voter.node_id in self._by_id:
                raise InvalidVoters(f"node id {voter.node_id} is named twice")
            self._by_id[voter.node_id] = voter
        if not self._by_id:
            raise InvalidVoters("a quorum needs at least one voter")

    @classmethod
    def unknown(cls) -> VoterSet:
        voters = cls.__new__(cls)
        voters._by_id = {}
        return voters

    @classmethod
    def from_record(cls, record: VotersRecord, listener_name: str) -> VoterSet:
        """Read the voters of a record. listener_name: that on which this node talks to voters. Raises InvalidVoters."""
        return cls(_voter(each, listener_name) for each in record.voters)

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            voters=[
                VotersRecordVoter(
                    voter_id=voter.node_id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[
                        RecordEndpoint(name=each.name, host=each.host, port=each.port) for each in voter.endpoints
                    ],
                    kraft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions[0], max_supported_version=voter.kraft_versions[1]
                    ),
                )
                for voter in self
            ]
        )

    def get(self, node_id: int | None) -> Voter | None:
        return None if node_id is None else self._by_id.get(node_id)

    def has(self, key: ReplicaKey) -> bool:
        """Tell whether that replica votes. A directory id that one side does not know is taken for the same."""
        voter = self._by_id.get(key.node_id)
        return voter is not None and voter.matches(key)

    def is_only(self, key: ReplicaKey) -> bool:
        return len(self._by_id) == 1 and self.has(key)

    def without(self, node_id: int) -> VoterSet:
        """Return the set without that voter, which may leave it empty."""
        voters = VoterSet.unknown()
        voters._by_id = {each.node_id: each for each in self if each.node_id != node_id}
        return voters

    def with_voter(self, voter: Voter) -> VoterSet:
        """Return the set with this voter added, or in the place of the one with its id."""
        voters = VoterSet.unknown()
        voters._by_id = {**self._by_id, voter.node_id: voter}
        return voters

    def __repr__(self) -> str:
        return f"VoterSet({sorted(self._by_id)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._by_id == other._by_id

    __hash__ = None  # type: ignore[assignment]

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


def _voter(described: VotersRecordVoter, listener_name: str) -> Voter:
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in described.endpoints)
    if not endpoints:
        raise InvalidVoters(f"voter {described.voter_id} has no endpoint")
    reached = next((each for each in endpoints if each.name == listener_name), endpoints[0])
    feature = described.kraft_version_feature
    versions = (feature.min_supported_version, feature.max_supported_version)
    return Voter(described.voter_id, reached.host, reached.port, described.voter_directory_id, endpoints, versions)
