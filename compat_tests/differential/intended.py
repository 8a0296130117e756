"""Differences that are meant: each has a name and a reason, and says which cases it covers (docs/differential.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.api_keys import ApiKey

from .asking import WAITS
from .comparison import NOTHING, FieldDifference
from .sequences import CONTROLLER, Step

_PRODUCE_BY_ID: Final = 13

Covers = Callable[[Step, FieldDifference], bool]


@dataclass(frozen=True, slots=True)
class Intended:
    """ends: what follows in the sequence is not compared, since the brokers have other states from there on."""

    name: str
    reason: str
    covers: Covers
    ends: bool = False


def _is_wording(_: Step, found: FieldDifference) -> bool:
    field = found.path.rpartition(".")[2]
    texts = (found.theirs, found.ours)
    return field.endswith(("error_message", "documentation")) and all(
        isinstance(each, str) and each != NOTHING for each in texts
    )


def _is_features(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.API_VERSIONS and found.path.split(".")[0] in (
        "api_keys",
        "supported_features",
        "finalized_features",
    )


def _is_answered_by_controllers(step: Step, _: FieldDifference) -> bool:
    of_controllers = (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_DELEGATION_TOKEN)
    return step.listener == CONTROLLER and step.api_key in of_controllers


def _is_unreadable_subscription(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.JOIN_GROUP and (found.theirs, found.ours) == (
        "UNKNOWN_SERVER_ERROR",
        "INCONSISTENT_GROUP_PROTOCOL",
    )


def _is_strict_reading(step: Step, found: FieldDifference) -> bool:
    if step.api_key not in (ApiKey.FETCH, ApiKey.LIST_OFFSETS):
        return False
    tree = step.tree
    return tree.get("isolation_level", 0) not in (0, 1) or tree.get("max_bytes", 0) < 0


def _is_without_records(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.PRODUCE and found.theirs == WAITS


def _is_named_twice(step: Step, found: FieldDifference) -> bool:
    if step.api_key != ApiKey.PRODUCE:
        return False
    named = [
        (repr(topic.get("topic_id" if step.version >= _PRODUCE_BY_ID else "name")), data["index"])
        for topic in step.tree["topic_data"]
        for data in topic["partition_data"]
    ]
    return len(set(named)) < len(named)


INTENDED: Final[tuple[Intended, ...]] = (
    Intended("wording", "Texts of errors are the project's own: one is there where Kafka has one.", _is_wording),
    Intended(
        "features",
        "ApiVersions tells of the APIs and features that are offered; metadata.version has one level.",
        _is_features,
    ),
    Intended(
        "answered by controllers",
        "Kafka offers these on controllers' listeners, and says UNKNOWN_SERVER_ERROR there.",
        _is_answered_by_controllers,
    ),
    Intended(
        "unreadable subscription",
        "Kafka says UNKNOWN_SERVER_ERROR to a classic member whose subscription cannot be read in a group of the "
        "consumer protocol.",
        _is_unreadable_subscription,
    ),
    Intended(
        "unknown isolation",
        "An unknown isolation level and a negative max_bytes are INVALID_REQUEST: Kafka says UNKNOWN_SERVER_ERROR to "
        "the first, and takes the second.",
        _is_strict_reading,
        ends=True,
    ),
    Intended(
        "no records",
        "A Produce without records (null) is INVALID_RECORD; Kafka fails within, and never answers.",
        _is_without_records,
        ends=True,
    ),
    Intended(
        "partition twice",
        "A partition that a Produce names twice is INVALID_REQUEST both times; Kafka appends one batch, and drops the "
        "other.",
        _is_named_twice,
        ends=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one case. open: the differences that nobody means. meant: those that are meant; ends: as in `Intended`."""

    open: list[FieldDifference]
    meant: list[Intended]

    @property
    def ends(self) -> bool:
        return bool(self.open) or any(each.ends for each in self.meant)


def judged(step: Step, found: Sequence[FieldDifference]) -> Verdict:
    verdict = Verdict([], [])
    for difference in found:
        meant = next((each for each in INTENDED if each.covers(step, difference)), None)
        if meant is None:
            verdict.open.append(difference)
        elif meant not in verdict.meant:
            verdict.meant.append(meant)
    return verdict
