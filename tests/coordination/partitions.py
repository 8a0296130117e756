"""Requests about partitions, and what their answers say: produce, fetch, offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import trio

from pykbroker.client.fetched import AbortedTransactions, read_batches
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.records.batch import Record, RecordBatch, encode_batch, iter_records
from pykbroker.sim.clock import EPOCH_MS
from pykbroker.sim.threads import beside_the_loop
from tests.history.operations import Value

from .sizes import TRIMMED
from .stage import Lost, Wire, topic_of

LATEST, EARLIEST = -1, -2
FETCH_VERSION, _LIST_OFFSETS_VERSION = 11, 6
_NUMBER = "number"


class OutOfRange(Exception):
    """The offset is below the log start by now."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class Produced(NamedTuple):
    error_code: ErrorCode
    base_offset: int


@beside_the_loop()
def batch_of(values: Sequence[Value], *, records_each: int = 1, **producer: Any) -> bytes:
    """Each value is so many records one behind the other, all of now: of a producer whose last record is a day old a
    broker that starts remembers nothing.
    """
    now_ms = EPOCH_MS + int(trio.current_time() * 1000)
    return encode_batch([record for value in values for record in _records(value, records_each, now_ms)], **producer)


def _records(value: Value, count: int, now_ms: int) -> Iterator[Record]:
    """Of a value; a copied value is a pair, one of a compacted partition has three parts."""
    match value:
        case str():
            for number in range(count):
                data = f"{value}#{number}/{count}" if count > 1 else value
                yield Record(key=None, value=data.encode(), timestamp=now_ms)
        case [original, attempt]:
            yield Record(key=None, value=f"{original}|{attempt}".encode(), timestamp=now_ms)
        case [key, latest, number]:
            data = None if latest is None else latest.encode()
            header = (_NUMBER, str(number).encode())
            yield Record(key=key.encode(), value=data, headers=[header], timestamp=now_ms)
        case _:
            raise AssertionError(value)


def _value_of(record: Record) -> Value:
    value = None if record.value is None else bytes(record.value).decode()
    if record.key is not None:
        [header] = record.headers
        return bytes(record.key).decode(), value, int(bytes(header[1] or b""))
    assert value is not None
    original, is_copy, attempt = value.partition("|")
    return (original, attempt) if is_copy else value


def values_of(batch: RecordBatch) -> Iterator[tuple[int, Value]]:
    """With their offsets. What is many records counts as its first one, where all of them are there in their order."""
    records = list(iter_records(batch))
    at = 0
    while at < len(records):
        value = _value_of(records[at])
        name, is_one_of_many, place = value.partition("#") if isinstance(value, str) else (value, "", "")
        count = int(place.partition("/")[2]) if is_one_of_many else 1
        if is_one_of_many and _are_all(records[at : at + count], name, count):
            yield records[at].offset, name
            at += count
        else:
            yield records[at].offset, value
            at += 1


def _are_all(records: Sequence[Record], name: str, count: int) -> bool:
    wanted = [(records[0].offset + number, f"{name}#{number}/{count}") for number in range(count)]
    return [(record.offset, _value_of(record)) for record in records] == wanted


async def produce(
    wire: Wire,
    key: str,
    batch: bytes,
    *,
    transactional_id: str | None = None,
    version: int = 9,
    blocks_s: float = 2.0,
) -> Produced:
    """Raises Lost."""
    request = produce_request({key: batch}, blocks_s=blocks_s)
    request.transactional_id = transactional_id
    return produced(await wire.ask(request, version, timeout_s=blocks_s + 1))[key]


def produce_request(batches: Mapping[str, bytes], *, blocks_s: float) -> ProduceRequest:
    """One batch for each partition, which all in-sync replicas must have within that time."""
    topics: dict[str, TopicProduceData] = {}
    for key, batch in batches.items():
        name, index = topic_of(key)
        topic = topics.setdefault(name, TopicProduceData(name=name))
        topic.partition_data.append(PartitionProduceData(index=index, records=batch))
    return ProduceRequest(acks=-1, timeout_ms=int(blocks_s * 1000), topic_data=list(topics.values()))


def produced(response: Any) -> dict[str, Produced]:
    return {
        f"{topic.name}-{answer.index}": Produced(ErrorCode(answer.error_code), answer.base_offset)
        for topic in response.responses
        for answer in topic.partition_responses
    }


class Fetched(NamedTuple):
    """next_offset: where to go on. marks: by name, what the answer tells of the partition."""

    records: list[tuple[int, Value]]
    next_offset: int
    marks: dict[str, int]


async def fetch(wire: Wire, positions: dict[str, int], *, is_committed: bool) -> dict[str, Fetched]:
    """Of each partition what is visible from its position on. Raises Lost, also for a partition's error, OutOfRange."""
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
    response = await wire.ask(request, FETCH_VERSION)
    return {
        (key := f"{topic.topic}-{data.partition_index}"): fetched(data, key, positions[key])
        for topic in response.responses
        for data in topic.partitions
    }


def fetched(data: Any, key: str, position: int) -> Fetched:
    """What the answer has of a partition. Raises Lost, OutOfRange."""
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and topic_of(key)[0] == TRIMMED:
        raise OutOfRange(key)
    if ErrorCode(data.error_code).retriable:
        raise Lost
    assert data.error_code == 0, ErrorCode(data.error_code)
    aborted = AbortedTransactions((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    records: list[tuple[int, Value]] = []
    next_offset = position
    with beside_the_loop():
        for batch, is_hidden in read_batches(bytes(data.records or b""), aborted):
            next_offset = batch.header.last_offset + 1
            if not is_hidden:
                records += [(offset, value) for offset, value in values_of(batch) if offset >= position]
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
