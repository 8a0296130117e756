"""Records of `__consumer_offsets` that the classic protocol writes. A key's API key is its type id."""

from __future__ import annotations

from ..schema import Message, Struct, field


class OffsetCommitKey(Message, api_key=1, versions="0", flexible="none"):
    """Whose offset it is: a group's, for a partition."""

    group: str = field("string", "0")
    topic: str = field("string", "0")
    partition: int = field("int32", "0")


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible="4+"):
    """A committed offset.

    v1 had an expiry of its own (KIP-211 dropped it again), v3 adds the leader epoch (KIP-320), v4 is flexible
    (KIP-915) and carries the topic id.
    """

    offset: int = field("int64")
    leader_epoch: int = field("int32", "3+", default=-1, ignorable=True)
    metadata: str = field("string")
    commit_timestamp: int = field("int64")
    expire_timestamp: int = field("int64", "1", default=-1, ignorable=True)
    topic_id: bytes = field("uuid", "4+", tag=0, tagged="4+", ignorable=True)


class LegacyOffsetCommitKey(Message, api_key=0, versions="0", flexible="none"):
    """The first form of an offset's key. Old logs hold it."""

    group: str = field("string", "0")
    topic: str = field("string", "0")
    partition: int = field("int32", "0")


class LegacyOffsetCommitValue(Message, api_key=0, versions="0", flexible="none"):
    """The first form of an offset's value. Old logs hold it."""

    offset: int = field("int64", "0")
    metadata: str = field("string", "0")
    commit_timestamp: int = field("int64", "0")


class GroupMetadataKey(Message, api_key=2, versions="0", flexible="none"):
    """The group."""

    group: str = field("string", "0")


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible="4+"):
    """A classic group after a rebalance, with its members' assignments.

    v1 adds rebalance timeouts (KIP-62), v2 the time of the last change (KIP-211), v3 instance ids (KIP-345), v4 is
    flexible (KIP-915).
    """

    protocol_type: str = field("string")
    generation: int = field("int32")
    protocol: str | None = field("string", nullable="0+")
    leader: str | None = field("string", nullable="0+")
    current_state_timestamp: int = field("int64", "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field("[]struct")


class MemberMetadata(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None, ignorable=True)
    client_id: str = field("string")
    client_host: str = field("string")
    rebalance_timeout: int = field("int32", "1+", default=-1, ignorable=True)
    session_timeout: int = field("int32")
    subscription: bytes = field("bytes")
    assignment: bytes = field("bytes")
