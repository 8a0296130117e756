"""Messages that no honest client sends: each is refused before it costs anything."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from pykbroker.protocol.compile import OBJECTS_LIMIT, decode, encode
from pykbroker.protocol.errors import MalformedMessage, UnsupportedVersion
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.brokers import BrokerHeartbeatRequest
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.groups import HeartbeatRequest
from pykbroker.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.primitives import encode_uvarint
from pykbroker.protocol.schema import Message

EMPTY = b"\x00"
NO_TAGS = b"\x00"


def compact(text: bytes) -> bytes:
    return encode_uvarint(len(text) + 1) + text


def tags(*entries: tuple[int, bytes]) -> bytes:
    parts = [encode_uvarint(tag) + encode_uvarint(len(value)) + value for tag, value in entries]
    return encode_uvarint(len(entries)) + b"".join(parts)


@pytest.mark.parametrize(
    ("cls", "version", "data", "complaint"),
    [
        (MetadataRequest, 1, struct.pack(">i", 2**31 - 1), "topics announces 2147483647 elements"),
        (MetadataRequest, 1, struct.pack(">i", -2), "topics has length -2"),
        (MetadataRequest, 1, struct.pack(">ih", 1, -1), "name is null"),
        (MetadataRequest, 1, struct.pack(">ih", 1, -2), "name has length -2"),
        (MetadataRequest, 1, struct.pack(">ih", 1, 5) + b"abc", "behind the data"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f", "topics announces 4294967294 elements"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x1f", "a varint does not fit 32 bits"),
        (MetadataRequest, 9, b"\x80\x80\x80\x80\x80\x01", "a varint does not fit 32 bits"),
        (MetadataRequest, 9, b"\x02" + encode_uvarint(32769 + 1) + b"x" * 40000, "name has length 32769"),
        (HeartbeatRequest, 4, EMPTY, "group_id is null"),
        (HeartbeatRequest, 0, struct.pack(">h", 10922 + 1) + b"\xff" * 10923, "10923 bytes is not UTF-8"),
        (FetchRequest, 4, struct.pack(">iiiibi", -1, 0, 0, 0, 0, -1), "topics is null"),
        (DescribeTopicPartitionsRequest, 0, b"\x01\x00\x00\x07\xd0\xfe", "cursor has length -2"),
    ],
)
def test_lengths_that_cannot_be_are_refused(cls: type[Message], version: int, data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedMessage, match=complaint):
        decode(cls, version, data)


SOFTWARE = compact(b"client") + compact(b"1.0")


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        (tags((1, b""), (1, b"")), "tagged field 1 comes after 1"),
        (tags((2, b""), (1, b"")), "tagged field 1 comes after 2"),
        (b"\x01\x05\x09abc", "tagged field 5 has 9 bytes, 3 are left"),
        (tags(*((tag, b"") for tag in range(129))), "129 tagged fields in one struct"),
        (encode_uvarint(5_200_000) + b"\x00" * 100, "5200000 tagged fields in one struct"),
        (b"\x01\xff\xff\xff\xff\x0f\x00", "tagged field 4294967295 comes after -1"),
        (b"\x01\x05", "cut short"),
    ],
)
def test_tagged_sections_that_cannot_be_are_refused(section: bytes, complaint: str) -> None:
    with pytest.raises(MalformedMessage, match=complaint):
        decode(ApiVersionsRequest, 3, SOFTWARE + section)


def test_128_tagged_fields_are_kept() -> None:
    entries = tuple((tag, bytes([tag])) for tag in range(128))
    request, _ = decode(ApiVersionsRequest, 3, SOFTWARE + tags(*entries))
    assert request.unknown_tagged_fields == dict(entries)
    assert encode(request, 3) == SOFTWARE + tags(*entries)


def test_a_known_tagged_field_must_fill_its_size() -> None:
    base = encode(FetchRequest(), 12)
    assert base.endswith(NO_TAGS)
    cluster_id = compact(b"cluster")
    assert decode(FetchRequest, 12, base[:-1] + tags((0, cluster_id)))[0].cluster_id == "cluster"
    with pytest.raises(MalformedMessage, match="cluster_id does not fill the size"):
        decode(FetchRequest, 12, base[:-1] + tags((0, cluster_id + b"x")))
    with pytest.raises(MalformedMessage, match="cluster_id does not fill the size"):
        decode(FetchRequest, 12, base[:-1] + b"\x01\x00\x03" + cluster_id)


def test_a_tag_of_another_version_is_refused_as_kafka_does() -> None:
    base = encode(BrokerHeartbeatRequest(), 0)
    with pytest.raises(MalformedMessage, match="tagged field 0, which belongs to other versions"):
        decode(BrokerHeartbeatRequest, 0, base[:-1] + tags((0, b"\x01")))


def test_a_version_that_does_not_exist_is_no_malformed_message() -> None:
    for version in (-1, 2, 14, 99):
        with pytest.raises(UnsupportedVersion, match=r"only 3-13"):
            decode(ProduceRequest, version, b"")


def test_millions_of_empty_names_are_refused_before_the_first_is_read() -> None:
    data = struct.pack(">i", 4_200_000) + bytes(2 * 4_200_000)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage, match="more than a message may hold"):
            decode(MetadataRequest, 1, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_a_count_that_the_bytes_cannot_hold_allocates_nothing() -> None:
    data = struct.pack(">i", OBJECTS_LIMIT) + bytes(1000)
    with pytest.raises(MalformedMessage, match=f"{OBJECTS_LIMIT} elements in 1000 bytes"):
        decode(MetadataRequest, 1, data)


def test_the_budget_counts_nested_elements_and_unknown_tags() -> None:
    request = ProduceRequest(
        topic_data=[
            TopicProduceData(name=name, partition_data=[PartitionProduceData(index=index) for index in range(5)])
            for name in ("a", "b")
        ]
    )
    request.topic_data[0].unknown_tagged_fields = {9: b"", 10: b""}
    encoded = encode(request, 9)
    assert decode(ProduceRequest, 9, encoded, objects_limit=2 + 10 + 2)[0] == request
    with pytest.raises(MalformedMessage):
        decode(ProduceRequest, 9, encoded, objects_limit=2 + 10 + 2 - 1)


def test_what_follows_a_message_is_ignored() -> None:
    encoded = encode(HeartbeatRequest(group_id="g"), 4)
    assert decode(HeartbeatRequest, 4, encoded + b"garbage") == (HeartbeatRequest(group_id="g"), len(encoded))


def test_text_that_is_not_utf_8_is_replaced_and_can_be_answered() -> None:
    data = struct.pack(">ih", 1, 5) + b"a\xff\xfeb\xc3"
    request, _ = decode(MetadataRequest, 1, data)
    assert request.topics is not None
    assert request.topics[0].name == "a\ufffd\ufffdb\ufffd"
    assert decode(MetadataRequest, 1, encode(request, 1))[0] == request


def test_the_longest_invalid_text_that_is_accepted_can_be_encoded_again() -> None:
    name = b"\xff" * 10922
    request, _ = decode(MetadataRequest, 1, struct.pack(">ih", 1, len(name)) + name)
    assert request == MetadataRequest(topics=[MetadataRequestTopic(name="\ufffd" * 10922)])
    assert decode(MetadataRequest, 1, encode(request, 1))[0] == request


def test_records_are_slices_of_the_data_and_everything_else_is_copied() -> None:
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"RR")])]
    )
    buffer = bytearray(encode(request, 9))
    decoded, _ = decode(ProduceRequest, 9, buffer)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    for index in range(len(buffer)):
        buffer[index] = 0x58
    assert bytes(records) == b"XX"
    assert decoded.topic_data[0].name == "t"
