"""Requests about partitions, and what their answers say: produce, fetch, offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import trio

from pykbroker.client.fetched import AbortedTransactions, read_batches
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.records.batch import Record, encode_batch, iter_records
from pykbroker.sim.clock import EPOCH_MS
from tests.history.operations import Value

from .stage import Lost, Wire, topic_of

LATEST, EARLIEST = -1, -2
_FETCH_VERSION, _LIST_OFFSETS_VERSION = 11, 6


class Produced(NamedTuple):
    error_code: ErrorCode
    base_offset: int


def batch_of(values: Sequence[Value], **producer: Any) -> bytes:
    """A batch of now: of producers whose last record is a day old a broker that starts remembers nothing."""
    now_ms = EPOCH_MS + round(trio.current_time() * 1000)
    return encode_batch([Record(key=None, value=_to_bytes(value), timestamp=now_ms) for value in values], **producer)


def _to_bytes(value: Value) -> bytes:
    """A copied value is a pair."""
    return (value if isinstance(value, str) else "|".join(value)).encode()


def _from_bytes(data: bytes) -> Value:
    original, is_copy, attempt = data.decode().partition("|")
    return (original, attempt) if is_copy else original


async def produce(
    wire: Wire, key: str, batch: bytes, *, transactional_id: str | None = None, version: int = 9
) -> Produced:
    """Raises Lost."""
    topic, index = topic_of(key)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=2000,
        transactional_id=transactional_id,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])],
    )
    answer = (await wire.ask(request, version)).responses[0].partition_responses[0]
    return Produced(ErrorCode(answer.error_code), answer.base_offset)


class Fetched(NamedTuple):
    """next_offset: where to go on. marks: by name, what the answer tells of the partition."""

    records: list[tuple[int, Value]]
    next_offset: int
    marks: dict[str, int]


async def fetch(wire: Wire, positions: dict[str, int], *, is_committed: bool) -> dict[str, Fetched]:
    """Of each partition what is visible from its position on. Raises Lost, also for a partition's error."""
    topics: dict[str, FetchTopic] = {}
    for key, position in positions.items():
        name, index = topic_of(key)
        topic = topics.setdefault(name, FetchTopic(topic=name))
        partition = FetchPartition(partition=index, fetch_offset=position, partition_max_bytes=1 << 20)
        topic.partitions.append(partition)
    request = FetchRequest(
        max_wait_ms=20,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=int(is_committed),
        topics=list(topics.values()),
    )
    response = await wire.ask(request, _FETCH_VERSION)
    return {
        (key := f"{topic.topic}-{data.partition_index}"): _fetched(data, positions[key])
        for topic in response.responses
        for data in topic.partitions
    }


def _fetched(data: Any, position: int) -> Fetched:
    if ErrorCode(data.error_code).retriable:
        raise Lost
    assert data.error_code == 0, ErrorCode(data.error_code)
    aborted = AbortedTransactions((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    records: list[tuple[int, Value]] = []
    next_offset = position
    for batch, is_hidden in read_batches(bytes(data.records or b""), aborted):
        next_offset = batch.header.last_offset + 1
        if not is_hidden:
            records += [
                (record.offset, _from_bytes(bytes(record.value or b"")))
                for record in iter_records(batch)
                if record.offset >= position
            ]
    marks = {"hw": data.high_watermark, "lso": data.last_stable_offset, "start": data.log_start_offset}
    return Fetched(records, next_offset, {name: offset for name, offset in marks.items() if offset >= 0})


async def list_offsets(wire: Wire, keys: Sequence[str], timestamp: int, *, is_committed: bool) -> dict[str, int]:
    """Raises Lost."""
    topics: dict[str, ListOffsetsTopic] = {}
    for key in keys:
        name, index = topic_of(key)
        topic = topics.setdefault(name, ListOffsetsTopic(name=name))
        topic.partitions.append(ListOffsetsPartition(partition_index=index, timestamp=timestamp))
    request = ListOffsetsRequest(replica_id=-1, isolation_level=int(is_committed), topics=list(topics.values()))
    response = await wire.ask(request, _LIST_OFFSETS_VERSION)
    offsets = {}
    for listed in response.topics:
        for partition in listed.partitions:
            if partition.error_code:
                assert ErrorCode(partition.error_code).retriable, ErrorCode(partition.error_code)
                raise Lost
            offsets[f"{listed.name}-{partition.partition_index}"] = partition.offset
    return offsets
