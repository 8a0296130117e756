"""What a voter must never forget: its epoch, whom it voted for, whom it follows. The file `quorum-state`.

The text is Kafka's own (`QuorumStateData`, version 0, the form of a quorum with static voters; KIP-595). Whoever
stores it must make it durable before any message leaves that depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any


class InvalidQuorumState(ValueError):
    """A `quorum-state` file that can't be read; its text is one line for an operator."""


@dataclass(frozen=True, slots=True)
class ElectionState:
    """epoch: 0 before the first election. leader_id and voted_id: None where unknown or not given."""

    epoch: int
    leader_id: int | None = None
    voted_id: int | None = None

    def to_json(self, voter_ids: Collection[int]) -> bytes:
        data = {
            "clusterId": "",
            "leaderId": -1 if self.leader_id is None else self.leader_id,
            "leaderEpoch": self.epoch,
            "votedId": -1 if self.voted_id is None else self.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in sorted(voter_ids)],
            "data_version": 0,
        }
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> ElectionState:
        """Reads both forms, of static and of dynamic voters (`data_version` 0 and 1). Raises InvalidQuorumState."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InvalidQuorumState(f"quorum-state is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise InvalidQuorumState("quorum-state is not a JSON object")
        if data.get("data_version") not in (0, 1):
            raise InvalidQuorumState(f"quorum-state has data_version {data.get('data_version')!r}; known are 0 and 1")
        epoch = _integer(data, "leaderEpoch")
        if epoch < 0:
            raise InvalidQuorumState(f"quorum-state has a negative leaderEpoch: {epoch}")
        return cls(epoch, _node_id(data, "leaderId"), _node_id(data, "votedId"))


def _integer(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidQuorumState(f"quorum-state lacks the number {name}")
    return value


def _node_id(data: dict[str, Any], name: str) -> int | None:
    node_id = _integer(data, name)
    return None if node_id < 0 else node_id
