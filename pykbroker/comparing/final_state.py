"""The state that a run leaves in a cluster: records of topics, with offsets and markers, and offsets of groups.

What was there before the run does not count: of topics the records behind the ends of then, of groups those that are
new or have other offsets. Internal topics are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import describe_topic_configs
from pykbroker.client.errors import ClientError, KafkaError, check
from pykbroker.client.fetching import fetch_from
from pykbroker.client.group_offsets import fetch_offsets
from pykbroker.client.groups import list_groups
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_UNCOMMITTED, list_offsets
from pykbroker.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchResponse
from pykbroker.protocol.records.batch import RecordBatch, iter_batches, iter_records
from pykbroker.protocol.records.control import decode_control_key
from pykbroker.protocol.topic_partition import TopicPartition

from .field_differences import FieldDifference, field_differences
from .normal_form import shown_bytes

MOST_TOPICS: Final = 1_000
MOST_GROUPS: Final = 1_000
MOST_RECORDS: Final = 1_000
"""Of a partition: those that follow count by a digest alone."""
MOST_BYTES: Final = 512 * 1024 * 1024
MOST_FIELDS: Final = 20
"""Differences of one topic or group; what goes beyond is counted."""
_SEVERAL_GROUPS_SINCE: Final = 8
"""Of OffsetFetch (KIP-709)."""
_FETCH_BYTES: Final = 8 * 1024 * 1024


class TooMuch(ClientError):
    """The run left more than is compared."""


@dataclass(frozen=True, slots=True)
class Before:
    """The state before a run. ends: of partitions; groups: their committed offsets."""

    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, dict[str, Any]]


@dataclass(slots=True)
class FinalState:
    """Topics and groups by name, in a form that can be compared field by field."""

    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)


async def read_before(cluster: Cluster) -> Before:
    """Raises ClientError."""
    partitions = await _partitions(cluster)
    ends = await _offsets(cluster, partitions, LATEST_TIMESTAMP)
    return Before(ends, await _groups(cluster))


async def read_final(cluster: Cluster, before: Before) -> FinalState:
    """Raises ClientError, TooMuch."""
    state = FinalState()
    partitions = await _partitions(cluster)
    starts = await _offsets(cluster, partitions, EARLIEST_TIMESTAMP)
    ends = await _offsets(cluster, partitions, LATEST_TIMESTAMP)
    left_bytes = MOST_BYTES
    for of in partitions:
        start = max(before.ends.get(of, 0), starts[of])
        if of in before.ends and start >= ends[of]:
            continue
        reader = _Reader(left_bytes)
        await reader.read(cluster, of, start, ends[of])
        left_bytes = reader.left_bytes
        topic = state.topics.setdefault(of.topic, {"partitions": {}})
        topic["partitions"][str(of.partition)] = {"start": starts[of], "end": ends[of], **reader.found()}
    known = [name for name in state.topics if all(each.topic != name for each in before.ends)]
    for name, rows in (await describe_topic_configs(cluster, known)).items():
        state.topics[name]["configs"] = {row.name: row.value for row in rows if not row.is_sensitive}
    for name, offsets in (await _groups(cluster)).items():
        if before.groups.get(name) != offsets:
            state.groups[name] = offsets
    return state


def state_differences(left: FinalState, right: FinalState) -> Iterator[FieldDifference]:
    for title, ours, theirs in (("topic", left.topics, right.topics), ("group", left.groups, right.groups)):
        for name in sorted(ours.keys() | theirs.keys()):
            label = f"{title} {name}"
            if name not in ours or name not in theirs:
                yield FieldDifference(label, *("there" if name in each else "not there" for each in (ours, theirs)))
                continue
            found = list(field_differences(ours[name], theirs[name]))
            for each in found[:MOST_FIELDS]:
                yield FieldDifference(f"{label}: {each.path}", each.left, each.right)
            if len(found) > MOST_FIELDS:
                more = f"{len(found) - MOST_FIELDS} more differences"
                yield FieldDifference(label, more, more)


class _Reader:
    """The records of one partition. left_bytes: how much may still be read."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes
        self._records: dict[str, dict[str, Any]] = {}
        self._count = 0
        self._digest = hashlib.sha256()

    def found(self) -> dict[str, Any]:
        return {"count": self._count, "digest": self._digest.hexdigest()[:16], "records": self._records}

    async def read(self, cluster: Cluster, of: TopicPartition, start: int, end: int) -> None:
        position = start
        while position < end:
            data = await cluster.retrying(partial(_fetch, cluster, of, position))
            self.left_bytes -= len(data)
            if self.left_bytes < 0:
                raise TooMuch(f"more than {MOST_BYTES} bytes of records are there to compare")
            after = position
            for batch in iter_batches(data, allow_partial=True):
                batch.ensure_valid()
                self._take(batch, position)
                after = max(after, batch.header.next_offset)
            if after == position:
                return  # compacted, or cut off meanwhile
            position = after

    def _take(self, batch: RecordBatch, first: int) -> None:
        header = batch.header
        for record in iter_records(batch):
            if record.offset < first:
                continue
            if header.is_control:
                control = decode_control_key(record.key)
                row: dict[str, Any] = {"marker": "unknown" if control is None else control.name}
            else:
                row = {
                    "key": None if record.key is None else bytes(record.key),
                    "value": None if record.value is None else bytes(record.value),
                    "headers": [(name, value) for name, value in record.headers],
                    "transactional": header.is_transactional,
                }
            self._count += 1
            self._digest.update(repr((record.offset, row)).encode())
            if len(self._records) < MOST_RECORDS:
                self._records[str(record.offset)] = _shown(row)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    def shown(value: Any) -> Any:
        return shown_bytes(value) if isinstance(value, bytes) else value

    shown_row = {name: shown(value) for name, value in row.items() if name != "headers"}
    if row.get("headers"):
        shown_row["headers"] = [f"{name}={shown(value)}" for name, value in row["headers"]]
    return shown_row


async def _fetch(cluster: Cluster, of: TopicPartition, offset: int) -> bytes | memoryview:
    found = await fetch_from(
        cluster,
        await cluster.leader(of),
        {of: offset},
        isolation_level=READ_UNCOMMITTED,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        partition_max_bytes=_FETCH_BYTES,
    )
    row = found[of]
    check(row.error_code)
    records = row.records or b""
    assert isinstance(records, (bytes, memoryview)), "what was decoded is in memory"
    return records


async def _partitions(cluster: Cluster) -> list[TopicPartition]:
    topics = (await cluster.refresh(None)).topics
    names = sorted(name for name, topic in topics.items() if not topic.is_internal)
    if len(names) > MOST_TOPICS:
        raise TooMuch(f"the cluster has {len(names)} topics; at most {MOST_TOPICS} are compared")
    return [TopicPartition(name, partition) for name in names for partition in topics[name].partitions]


async def _offsets(cluster: Cluster, partitions: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
    if not partitions:
        return {}
    found = await list_offsets(cluster, dict.fromkeys(partitions, timestamp))
    return {of: answer.offset for of, answer in found.items()}


async def _groups(cluster: Cluster) -> dict[str, dict[str, Any]]:
    groups = await list_groups(cluster)
    if len(groups) > MOST_GROUPS:
        raise TooMuch(f"the cluster has {len(groups)} groups; at most {MOST_GROUPS} are compared")
    found: dict[str, dict[str, Any]] = {}
    for group in groups:
        try:
            offsets = await _committed(cluster, group.group_id)
        except KafkaError as error:
            found[group.group_id] = {"error": error.error_code.name}
            continue
        found[group.group_id] = {
            "protocol_type": group.protocol_type,
            "offsets": offsets,
        }
    return found


async def _committed(cluster: Cluster, group_id: str) -> dict[str, dict[str, Any]]:
    coordinator = await cluster.retrying(partial(cluster.coordinator, group_id))
    connection = await cluster.node_connection(coordinator)
    if connection.version_of(OffsetFetchRequest) >= _SEVERAL_GROUPS_SINCE:
        found = await fetch_offsets(cluster, group_id)
        return {str(of): {"offset": each.offset, "metadata": each.metadata} for of, each in found.items()}
    request = OffsetFetchRequest(group_id=group_id, topics=None)
    response = await cluster.group_request(
        group_id, request, OffsetFetchResponse, verify=lambda answer: check(answer.error_code)
    )
    return {
        f"{topic.name}-{row.partition_index}": {"offset": row.committed_offset, "metadata": row.metadata}
        for topic in response.topics
        for row in topic.partitions
        if row.committed_offset >= 0
    }
