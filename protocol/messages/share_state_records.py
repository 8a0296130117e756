"""Records of `__share_group_state` (KIP-932)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ShareSnapshotKey(Message, api_key=0, versions="0", flexible="none"):
    """A share partition."""

    group_id: str = field("string", "0")
    topic_id: bytes = field("uuid", "0")
    partition: int = field("int32", "0")


class ShareSnapshotValue(Message, api_key=0, versions="0", flexible="0+"):
    """The whole state of a share partition.

    It also tells how many deliveries are complete (KIP-1226).
    """

    snapshot_epoch: int = field("int32")
    state_epoch: int = field("int32")
    leader_epoch: int = field("int32")
    start_offset: int = field("int64")
    delivery_complete_count: int = field("int32", default=-1, tag=0, tagged="0+")
    create_timestamp: int = field("int64")
    write_timestamp: int = field("int64")
    state_batches: list[StateBatch] = field("[]struct")


class StateBatch(Struct):
    first_offset: int = field("int64")
    last_offset: int = field("int64")
    delivery_state: int = field("int8")
    delivery_count: int = field("int16")


class ShareUpdateKey(Message, api_key=1, versions="0", flexible="none"):
    """A share partition."""

    group_id: str = field("string", "0")
    topic_id: bytes = field("uuid", "0")
    partition: int = field("int32", "0")


class ShareUpdateValue(Message, api_key=1, versions="0", flexible="0+"):
    """A change to the last snapshot's state.

    It also tells how many deliveries are complete (KIP-1226).
    """

    snapshot_epoch: int = field("int32")
    leader_epoch: int = field("int32")
    start_offset: int = field("int64")
    delivery_complete_count: int = field("int32", default=-1, tag=0, tagged="0+")
    state_batches: list[StateBatch] = field("[]struct")
