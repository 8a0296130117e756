"""The election state of a voter, which it must never forget: epoch, vote and leader. It is the file `quorum-state`.

The text is Kafka's own (`QuorumStateData`): version 0 for a quorum of static voters (KIP-595), version 1 where the
voters are in the log (KIP-853). Whoever stores it must make it durable before any message leaves that depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pykbroker.protocol.uuids import uuid_from_text, uuid_to_text

from .voters import NO_DIRECTORY


class InvalidQuorumState(ValueError):
    """A `quorum-state` file that can't be read; its text is one line for an operator."""


@dataclass(frozen=True, slots=True)
class ElectionState:
    """The epoch, leader and vote of a voter.

    epoch: 0 before the first election. leader_id and voted_id: None where unknown or not given.
    """

    epoch: int
    leader_id: int | None = None
    voted_id: int | None = None
    voted_directory_id: bytes = NO_DIRECTORY

    def to_json(self, voter_ids: Collection[int] | None) -> bytes:
        """Return the text of `quorum-state`.

        voter_ids: the static voters; None where the voters are in the log (`kraft.version` 1).
        """
        data: dict[str, Any] = {
            "clusterId": "",
            "leaderId": -1 if self.leader_id is None else self.leader_id,
            "leaderEpoch": self.epoch,
            "votedId": -1 if self.voted_id is None else self.voted_id,
        }
        if voter_ids is None:
            del data["clusterId"]
            data |= {"votedDirectoryId": uuid_to_text(self.voted_directory_id), "data_version": 1}
        else:
            voters = [{"voterId": voter_id} for voter_id in sorted(voter_ids)]
            data |= {"appliedOffset": 0, "currentVoters": voters, "data_version": 0}
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> ElectionState:
        """Read both forms, of static and of dynamic voters (`data_version` 0 and 1). Raises InvalidQuorumState."""
        data = _parse(text)
        epoch = _integer(data, "leaderEpoch")
        if epoch < 0:
            raise InvalidQuorumState(f"quorum-state has a negative leaderEpoch: {epoch}")
        if epoch >= 1 << 31:
            raise InvalidQuorumState(f"quorum-state has a leaderEpoch that is no int32: {epoch}")
        return cls(epoch, _node_id(data, "leaderId"), _node_id(data, "votedId"), _directory_id(data))


def stored_voters(text: bytes) -> list[int] | None:
    """The node ids that a file of a quorum with static voters names; None in the other form, which leaves them to the
    log. Raises InvalidQuorumState.
    """
    voters = _parse(text).get("currentVoters")
    if not isinstance(voters, list):
        return None
    return sorted(_integer(voter if isinstance(voter, dict) else {}, "voterId") for voter in voters)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidQuorumState(f"quorum-state is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidQuorumState("quorum-state is not a JSON object")
    if data.get("data_version") not in (0, 1):
        raise InvalidQuorumState(f"quorum-state has data_version {data.get('data_version')!r}; known are 0 and 1")
    return data


def _integer(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidQuorumState(f"quorum-state lacks the number {name}")
    return value


def _node_id(data: dict[str, Any], name: str) -> int | None:
    node_id = _integer(data, name)
    return None if node_id < 0 else node_id


def _directory_id(data: dict[str, Any]) -> bytes:
    text = data.get("votedDirectoryId")
    if text is None:
        return NO_DIRECTORY
    try:
        return uuid_from_text(str(text))
    except ValueError as error:
        raise InvalidQuorumState(f"quorum-state has a votedDirectoryId that is none: {error}") from None
