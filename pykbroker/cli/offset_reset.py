"""The offsets that `--reset-offsets` would give a group: scopes, places, and the plan as a file.

The rules follow `ConsumerGroupCommand` and `OffsetsUtils`. An offset outside of the log becomes the nearest one inside.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import UnknownTopic
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_offsets
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .output import warn

_DURATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class ResetPlace:
    """Exactly one of these is set. Times are milliseconds."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_offset: int | None = None
    shift_by: int | None = None
    to_timestamp_ms: int | None = None
    to_offsets: Mapping[TopicPartition, int] | None = None


def parse_topic_scopes(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """`orders` is the whole topic, `orders:0,2` two partitions of it."""
    scopes: dict[str, list[int] | None] = {}
    for text in texts:
        topic, colon, partitions = text.partition(":")
        if not topic or (colon and not re.fullmatch(r"\d+(,\d+)*", partitions, re.ASCII)):
            raise CommandFailed(f"--topic expects a topic, or topic:0,1,2, not '{text}'")
        if not colon:
            scopes[topic] = None
        else:
            listed = scopes.setdefault(topic, [])
            if listed is not None:
                listed += [int(partition) for partition in partitions.split(",")]
    return scopes


def parse_datetime_ms(text: str) -> int:
    """`YYYY-MM-DDThh:mm:ss.sss`, in UTC unless an offset follows."""
    try:
        if "T" not in text:
            raise ValueError("no time of day")
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandFailed(f"'{text}' is not a date and time like 2024-12-31T23:59:59.000") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """ISO 8601 as Java reads it: `PnDTnHnMnS`."""
    match = _DURATION.fullmatch(text)
    if match is None or text[-1] in "PpTt":
        raise CommandFailed(f"'{text}' is not a duration like P1DT2H30M10S")
    parts = {name: float(match[name] or 0) for name in ("days", "hours", "minutes", "seconds")}
    duration_ms = round(timedelta(**parts).total_seconds() * 1000)
    return -duration_ms if match["sign"] else duration_ms


def read_plan(text: str, groups: list[str]) -> dict[str, dict[TopicPartition, int]]:
    """Lines of `topic,partition,offset` for one group, of `group,topic,partition,offset` for several."""
    plan: dict[str, dict[TopicPartition, int]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not row:
            continue
        cells = [cell.strip() for cell in row]
        if len(cells) == 3 and len(groups) == 1:
            cells = [groups[0], *cells]
        if len(cells) != 4 or not cells[2].isdecimal() or not cells[3].isdecimal():
            raise CommandFailed(f"Line {number} of the file is not [group,]topic,partition,offset: {','.join(row)}")
        plan.setdefault(cells[0], {})[TopicPartition(cells[1], int(cells[2]))] = int(cells[3])
    return plan


def write_plan(plan: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for group, offsets in plan.items():
        for of, offset in sorted(offsets.items()):
            row = [of.topic, of.partition, offset]
            writer.writerow(row if len(plan) == 1 else [group, *row])
    return out.getvalue()


async def partitions_of(cluster: Cluster, scopes: Mapping[str, list[int] | None]) -> list[TopicPartition]:
    """Raises UnknownTopic."""
    found = []
    for topic, listed in scopes.items():
        partitions = (await cluster.topic(topic)).partitions
        missing = [partition for partition in listed or () if partition not in partitions]
        if missing:
            raise UnknownTopic(f"Topic '{topic}' has no partition {missing[0]}")
        found += [TopicPartition(topic, partition) for partition in (partitions if listed is None else listed)]
    return found


async def plan_reset(
    cluster: Cluster,
    place: ResetPlace,
    partitions: list[TopicPartition],
    committed: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """The new offset of each partition."""
    match place:
        case ResetPlace(to_earliest=True):
            return await _at(cluster, partitions, EARLIEST_TIMESTAMP)
        case ResetPlace(to_latest=True):
            return await _at(cluster, partitions, LATEST_TIMESTAMP)
        case ResetPlace(to_current=True):
            return {**await _at(cluster, partitions, LATEST_TIMESTAMP), **_only(committed, partitions)}
        case ResetPlace(to_timestamp_ms=int(timestamp)):
            return await _at(cluster, partitions, timestamp)
        case ResetPlace(to_offset=int(offset)):
            return await _inside_log(cluster, dict.fromkeys(partitions, offset))
        case ResetPlace(shift_by=int(distance)):
            for of in partitions:
                if of not in committed:
                    raise CommandFailed(f"Cannot shift offset for partition {of}: there is no current committed offset")
            return await _inside_log(cluster, {of: committed[of] + distance for of in partitions})
        case ResetPlace(to_offsets=Mapping() as offsets):
            return await _inside_log(cluster, dict(offsets))
    raise CommandFailed("--reset-offsets needs one place to reset to")


def _only(offsets: Mapping[TopicPartition, int], partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    return {of: offsets[of] for of in partitions if of in offsets}


async def _at(cluster: Cluster, partitions: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
    """The end of the log where no record is that young."""
    found = await list_offsets(cluster, dict.fromkeys(partitions, timestamp))
    ends = await list_offsets(cluster, {of: LATEST_TIMESTAMP for of, answer in found.items() if answer.offset < 0})
    return {of: (ends[of] if answer.offset < 0 else answer).offset for of, answer in found.items()}


async def _inside_log(cluster: Cluster, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    earliest = await _at(cluster, list(offsets), EARLIEST_TIMESTAMP)
    latest = await _at(cluster, list(offsets), LATEST_TIMESTAMP)
    inside: dict[TopicPartition, int] = {}
    for of, offset in offsets.items():
        inside[of] = min(max(offset, earliest[of]), latest[of])
        if offset > latest[of]:
            warn(f"New offset ({offset}) is higher than latest offset for topic partition {of}. Set to {latest[of]}.")
        elif offset < earliest[of]:
            warn(
                f"New offset ({offset}) is lower than earliest offset for topic partition {of}. Set to {earliest[of]}."
            )
    return inside
