"""The embedded consumer protocol: subscriptions in the bytes of JoinGroup, and assignments in those of SyncGroup.

A coordinator reads and writes these bytes for members of the classic protocol in a consumer group (KIP-848), because
there the coordinator assigns partitions, not a member. The model is Kafka's `ConsumerProtocol`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from pykbroker.protocol.schema import MessageT

from ..common.subscription import VERSION_PREFIX_BYTES
from ..common.topics import TopicsView

MOST_ENTRIES: Final = 50_000
"""Topics and partitions, counted together, that are read at once: they take some 40 ms, in which nobody else is served.
Kafka has no bound.
"""
OLDEST_VERSION = 0
NEWEST_VERSION = 3
_INT16 = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class EmbeddedSubscription:
    """A consumer's subscription.

    owned: by topic id, of the topics that exist. It is empty in version 0, which has no field for it.
    """

    topic_names: tuple[str, ...]
    rack_id: str | None
    owned: Mapping[bytes, frozenset[int]]


def read_subscription(data: bytes, topics: TopicsView) -> EmbeddedSubscription:
    """Decode a subscription. Raises MalformedMessage."""
    parsed = _read(ConsumerProtocolSubscription, data)
    owned = _by_topic_id(((topic.topic, topic.partitions) for topic in parsed.owned_partitions), topics)
    return EmbeddedSubscription(tuple(sorted(set(parsed.topics))), parsed.rack_id or None, owned)


def read_assignment(data: bytes, topics: TopicsView) -> tuple[dict[bytes, frozenset[int]], bool]:
    """The partitions by topic id, and whether there is user data, which only the members' own assignor understands.

    Empty bytes are those of a member that nothing was assigned to yet. Raises MalformedMessage.
    """
    if not data:
        return {}, False
    parsed = _read(ConsumerProtocolAssignment, data)
    named = ((topic.topic, topic.partitions) for topic in parsed.assigned_partitions if topic.partitions)
    return _by_topic_id(named, topics), bool(parsed.user_data)


def write_assignment(partitions: Mapping[bytes, Iterable[int]], subscription: bytes, topics: TopicsView) -> bytes:
    """The assignment in the version of the member's subscription. Where a log has other bytes in the subscription's
    place, the version is the oldest one, which every client reads."""
    try:
        version = _version(subscription)
    except MalformedMessage:
        version = OLDEST_VERSION
    named = {topics.topic_name(topic_id): sorted(each) for topic_id, each in partitions.items()}
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=each)
            for name, each in named.items()
            if name is not None
        ]
    )
    return _INT16.pack(version) + encode(message, version)


def _by_topic_id(named: Iterable[tuple[str, list[int]]], topics: TopicsView) -> dict[bytes, frozenset[int]]:
    """A topic may be named many thousand times: what is known of it grows in place."""
    found: dict[bytes, set[int]] = {}
    for name, partitions in named:
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            found.setdefault(topic_id, set()).update(partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}


def _read(type_: type[MessageT], data: bytes) -> MessageT:
    """Bytes behind the end of the message belong to a later version, and are ignored."""
    message, _ = decode(type_, _version(data), data, VERSION_PREFIX_BYTES, objects_limit=MOST_ENTRIES)
    return message


def _version(data: bytes) -> int:
    if len(data) < VERSION_PREFIX_BYTES:
        raise MalformedMessage("no version")
    (version,) = _INT16.unpack_from(data)
    if version < 0:
        raise MalformedMessage(f"version {version}")
    return min(int(version), NEWEST_VERSION)
