"""The bytes that consumers pass through the classic protocol: a version, then a subscription or an assignment.

Both are read in the newest version that is known when a peer wrote a newer one: new versions only append.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TypeVar

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from pykbroker.protocol.schema import Message
from pykbroker.protocol.topic_partition import TopicPartition

from .errors import NotConsumerProtocol

MessageT = TypeVar("MessageT", bound=Message)

_VERSION = struct.Struct(">h")
_WRITTEN_VERSION = 1
"""The eager protocol needs neither generations nor racks."""


def encode_subscription(topics: Sequence[str]) -> bytes:
    return _VERSION.pack(_WRITTEN_VERSION) + encode(ConsumerProtocolSubscription(topics=list(topics)), _WRITTEN_VERSION)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, ConsumerProtocolAssignmentTopicPartition] = {}
    for of in partitions:
        row = topics.setdefault(of.topic, ConsumerProtocolAssignmentTopicPartition(topic=of.topic))
        row.partitions.append(of.partition)
    assignment = ConsumerProtocolAssignment(assigned_partitions=list(topics.values()))
    return _VERSION.pack(_WRITTEN_VERSION) + encode(assignment, _WRITTEN_VERSION)


def decode_topics(metadata: bytes) -> list[str]:
    """Return the topics to which a member subscribes. Raises NotConsumerProtocol."""
    return list(_decode(ConsumerProtocolSubscription, metadata).topics)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """No bytes at all stand for no partitions. Raises NotConsumerProtocol."""
    if not data:
        return []
    rows = _decode(ConsumerProtocolAssignment, data).assigned_partitions
    return [TopicPartition(row.topic, partition) for row in rows for partition in row.partitions]


def _decode(message_type: type[MessageT], data: bytes) -> MessageT:
    if len(data) < _VERSION.size:
        raise NotConsumerProtocol(f"{len(data)} bytes are no {message_type.__name__}")
    (version,) = _VERSION.unpack_from(data)
    known = min(version, message_type.__schema__.versions.high)
    if known < 0:
        raise NotConsumerProtocol(f"{message_type.__name__} of version {version}")
    try:
        return decode(message_type, known, data, _VERSION.size)[0]
    except MalformedMessage as error:
        raise NotConsumerProtocol(f"A group's {message_type.__name__} cannot be read: {error}") from error
