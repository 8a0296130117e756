"""The things that the matrix asks for, and what stands in no answer for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compat_tests.same_answers.interview import plain
from pykbroker.protocol.schema import Message

TOPIC, VICTIM, MISSING, AUTO = "matrix-topic", "matrix-victim", "matrix-missing", "matrix-auto-"
GROUP, MISSING_GROUP, CONSUMER_GROUP = "matrix-group", "matrix-no-group", "matrix-consumers"
TRANSACTIONAL_ID = "matrix-transactions"
OWNER = "matrix-owner"

NOT_COMPARED = {
    "base_offset",
    "host",
    "port",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "partition_size",
    "offset_lag",
    "high_watermark",
    "last_stable_offset",
    "log_end_offset",
    "leader_epoch",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "current_leader_epoch",
    "replica_directory_id",
    "producer_epoch",
    "broker_epoch",
    "member_id",
    "finalized_features_epoch",
    "response_data",
    "config_type",
    "documentation",
    "leader",
    "end_offset",
    "epoch",
    "token_id",
    "hmac",
    "issue_timestamp",
    "issue_timestamp_ms",
    "expiry_timestamp",
    "expiry_timestamp_ms",
    "max_timestamp",
    "max_timestamp_ms",
}
"""How far logs are, where they lie, who the leader is, and what tokens are like."""


@dataclass(slots=True)
class Scene:
    """The topics' ids differ on every broker. auto: a name of a topic that nobody has asked for before."""

    topic_id: bytes
    victim_id: bytes
    auto: str = ""
    token_hmac: bytes = b""
    """Of the token that is there from the beginning."""


Ask = Callable[[Scene], Message]


@dataclass(frozen=True, slots=True)
class Question:
    """A request in some versions. versions: the oldest and the newest one where none are named."""

    name: str
    ask: Ask
    versions: tuple[int, ...] = ()
    repairs: bool = False
    """It deletes the victim where that is allowed."""
    keeps_members: bool = False
    """It needs the member of the consumer group to be alive."""


@dataclass(slots=True)
class Catalogue:
    questions: list[Question] = field(default_factory=list)

    def asks(self, name: str, *versions: int, **flags: bool) -> Callable[[Ask], Ask]:
        def note(ask: Ask) -> Ask:
            self.questions.append(Question(name, ask, versions, **flags))
            return ask

        return note


def comparable(answer: Any, scene: Scene) -> Any:
    """The answer without what cannot be the same on two brokers."""
    return _without(plain(answer), scene)


def _without(value: Any, scene: Scene) -> Any:
    if isinstance(value, dict):
        return {
            name: f"a {name}" if name in NOT_COMPARED and each is not None else _without(each, scene)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_without(each, scene) for each in value]
    if isinstance(value, str) and scene.auto and value == scene.auto:
        return "a name"
    return value
