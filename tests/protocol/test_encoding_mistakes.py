"""What we may not send is refused with the path of the value: a wrong null kills clients, so it must not leave."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.protocol.compile import decode, encode, encode_parts, encode_structs
from pykbroker.protocol.errors import UnsupportedVersion
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from pykbroker.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest, JoinGroupRequestProtocol
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from pykbroker.protocol.messages.topics import CreatableTopicResult, CreateTopicsResponse
from pykbroker.protocol.schema import Message, Struct

from .declared import messages_and_versions
from .maker import make_message


def wrong(value: object) -> Any:
    """A value that the declaration forbids."""
    return value


@pytest.mark.parametrize(
    ("message", "version", "complaint"),
    [
        (HeartbeatRequest(group_id=wrong(None)), 0, "HeartbeatRequest.group_id is None, version 0 allows no null"),
        (HeartbeatRequest(generation_id=wrong(None)), 4, "generation_id is None"),
        (HeartbeatRequest(generation_id=2**31), 4, "generation_id is 2147483648, which is no int32"),
        (HeartbeatRequest(group_id=wrong(b"bytes")), 4, "group_id is bytes, string expected"),
        (HeartbeatRequest(group_id="x" * 32768), 4, "group_id has 32768 bytes"),
        (HeartbeatRequest(group_id="x" * 32768), 0, "group_id has 32768 bytes"),
        (HeartbeatRequest(group_id="\ud800"), 0, "group_id holds a lone surrogate"),
        (
            MetadataResponse(topics=[MetadataResponseTopic(name="t"), MetadataResponseTopic(name=None)]),
            1,
            r"MetadataResponse.topics\[1\].name is None, version 1 allows no null",
        ),
        (MetadataResponse(topics=wrong(None)), 1, "topics is None"),
        (MetadataResponse(topics=wrong(["t"])), 1, r"topics\[0\] is str, MetadataResponseTopic expected"),
        (MetadataResponse(topics=[MetadataResponseTopic(topic_id=b"short")]), 12, "topic_id has 5 bytes"),
        (MetadataResponse(brokers=[MetadataResponseBroker(host=wrong(None))]), 9, r"brokers\[0\].host is None"),
        (MetadataResponse(topics=[MetadataResponseTopic(is_internal=wrong(None))]), 1, "is_internal is None"),
        (JoinGroupRequest(protocols=[JoinGroupRequestProtocol(metadata=wrong("text"))]), 0, "metadata is str"),
        (FetchRequest(replica_state=wrong(None)), 15, "replica_state is None"),
    ],
)
def test_a_value_that_does_not_fit_is_named(message: Message, version: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode(message, version)


def test_none_is_refused_wherever_the_schema_allows_no_null() -> None:
    for cls, version in messages_and_versions():
        for f in cls.__schema__.fields:
            if f.versions.includes(version) and not f.nullable.includes(version) and f.kind != "records":
                message = make_message(cls, version, 1)
                setattr(message, f.name, None)
                with pytest.raises(ValueError, match=f"{cls.__name__}.{f.name} is None"):
                    encode(message, version)


def test_a_field_that_the_version_lacks_is_dropped_if_it_may_be_and_refused_otherwise() -> None:
    # group_instance_id came with version 3 and says who the member is; throttle times may be lost.
    request = HeartbeatRequest(group_id="g", group_instance_id="i")
    with pytest.raises(UnsupportedVersion, match=r"HeartbeatRequest.group_instance_id is set"):
        encode(request, 2)
    assert decode(HeartbeatRequest, 3, encode(request, 3))[0] == request
    response = MetadataResponse(throttle_time_ms=5, cluster_id="c")
    assert decode(MetadataResponse, 0, encode(response, 0))[0] == MetadataResponse()


def test_tagged_fields_are_refused_in_versions_that_are_not_flexible() -> None:
    request = ApiVersionsRequest()
    request.unknown_tagged_fields = {5: b"x"}
    with pytest.raises(UnsupportedVersion, match="has tagged fields"):
        encode(request, 2)
    topic = MetadataRequestTopic(name="t", unknown_tagged_fields={5: b"x"})
    with pytest.raises(UnsupportedVersion, match="MetadataRequestTopic has tagged fields"):
        encode(MetadataRequest(topics=[topic]), 1)


def test_an_unknown_tag_may_not_be_one_of_the_schema() -> None:
    request = FetchRequest(cluster_id="c", unknown_tagged_fields={0: b"x"})
    with pytest.raises(ValueError, match="tag 0 is both"):
        encode(request, 12)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="FetchRequest has no version 3, only 4-18"):
        encode(FetchRequest(), 3)


class Region:
    """Record batches in a file, as the storage layer hands them out."""

    def __init__(self, size: int) -> None:
        self.size = size


def test_regions_of_records_are_parts_of_their_own() -> None:
    first, second, empty = Region(100), Region(200), Region(0)
    partitions = [
        PartitionData(partition_index=index, records=records)
        for index, records in enumerate((first, b"in memory", empty, second, None))
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    for version in (4, 11, 12, 16):
        expected = FetchResponse(
            responses=[FetchableTopicResponse(topic="t" if version < 13 else "", partitions=_in_memory(partitions))]
        )
        parts = encode_parts(response, version)
        assert [part for part in parts if not isinstance(part, bytes)] == [first, second]
        joined = b"".join(part if isinstance(part, bytes) else b"r" * part.size for part in parts)
        assert decode(FetchResponse, version, joined) == (expected, len(joined))


def _in_memory(partitions: list[PartitionData]) -> list[PartitionData]:
    return [
        PartitionData(
            partition_index=partition.partition_index,
            records=b"r" * partition.records.size if isinstance(partition.records, Region) else partition.records,
        )
        for partition in partitions
    ]


def test_encode_refuses_a_region_because_it_cannot_read_it() -> None:
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=Region(5))])])
    with pytest.raises(AssertionError, match="use encode_parts"):
        encode(response, 13)


def test_structs_compare_by_type_and_value() -> None:
    assert HeartbeatRequest(group_id="g") == HeartbeatRequest(group_id="g")
    assert HeartbeatRequest(group_id="g") != HeartbeatRequest(group_id="h")
    assert HeartbeatRequest() != HeartbeatRequest(unknown_tagged_fields={1: b""})
    other: Struct = MetadataRequest()
    assert HeartbeatRequest() != other


def test_the_text_of_an_error_is_cut_where_no_string_has_room_for_it() -> None:
    """It repeats what a client sent. The answer says the same error, and everything else of it stays."""
    longest = "x" * 32_767
    rows = [
        CreatableTopicResult(name="a", error_code=17, error_message="€" * 11_000),
        CreatableTopicResult(name="b", error_code=40, error_message=longest),
        CreatableTopicResult(name="c", error_message="short"),
    ]
    decoded, _ = decode(CreateTopicsResponse, 7, encode(CreateTopicsResponse(topics=rows), 7))
    texts = [each.error_message for each in decoded.topics]
    assert texts == ["€" * 10_921 + "…", longest, "short"]
    assert [(each.name, each.error_code) for each in decoded.topics] == [("a", 17), ("b", 40), ("c", 0)]


def test_it_is_cut_in_structs_that_are_encoded_ahead_as_well() -> None:
    rows = [CreatableTopicResult(name=name, error_message=name * 40_000) for name in "ab"]
    parts = b"".join(encode_structs(CreateTopicsResponse, rows, 7))
    fitting = [CreatableTopicResult(name=name, error_message=name * 32_764 + "…") for name in "ab"]
    assert parts == b"".join(encode_structs(CreateTopicsResponse, fitting, 7))


def test_no_other_text_is_cut() -> None:
    with pytest.raises(ValueError, match=r"topics\[0\].name has 32768 bytes"):
        encode(CreateTopicsResponse(topics=[CreatableTopicResult(name="x" * 32_768, error_message="y" * 32_768)]), 7)
