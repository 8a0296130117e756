"""The topics in a consumer's subscription.

The coordinator reads a subscription for two purposes. It refuses OffsetDelete for a topic that a member is subscribed
to: every version of the format begins as version 0 does, so the bytes are read as version 0, whatever version they
claim. And it refuses a member whose subscription Apache Kafka could not load.
"""

from __future__ import annotations

import struct

from pykbroker.long_work import PORTION, LongWork, whole
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
VERSION_PREFIX_BYTES = 2

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """The names of the topics; None where the bytes are not a subscription."""
    try:
        parsed, _ = decode(ConsumerProtocolSubscription, 0, subscription, VERSION_PREFIX_BYTES)
    except MalformedMessage:
        return None
    return frozenset(parsed.topics)


def topic_count(subscription: bytes) -> int:
    """Return how many topics the bytes claim to name."""
    if len(subscription) < VERSION_PREFIX_BYTES + _INT32.size:
        return 0
    return max(int(_INT32.unpack_from(subscription, VERSION_PREFIX_BYTES)[0]), 0)


def is_loadable(subscription: bytes) -> bool:
    """`look_if_loadable` in one turn."""
    return whole(look_if_loadable(subscription))


def look_if_loadable(subscription: bytes) -> LongWork[bool]:
    """Tell whether Apache Kafka can load a group with such a member.

    Kafka treats bytes that end in front of a number as no subscription. But it fails on an impossible count or length,
    and then it cannot load any group of that partition of `__consumer_offsets`. Kafka never answers the JoinGroup of
    such a member.
    """
    try:
        yield from _Walk(subscription).pass_subscription()
    except _EndsEarly:
        return True
    except _CannotBe:
        return False
    return True


class _EndsEarly(Exception):
    pass


class _CannotBe(Exception):
    pass


class _Walk:
    """Walks over a subscription in the version that it claims, or the newest known one, without building objects: there
    may be very many topics and partitions."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def pass_subscription(self) -> LongWork[None]:
        version = self._number(_INT16)
        if version < 0:
            raise _EndsEarly
        for number in range(self._count()):
            self._pass_bytes(self._number(_INT16))
            if not number % PORTION:
                yield PORTION // 2
        self._pass_nullable_bytes(_INT32)
        if version >= 1:
            for number in range(self._count()):
                self._pass_bytes(self._number(_INT16))
                self._pass_numbers(self._count())
                if not number % PORTION:
                    yield PORTION
        if version >= 2:
            self._number(_INT32)
        if version >= 3:
            self._pass_nullable_bytes(_INT16)

    def _number(self, kind: struct.Struct) -> int:
        at = self._at
        self._at = end = at + kind.size
        if end > len(self._data):
            raise _EndsEarly
        number: int = kind.unpack_from(self._data, at)[0]
        return number

    def _count(self) -> int:
        count = self._number(_INT32)
        if not 0 <= count <= len(self._data) - self._at:
            raise _CannotBe
        return count

    def _pass_numbers(self, count: int) -> None:
        self._at += count * _INT32.size
        if self._at > len(self._data):
            raise _EndsEarly

    def _pass_nullable_bytes(self, kind: struct.Struct) -> None:
        self._pass_bytes(max(self._number(kind), 0))

    def _pass_bytes(self, size: int) -> None:
        if not 0 <= size <= len(self._data) - self._at:
            raise _CannotBe
        self._at += size
