"""Elements that were encoded ahead give the bytes that they give in their message, and large ones are not copied."""

from __future__ import annotations

import pytest

from pykbroker.protocol.compile import encode, encode_parts, encode_structs
from pykbroker.protocol.encoded_structs import SHARED_BYTES, EncodedStructs
from pykbroker.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

TOPICS = [
    MetadataResponseTopic(
        name=name,
        partitions=[MetadataResponsePartition(partition_index=index, replica_nodes=[1, 2]) for index in range(count)],
    )
    for name, count in (("none", 0), ("some", 3), ("many", 200))
]


@pytest.mark.parametrize("version", range(14))
def test_they_are_the_same_bytes(version: int) -> None:
    parts = encode_structs(MetadataResponse, TOPICS[:1], version) + encode_structs(
        MetadataResponse, TOPICS[1:], version
    )
    ahead = EncodedStructs(len(TOPICS), parts, version).of(MetadataResponseTopic)
    expected = encode(MetadataResponse(topics=TOPICS, cluster_id="c"), version)
    assert encode(MetadataResponse(topics=ahead, cluster_id="c"), version) == expected


@pytest.mark.parametrize("version", range(14))
def test_within_other_structs_as_well(version: int) -> None:
    partitions = TOPICS[2].partitions
    parts = encode_structs(MetadataResponse, partitions, version)
    ahead = EncodedStructs(len(partitions), parts, version).of(MetadataResponsePartition)
    nested = MetadataResponse(topics=[MetadataResponseTopic(name="many", partitions=ahead)])
    assert encode(nested, version) == encode(MetadataResponse(topics=TOPICS[2:]), version)


def test_a_large_part_is_handed_on_as_it_is() -> None:
    parts = encode_structs(MetadataResponse, TOPICS, 13)
    assert len(parts) == 1
    assert len(parts[0]) > SHARED_BYTES
    ahead = EncodedStructs(len(TOPICS), parts, 13).of(MetadataResponseTopic)
    encoded = encode_parts(MetadataResponse(topics=ahead), 13)
    assert sum(part is parts[0] for part in encoded) == 1
    assert len(encoded) == 3


def test_bytes_of_another_version_are_refused() -> None:
    ahead = EncodedStructs(3, encode_structs(MetadataResponse, TOPICS, 12), 12).of(MetadataResponseTopic)
    with pytest.raises(ValueError, match="topics is encoded for version 12, not 13"):
        encode(MetadataResponse(topics=ahead), 13)


def test_what_cannot_be_encoded_is_named() -> None:
    with pytest.raises(ValueError, match="leader_id is 2147483648, which is no int32"):
        encode_structs(MetadataResponse, [MetadataResponsePartition(leader_id=2**31)], 13)
