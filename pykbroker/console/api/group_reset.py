"""Other offsets for a group: first a plan that changes nothing, then exactly this plan is committed.

Offsets outside of a log become the nearest inside, as Kafka's `kafka-consumer-groups --reset-offsets` has it. A group
that has members keeps its own offsets: they would be committed over at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import BadInput, KafkaError
from pykbroker.client.group_offsets import commit_offsets, fetch_offsets
from pykbroker.client.groups import describe_group
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .group import group_id
from .group_lags import Committed, offsets_at
from .partition_offsets import Found
from .topic_rows import metadata_of

PLACES: Final = ("earliest", "latest", "offset", "time", "shift")
MOST_PARTITIONS: Final = 10_000
_MOST: Final = 2**63 - 1
_INACTIVE: Final = ("Empty", "Dead")


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A partition. now: the committed offset, None for none; new: None where there can be none, with Kafka's reason."""

    topic: str
    partition: int
    now: int | None
    new: int | None
    error: str | None


async def plan(asking: Asking, given: Arguments) -> Sequence[PlanRow]:
    """Return what a reset would commit. Raises BadInput, KafkaError, ClientError."""
    name, place = group_id(given), given.one_of("to", PLACES)
    value = given.whole("value", least=-_MOST if place == "shift" else 0) if place not in ("earliest", "latest") else 0
    topic = given.text("topic", "", longest=249)
    await _require_no_members(asking, name)
    committed = {at: each.offset for at, each in (await fetch_offsets(asking.cluster, name)).items()}
    partitions = await _partitions(asking, topic, committed)
    if len(partitions) > MOST_PARTITIONS:
        raise BadInput(
            f"these are {len(partitions)} partitions, and {MOST_PARTITIONS} at most go at once: name a topic"
        )
    if place == "time":
        return await _at_time(asking, partitions, committed, value)
    first = await offsets_at(asking.cluster, partitions, EARLIEST_TIMESTAMP)
    end = await offsets_at(asking.cluster, partitions, LATEST_TIMESTAMP)

    def new(at: TopicPartition) -> int:
        wished = {"earliest": 0, "latest": _MOST, "shift": committed.get(at, 0) + value}.get(place, value)
        return min(max(wished, first.offsets[at]), end.offsets[at])

    return [
        PlanRow(at.topic, at.partition, committed.get(at), None, error)
        if (error := _error(at, first, end))
        else PlanRow(at.topic, at.partition, committed.get(at), new(at), None)
        for at in partitions
        if place != "shift" or at in committed
    ]


async def reset(asking: Asking, given: Arguments) -> dict[str, int]:
    """Commit the offsets of a plan: `{"orders-0": "12"}`. Raises BadInput, KafkaError, ClientError."""
    name = group_id(given)
    offsets = dict(_parsed(*each) for each in given.mapping("offsets", most=MOST_PARTITIONS).items())
    if not offsets:
        raise BadInput("'offsets' is empty: there is nothing to reset")
    await _require_no_members(asking, name)
    await commit_offsets(asking.cluster, name, offsets)
    return {"partitions": len(offsets)}


def _parsed(name: str, text: str) -> tuple[TopicPartition, int]:
    topic, _, partition = name.rpartition("-")
    is_number = partition.isdecimal() and partition.isascii() and len(partition) <= 10
    if not topic or len(topic) > 249 or not is_number or int(partition) >= 2**31:
        raise BadInput("the names of 'offsets' are partitions such as orders-0")
    if not text.isdecimal() or not text.isascii() or len(text) > 19 or int(text) > _MOST:
        raise BadInput("the values of 'offsets' are whole numbers as texts")
    return TopicPartition(topic, int(partition)), int(text)


async def _require_no_members(asking: Asking, name: str) -> None:
    """Raises KafkaError for a group with members, ClientError. A group that is not there may be given offsets."""
    try:
        state = (await describe_group(asking.cluster, name)).state
    except KafkaError as error:
        if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if state not in _INACTIVE:
        raise KafkaError(
            ErrorCode.NON_EMPTY_GROUP,
            f"Group '{name}' has members (state {state}): it can be reset when they have left",
        )


async def _partitions(asking: Asking, topic: str, committed: Committed) -> list[TopicPartition]:
    """Return all partitions of the topic, or, without one, those with a committed offset. Raises UnknownTopic."""
    if not topic:
        return sorted(committed)
    _, found = await metadata_of(asking.cluster, topic)
    return sorted(TopicPartition(topic, each.partition_index) for each in found.partitions)


async def _at_time(
    asking: Asking, partitions: Sequence[TopicPartition], committed: Committed, time_ms: int
) -> list[PlanRow]:
    """Return the first offset that is not older; the end of the log where no record is that young."""
    found = await offsets_at(asking.cluster, partitions, time_ms)
    end = await offsets_at(asking.cluster, partitions, LATEST_TIMESTAMP)
    rows = []
    for at in partitions:
        error = _error(at, found, end)
        offset = None if error else found.offsets[at] if found.offsets[at] >= 0 else end.offsets[at]
        rows.append(PlanRow(at.topic, at.partition, committed.get(at), offset, error))
    return rows


def _error(at: TopicPartition, *answers: Found) -> str | None:
    missing = (each.errors.get(at, ErrorCode.UNKNOWN_SERVER_ERROR.name) for each in answers if at not in each.offsets)
    return next(missing, None)
