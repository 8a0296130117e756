"""Record batches that lie: rows 37 to 62."""

import gzip
import struct
from collections.abc import Sequence
from typing import Any

from crc32c import crc32c

from compat_tests.cases import CLOSED, SILENT, code
from compat_tests.wire import SILENCE_S
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    MAGIC_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Record,
    assemble_batch,
    encode_batch,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.record import encode_record
from pykbroker.protocol.records.varints import encode_zigzag

from .scene import PRODUCE_VERSION, Case, Scene, now_ms, record

INVALID, CORRUPT = "INVALID_RECORD", "CORRUPT_MESSAGE"
TEN_DAYS_MS = 10 * 24 * 3600 * 1000
CONTROL_BIT, UNUSED_BITS = 0x20, 0x0F00


def batch(*records: Record, **fields: Any) -> bytes:
    return encode_batch(records or [record()], **fields)


def of_payload(payload: bytes, **fields: int) -> bytes:
    """A batch whose header and records need not fit each other; its length and checksum do."""
    time = now_ms()
    header = {
        "base_offset": 0,
        "partition_leader_epoch": -1,
        "attributes": 0,
        "last_offset_delta": 0,
        "base_timestamp": time,
        "max_timestamp": time,
        "producer_id": NO_PRODUCER_ID,
        "producer_epoch": NO_PRODUCER_EPOCH,
        "base_sequence": NO_SEQUENCE,
        "records_count": 1,
    }
    return assemble_batch(payload, **(header | fields))


def patched(position: int, replacement: bytes) -> bytes:
    """A good batch with other bytes at a position; the checksum is made to fit where it covers them."""
    data = bytearray(batch())
    data[position : position + len(replacement)] = replacement
    if position >= ATTRIBUTES_OFFSET:
        struct.pack_into(">I", data, CRC_OFFSET, crc32c(data[ATTRIBUTES_OFFSET:]))
    return bytes(data)


def payload_of(*records: Record, deltas: Sequence[int] | None = None) -> bytes:
    offsets = range(len(records)) if deltas is None else deltas
    return b"".join(encode_record(each, delta, 0) for each, delta in zip(records, offsets, strict=True))


def body_of_record(
    *, key: bytes | None = b"k", value: bytes | None = b"v", headers: bytes | None = None, delta: bytes = b"\x00"
) -> bytes:
    """A record without its length: attributes, timestamp delta, offset delta, key, value, headers."""

    def sized(data: bytes | None) -> bytes:
        return encode_zigzag(-1) if data is None else encode_zigzag(len(data)) + data

    return b"\x00\x00" + delta + sized(key) + sized(value) + (encode_zigzag(0) if headers is None else headers)


def with_length(body: bytes, length: int | None = None) -> bytes:
    return encode_zigzag(len(body) if length is None else length) + body


def answers(data: bytes | None, **of_request: Any) -> Any:
    """The error code that a Produce request with this batch gets."""
    return lambda scene: scene.produce(data, **of_request)


def built(make: Any, **of_topic: str) -> Any:
    """As `answers`, for a batch that is built when the test runs."""
    return lambda scene: scene.produce(make(), scene.topic(**of_topic))


# --- acks, topics and partitions


def unknown_topic(scene: Scene) -> str:
    return scene.produce(batch(), scene.name())


def acks_zero_with_an_error(scene: Scene) -> str:
    data = [PartitionProduceData(index=99, records=batch())]
    topics = [TopicProduceData(name=scene.topic(), partition_data=data)]
    with scene.wire() as wire:
        wire.send(ProduceRequest(acks=0, timeout_ms=1000, topic_data=topics), PRODUCE_VERSION)
        wire.receive()
    return "answered"


def acks_zero_says_nothing(scene: Scene) -> str:
    """… and the request behind it is served: the answer that comes is the second one's."""
    topic = scene.topic()
    data = [PartitionProduceData(index=0, records=batch())]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    with scene.wire() as wire:
        wire.send(ProduceRequest(acks=0, timeout_ms=1000, topic_data=topics), PRODUCE_VERSION)
        wire.send(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), PRODUCE_VERSION)
        (correlation_id,) = struct.unpack(">i", wire.receive()[:4])
    return f"answer to request {correlation_id}"


def same_partition_twice(scene: Scene) -> list[tuple[int, str]]:
    data = [PartitionProduceData(index=0, records=batch()), PartitionProduceData(index=0, records=batch())]
    topics = [TopicProduceData(name=scene.topic(), partition_data=data)]
    with scene.wire() as wire:
        answer = wire.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), PRODUCE_VERSION)
    assert isinstance(answer, ProduceResponse)
    found = [each for topic in answer.responses for each in topic.partition_responses]
    return sorted({(each.index, code(each.error_code)) for each in found})


def null_records(scene: Scene) -> str:
    return scene.produce(None, deadline_s=SILENCE_S)


def null_key_on_compacted_topic(scene: Scene) -> Any:
    topic = scene.topic(cleanup_policy="compact")
    answer = scene.produce_partition(batch(record(), record(key=None)), topic)
    return code(answer.error_code), [error.batch_index for error in answer.record_errors]


# --- reading back what was accepted


def fetch(scene: Scene, topic: str, offset: int = 0) -> list[Record]:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])])
    with scene.wire() as wire:
        answer = wire.call(request, 11)
    assert isinstance(answer, FetchResponse)
    data = answer.responses[0].partitions[0].records
    return [each for found in iter_batches(bytes(data or b"")) for each in iter_records(found)]


def unknown_attribute_bits(scene: Scene) -> Any:
    """Accepted; `kept` tells whether they are handed to consumers."""
    topic = scene.topic()
    data = of_payload(payload_of(record()), attributes=UNUSED_BITS)
    error = scene.produce(data, topic)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])])
    with scene.wire() as wire:
        answer = wire.call(request, 11)
    assert isinstance(answer, FetchResponse)
    (found,) = iter_batches(bytes(answer.responses[0].partitions[0].records))
    found.ensure_valid()
    return error, "kept" if found.header.attributes & UNUSED_BITS else "masked"


def lying_max_timestamp(scene: Scene) -> Any:
    """Accepted; the log's largest timestamp is that of a record, whatever the header claimed."""
    topic = scene.topic()
    time = now_ms() - 60_000
    data = of_payload(payload_of(record(timestamp=time)), base_timestamp=time, max_timestamp=time + 30_000)
    error = scene.produce(data, topic)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])])
    with scene.wire() as wire:
        answer = wire.call(request, 11)
    assert isinstance(answer, FetchResponse)
    (found,) = iter_batches(bytes(answer.responses[0].partitions[0].records))
    found.ensure_valid()
    return error, found.header.max_timestamp - time


def with_timestamps(*times: int) -> Any:
    return lambda scene: scene.produce(batch(*(record(timestamp=time) for time in times)))


# --- idempotent producers


def idempotent(pid: int, sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    return batch(*(record() for _ in range(count)), producer_id=pid, producer_epoch=epoch, base_sequence=sequence)


def producer_story(*steps: tuple[int, int, int]) -> Any:
    """Batches of one producer id, as (epoch, sequence, records); answers are the error and the base offset."""

    def run(scene: Scene) -> list[tuple[str, int]]:
        topic, pid = scene.topic(), scene.producer_id()
        answered = []
        for epoch, sequence, count in steps:
            partition = scene.produce_partition(idempotent(pid, sequence, count, epoch), topic)
            answered.append((code(partition.error_code), partition.base_offset))
        return answered

    return run


def sequence_wraps(scene: Scene) -> list[tuple[str, int]]:
    """A producer may start anywhere where the broker knows nothing of it; from 2**31 - 1 it goes on with 0."""
    last = 2**31 - 1
    return list(producer_story((0, last, 1), (0, 0, 1), (0, 1, 1))(scene))


def sequence_wraps_inside_a_batch(scene: Scene) -> list[tuple[str, int]]:
    return list(producer_story((0, 2**31 - 2, 3), (0, 1, 1))(scene))


def producer_id_without_sequence(scene: Scene) -> str:
    return scene.produce(idempotent(scene.producer_id(), -1))


# --- the table

GOOD = payload_of(record())
GZIP = int(Compression.GZIP)
MIB = 2**20


def gzip_bomb() -> bytes:
    """300 MB of zeros in one record, in some 300 kB."""
    value = bytes(300_000_000)
    body = b"\x00\x00\x00" + encode_zigzag(-1) + encode_zigzag(len(value)) + value + encode_zigzag(0)
    return of_payload(gzip.compress(with_length(body), 6), attributes=GZIP)


def gzipped(payload: bytes) -> bytes:
    return gzip.compress(payload)


def count_lies(count: int, attributes: int = 0) -> Any:
    payload = gzipped(GOOD) if attributes == GZIP else GOOD
    return answers(of_payload(payload, records_count=count, attributes=attributes, last_offset_delta=max(count - 1, 0)))


def count_without_records(count: int) -> Any:
    return answers(of_payload(GOOD, records_count=count))


BAD_RECORDS = {
    "a record of negative length": with_length(body_of_record(), -5),
    "a record longer than the batch": with_length(body_of_record(), 1000),
    "a record shorter than its parts": with_length(body_of_record(value=b"long value"), 6),
    "2**31 - 1 headers": with_length(body_of_record(headers=encode_zigzag(2**31 - 1))),
    "-1 headers": with_length(body_of_record(headers=encode_zigzag(-1))),
    "a header without a key": with_length(body_of_record(headers=encode_zigzag(1) + encode_zigzag(-1) + b"\x02v")),
}

CASES = [
    Case("37", "acks=2", answers(batch(), acks=2), "INVALID_REQUIRED_ACKS"),
    Case("38", "acks=0 to a partition that is not there", acks_zero_with_an_error, CLOSED),
    Case("38", "acks=0 has no answer", acks_zero_says_nothing, "answer to request 2"),
    Case("39", "an unknown topic", unknown_topic, "UNKNOWN_TOPIC_OR_PARTITION"),
    Case("39", "partition 99", answers(batch(), partition=99), "UNKNOWN_TOPIC_OR_PARTITION"),
    Case("39", "partition -1", answers(batch(), partition=-1), "UNKNOWN_TOPIC_OR_PARTITION"),
    Case("40", "a wrong checksum", answers(patched(CRC_OFFSET, b"\x01\x02\x03\x04")), CORRUPT),
    Case("40", "magic 3", answers(patched(MAGIC_OFFSET, b"\x03")), CORRUPT),
    Case("40", "magic -1", answers(patched(MAGIC_OFFSET, b"\xff")), CORRUPT),
    Case("40", "a batch length of 3", answers(patched(8, struct.pack(">i", 3))), CORRUPT),
    Case("40", "a batch length of -5", answers(patched(8, struct.pack(">i", -5))), CORRUPT),
    Case("41", "magic 1", answers(patched(MAGIC_OFFSET, b"\x01")), INVALID),
    Case("41", "a batch longer than the records", answers(patched(8, struct.pack(">i", 5000))), INVALID),
    Case("41", "two batches", answers(batch() + batch()), INVALID),
    Case("41", "no batch at all", answers(b""), INVALID),
    Case("42", "three bytes behind the batch", answers(batch() + b"abc"), "NONE", INVALID),
    Case("43", "records that are null", null_records, SILENT, INVALID),
    Case(
        "44",
        "zstd in Produce 6",
        answers(batch(compression=Compression.ZSTD), version=6),
        "UNSUPPORTED_COMPRESSION_TYPE",
    ),
    *(
        Case("45-48", f"{count} records announced, one there{kind}", count_lies(count, attributes), INVALID)
        for count in (2, 0, -1, 2**31 - 1)
        for kind, attributes in (("", 0), (", gzip", GZIP))
    ),
    Case("45-48", "records announced do not fit the last offset", count_without_records(3), INVALID),
    Case("49", "a base offset that is not 0", answers(batch(base_offset=5)), INVALID),
    Case("50", "the control bit", answers(of_payload(GOOD, attributes=CONTROL_BIT)), INVALID),
    Case("51", "unknown attribute bits", unknown_attribute_bits, ("NONE", "kept"), ("NONE", "masked")),
    *(
        Case(
            "52",
            f"codec {codec}",
            answers(of_payload(GOOD, attributes=codec)),
            "UNKNOWN_SERVER_ERROR",
            "UNSUPPORTED_COMPRESSION_TYPE",
        )
        for codec in (5, 6, 7)
    ),
    Case(
        "52", "corrupt gzip", answers(of_payload(b"no gzip at all", attributes=GZIP)), "UNKNOWN_SERVER_ERROR", CORRUPT
    ),
    Case(
        "52",
        "truncated gzip",
        answers(of_payload(gzipped(GOOD)[:-9], attributes=GZIP)),
        "UNKNOWN_SERVER_ERROR",
        CORRUPT,
    ),
    Case(
        "52",
        "a varint of six bytes",
        answers(of_payload(b"\xff\xff\xff\xff\xff\x01" + body_of_record())),
        "UNKNOWN_SERVER_ERROR",
        INVALID,
    ),
    Case("53", "a gzip bomb", built(gzip_bomb), "NONE", "MESSAGE_TOO_LARGE"),
    *(Case("54", name, answers(of_payload(payload)), INVALID) for name, payload in BAD_RECORDS.items()),
    Case("55", "a null key on a compacted topic", null_key_on_compacted_topic, (INVALID, [1])),
    Case("56", "ten days ahead", lambda scene: with_timestamps(now_ms() + TEN_DAYS_MS)(scene), "INVALID_TIMESTAMP"),
    Case("56", "a timestamp of 2**63 - 1", with_timestamps(2**63 - 1), "INVALID_TIMESTAMP"),
    Case("56", "a timestamp of 0", with_timestamps(0), "NONE"),
    Case("56", "a timestamp of -1", with_timestamps(-1), "NONE"),
    Case("56", "a timestamp of -5", with_timestamps(-5), "NONE"),
    Case("56", "timestamps out of order", with_timestamps(5000, 1000, 3000), "NONE"),
    Case("56", "a max timestamp that lies", lying_max_timestamp, ("NONE", 0)),
    Case(
        "57",
        "offset delta 7 in a batch of one",
        answers(of_payload(payload_of(record(), deltas=[7]))),
        "NONE",
        INVALID,
    ),
    Case("58", "a partition twice in one request", same_partition_twice, [(0, "NONE")], [(0, "INVALID_REQUEST")]),
    Case("59", "a batch of 2 MiB", built(lambda: batch(record(bytes(2 * MIB)))), "MESSAGE_TOO_LARGE"),
    Case("60", "a producer id without sequence", producer_id_without_sequence, INVALID),
    Case(
        "61",
        "a batch again",
        producer_story((0, 0, 2), (0, 2, 1), (0, 0, 2), (0, 2, 1)),
        [("NONE", 0), ("NONE", 2), ("NONE", 0), ("NONE", 2)],
    ),
    Case(
        "61",
        "a gap in the sequence",
        producer_story((0, 0, 1), (0, 5, 1)),
        [("NONE", 0), ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)],
    ),
    Case(
        "61",
        "an old epoch",
        producer_story((1, 0, 1), (0, 1, 1)),
        [("NONE", 0), ("INVALID_PRODUCER_EPOCH", -1)],
    ),
    Case(
        "61",
        "a new epoch that does not begin with 0",
        producer_story((0, 0, 1), (1, 3, 1)),
        [("NONE", 0), ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)],
    ),
    Case("62", "sequences wrap", sequence_wraps, [("NONE", 0), ("NONE", 1), ("NONE", 2)]),
    Case("62", "sequences wrap inside a batch", sequence_wraps_inside_a_batch, [("NONE", 0), ("NONE", 3)]),
]
