"""What the attackers do. Each attack is bounded in connections, and lasts until the measurement cancels it."""

from __future__ import annotations

import itertools
import random
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import trio

from compat_tests.hostile.record_cases import body_of_record, of_payload, with_length
from compat_tests.topics import LATEST
from compat_tests.wire import header, uvarint
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression, compress
from pykbroker.protocol.records.varints import encode_zigzag

from .peers import Gone, Peer, connected, many, persist

MIB = 1 << 20
LONGEST_WAIT_MS = 2**31 - 1
BROKER_RESOURCE = 4
PRODUCE, FETCH, METADATA = 9, 11, 8
TOPIC = "attacked"

Address = tuple[str, int]
Run = Callable[[Address], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Attack:
    """prepare: builds what is dear to build and gives the attack itself, which goes on until it is cancelled.

    partitions and configs: of the topic that it works on. records: the batches that lie in each of them before.
    other_topics: how many more there are. over_tls: at the broker's TLS listener.
    """

    prepare: Callable[[], Run]
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    records: Callable[[], list[bytes]] = list
    other_topics: int = 0
    over_tls: bool = False


# --- Produce


def compressed(codec: Compression, payload: bytes, records_count: int = 1, *, level: int | None = None) -> bytes:
    fields = {"records_count": records_count, "last_offset_delta": records_count - 1, "attributes": int(codec)}
    return of_payload(compress(codec, payload, level), **fields)


def empty_headers(count: int) -> bytes:
    """One record of nothing but empty headers: some kilobytes on the wire."""
    headers = encode_zigzag(count) + b"\0\1" * count
    return compressed(Compression.ZSTD, with_length(body_of_record(headers=headers)), level=19)


def empty_members(count: int) -> bytes:
    """A good gzip member, and very many empty ones behind it."""
    good = compress(Compression.GZIP, with_length(body_of_record()))
    empty = zlib.compressobj(9, zlib.DEFLATED, wbits=31)
    return of_payload(good + (empty.compress(b"") + empty.flush()) * count, attributes=int(Compression.GZIP))


def zeros(size: int) -> bytes:
    """A batch of zeros, which are no records."""
    return compressed(Compression.ZSTD, bytes(size), level=19)


def tiny_records(count: int, codec: Compression, value: bytes = b"v") -> bytes:
    bodies = (body_of_record(key=None, value=value, delta=encode_zigzag(each)) for each in range(count))
    return compressed(codec, b"".join(with_length(body) for body in bodies), count)


def produce_request(batch: bytes, partitions: int = 1) -> bytes:
    data = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    topics = [TopicProduceData(name=TOPIC, partition_data=data)]
    return encode_request(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), PRODUCE, 1, "hostile")


def producing(make: Callable[[], bytes], *, connections: int = 1, partitions: int = 1) -> Callable[[], Run]:
    return asking(lambda: produce_request(make(), partitions), connections=connections)


def asking(make: Callable[[], bytes], *, connections: int = 1) -> Callable[[], Run]:
    """One request in hand for each connection, answers read."""

    def prepare() -> Run:
        request = make()
        return lambda address: many(connections, partial(persist, address, partial(_ask, request)))

    return prepare


def unread(make: Callable[[], bytes], *, connections: int) -> Callable[[], Run]:
    """Nobody reads the answers, and the connections stay."""

    async def ask(request: bytes, peer: Peer) -> None:
        await peer.send_raw(request)
        await trio.sleep_forever()

    def prepare() -> Run:
        request = make()
        return lambda address: many(connections, partial(persist, address, partial(ask, request)))

    return prepare


async def _ask(request: bytes, peer: Peer) -> None:
    await peer.send_raw(request)
    await peer.skip_answer()


def bombs_and_leave() -> Run:
    """The client of 2,000 bombs does not wait for its answer."""
    request = produce_request(zeros(60 * MIB), 2000)

    async def run(address: Address) -> None:
        while True:
            try:
                async with connected(address) as peer:
                    await peer.send_raw(request)
                    await trio.sleep(0.2)
            except Gone:
                await trio.sleep(0.05)

    return run


# --- Requests that name much


def one_broker_many_times(count: int) -> bytes:
    resources = [DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1") for _ in range(count)]
    return encode_request(DescribeConfigsRequest(resources=resources), 4, 1, "hostile")


def unknown_names(count: int) -> bytes:
    topics = [MetadataRequestTopic(name=f"unknown-{number:06}") for number in range(count)]
    return encode_request(MetadataRequest(topics=topics, allow_auto_topic_creation=False), METADATA, 1, "hostile")


def all_topics() -> bytes:
    return encode_request(MetadataRequest(topics=None), METADATA, 1, "hostile")


def fetch_of(topic: str, partitions: int, *, session_epoch: int = -1, max_bytes: int = 2**31 - 1) -> bytes:
    wanted = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=MIB) for index in range(partitions)]
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=LONGEST_WAIT_MS,
        min_bytes=2**31 - 1,
        max_bytes=max_bytes,
        session_id=0,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, partitions=wanted)],
    )
    return encode_request(request, FETCH, 1, "hostile")


def fetch_now(partitions: int) -> bytes:
    wanted = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=MIB) for index in range(partitions)]
    topics = [FetchTopic(topic=TOPIC, partitions=wanted)]
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=2**31 - 1, session_epoch=-1, topics=topics
    )
    return encode_request(request, FETCH, 1, "hostile")


def offsets_by_time(address: Address) -> Awaitable[None]:
    """Each request looks for the last record of another batch."""
    numbers = itertools.cycle(range(OLD_BATCHES))

    async def ask(peer: Peer) -> None:
        timestamp = old_batch_ms(next(numbers)) + OLD_RECORDS - 1
        topics = [
            ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
        ]
        await peer.send(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
        await peer.skip_answer()

    return many(10, partial(persist, address, ask))


def offsets_of_many(count: int) -> bytes:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(count)]
    topics = [ListOffsetsTopic(name=TOPIC, partitions=partitions)]
    return encode_request(ListOffsetsRequest(replica_id=-1, topics=topics), 7, 1, "hostile")


def commits_of_many(count: int) -> bytes:
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(count)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
    request = OffsetCommitRequest(group_id="hostile", generation_id_or_member_epoch=-1, topics=topics)
    return encode_request(request, 8, 1, "hostile")


def creation_of_many(count: int) -> bytes:
    topics = [CreatableTopic(name=f"many-{index}", num_partitions=1, replication_factor=1) for index in range(count)]
    return encode_request(CreateTopicsRequest(topics=topics, validate_only=True), 7, 1, "hostile")


def tags(count: int) -> bytes:
    data = uvarint(count) + b"".join(uvarint(tag) + b"\x00" for tag in range(100)) + b"\x7f\x00" * (count - 100)
    frame = header(3, 9, tags=data) + b"\x00\x00\x00\x00\x00"
    return struct.pack(">i", len(frame)) + frame


def empty_names(count: int) -> bytes:
    frame = header(3, 4) + struct.pack(">i", count) + bytes(2 * count) + b"\x00"
    return struct.pack(">i", len(frame)) + frame


# --- Connections


async def half_frames(address: Address) -> None:
    """A thousand connections, each with a megabyte of an announced hundred."""
    await _half_frames(address, 1000, 100 * MIB, MIB)


async def _half_frames(address: Address, connections: int, announced: int, sent: int) -> None:
    async def announce(peer: Peer) -> None:
        await peer.send_raw(struct.pack(">i", announced) + bytes(sent))
        await trio.sleep_forever()

    await many(connections, partial(persist, address, announce))


async def fetches_left_behind(address: Address) -> None:
    """Clients that go away while their Fetch waits for longer than anybody lives."""
    request = fetch_of(TOPIC, 1)
    while True:
        try:
            async with connected(address) as peer:
                await peer.send_raw(request)
                await trio.sleep(0.01)
        except Gone:
            await trio.sleep(0.05)


async def connect_and_leave(address: Address) -> None:
    async def once() -> None:
        while True:
            try:
                async with connected(address):
                    pass
            except Gone:
                await trio.sleep(0.05)

    await many(20, once)


async def pipelined(address: Address) -> None:
    """Requests of a few bytes, without end, whose answers are read as fast as they come."""
    requests = encode_request(MetadataRequest(topics=[]), METADATA, 1, "hostile") * 1000

    async def once() -> None:
        try:
            async with connected(address) as peer, trio.open_nursery() as nursery:
                nursery.start_soon(_send_on, peer, requests)
                while True:
                    await peer.skip_answer()
        except* (*Gone,):
            await trio.sleep(0.05)

    async def again() -> None:
        while True:
            await once()

    await many(10, again)


async def _send_on(peer: Peer, data: bytes) -> None:
    while True:
        await peer.send_raw(data)


# --- Groups


async def costly_expressions(address: Address) -> None:
    """Sixty members, each with an expression of its own that is dear to match."""

    async def member(number: int, peer: Peer) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id="costly",
            member_id=f"member-{number}",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_regex=f"(a?){{100}}(x*y*z*){{30}}.*{number}.*",
            topic_partitions=[],
        )
        await peer.send(request, 1)
        await peer.skip_answer()

    async with trio.open_nursery() as nursery:
        for number in range(60):
            nursery.start_soon(persist, address, partial(member, number))


OLD_BATCHES = 200
OLD_RECORDS = 5000


def old_batch_ms(number: int) -> int:
    """When the first record of a batch was written: within the last two hours."""
    hour_ms = 3_600_000
    return int(time.time() * 1000) // hour_ms * hour_ms - hour_ms + number * OLD_RECORDS


def old_compressed_batches() -> list[bytes]:
    """Small segments of compressed records, a millisecond between two of them."""
    value = random.Random(1).randbytes(100)

    def batch(number: int) -> bytes:
        first_ms = old_batch_ms(number)
        records = [Record(key=None, value=value, timestamp=first_ms + each) for each in range(OLD_RECORDS)]
        return encode_batch(records, compression=Compression.GZIP)

    return [batch(number) for number in range(OLD_BATCHES)]


def one_large_record() -> list[bytes]:
    return [encode_batch([Record(key=None, value=bytes(15_000), timestamp=int(time.time() * 1000))])]


LARGE = {"max.message.bytes": str(20 * MIB)}

ATTACKS: dict[str, Attack] = {
    "Produce: 31 million empty headers in 5 kB of zstd": Attack(producing(lambda: empty_headers(31_000_000))),
    "Produce: 400,000 empty gzip members": Attack(producing(lambda: empty_members(400_000)), configs=LARGE),
    "Produce: 2,000 partitions, a zstd bomb in each": Attack(bombs_and_leave, partitions=2000),
    "Produce: 500,000 nine-byte records in zstd": Attack(producing(lambda: tiny_records(500_000, Compression.ZSTD))),
    "Produce: 40,000 records in gzip, four producers": Attack(
        producing(lambda: tiny_records(40_000, Compression.GZIP), connections=4)
    ),
    "DescribeConfigs: one broker 10,000 times": Attack(asking(lambda: one_broker_many_times(10_000))),
    "Metadata: 200,000 unknown names": Attack(asking(lambda: unknown_names(200_000))),
    "Metadata: 200,000 unknown names, 133 answers unread": Attack(
        unread(lambda: unknown_names(200_000), connections=133)
    ),
    "Metadata: 10,000 partitions, 50 pollers": Attack(
        asking(all_topics, connections=50), partitions=9000, other_topics=1000
    ),
    "Fetch: 3,000 partitions, 50 answers unread": Attack(
        unread(lambda: fetch_now(3000), connections=50), partitions=3000, records=one_large_record
    ),
    "Fetch: 100,000 unknown partitions, 60 that wait": Attack(
        unread(lambda: fetch_of("unknown", 100_000), connections=60)
    ),
    "Fetch: sessions of 100,000 unknown partitions": Attack(
        asking(lambda: fetch_of("unknown", 100_000, session_epoch=0), connections=60)
    ),
    "Fetch: 3,000 partitions that wait, 60 connections": Attack(
        unread(lambda: fetch_of(TOPIC, 3000), connections=60), partitions=3000
    ),
    "Fetch: clients that leave while it waits": Attack(lambda: fetches_left_behind),
    "ListOffsets: by time in compressed segments": Attack(
        lambda: offsets_by_time,
        configs={"segment.bytes": str(MIB)},
        records=old_compressed_batches,
    ),
    "ListOffsets: 100,000 partitions": Attack(asking(lambda: offsets_of_many(100_000), connections=4)),
    "OffsetCommit: 100,000 partitions": Attack(asking(lambda: commits_of_many(100_000), connections=4)),
    "CreateTopics: 10,000 topics to validate": Attack(asking(lambda: creation_of_many(10_000), connections=4)),
    "5.2 million unknown tagged fields": Attack(asking(lambda: tags(5_200_000), connections=4)),
    "4.2 million empty topic names": Attack(asking(lambda: empty_names(4_200_000), connections=4)),
    "1,000 connections with 1 MB of 100 announced": Attack(lambda: half_frames),
    "connections that come and go": Attack(lambda: connect_and_leave),
    "pipelined requests without end": Attack(lambda: pipelined),
    "60 members with costly regular expressions": Attack(lambda: costly_expressions, other_topics=1000),
}
