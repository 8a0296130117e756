"""The consumer rebalance protocol, in which the broker assigns (KIP-848)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible="0+", listeners="broker"):
    """Joins, stays in and leaves a group; absent values mean "unchanged" (KIP-848).

    v1 adds subscription by regular expression, and member ids that the client chooses (KIP-1082).
    """

    group_id: str = field("string")
    member_id: str = field("string")
    member_epoch: int = field("int32")
    instance_id: str | None = field("string", nullable="0+", default=None)
    rack_id: str | None = field("string", nullable="0+", default=None)
    rebalance_timeout_ms: int = field("int32", default=-1)
    subscribed_topic_names: list[str] | None = field("[]string", nullable="0+", default=None)
    subscribed_topic_regex: str | None = field("string", "1+", nullable="1+", default=None)
    server_assignor: str | None = field("string", nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = field(
        "[]struct", nullable="0+", default=None
    )


class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible="0+"):
    """The member's epoch, and its assignment when that has changed (KIP-848)."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    member_id: str | None = field("string", nullable="0+", default=None)
    member_epoch: int = field("int32")
    heartbeat_interval_ms: int = field("int32")
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = field("struct", nullable="0+", default=None)


class ConsumerGroupHeartbeatResponseAssignment(Struct):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = field("[]struct")


class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible="0+", listeners="broker"):
    """The request asks for groups of the consumer protocol in detail (KIP-848)."""

    group_ids: list[str] = field("[]string")
    include_authorized_operations: bool = field("bool")


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
    """Epochs and members with current and target assignment (KIP-848).

    v1 adds the member type (KIP-1099).
    """

    throttle_time_ms: int = field("int32")
    groups: list[DescribedGroup] = field("[]struct")


class DescribedGroup(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    group_id: str = field("string")
    group_state: str = field("string")
    group_epoch: int = field("int32")
    assignment_epoch: int = field("int32")
    assignor_name: str = field("string")
    members: list[Member] = field("[]struct")
    authorized_operations: int = field("int32", default=-2147483648)


class Member(Struct):
    member_id: str = field("string")
    instance_id: str | None = field("string", nullable="0+", default=None)
    rack_id: str | None = field("string", nullable="0+", default=None)
    member_epoch: int = field("int32")
    client_id: str = field("string")
    client_host: str = field("string")
    subscribed_topic_names: list[str] = field("[]string")
    subscribed_topic_regex: str | None = field("string", nullable="0+", default=None)
    assignment: ConsumerGroupDescribeResponseAssignment = field("struct")
    target_assignment: ConsumerGroupDescribeResponseAssignment = field("struct")
    member_type: int = field("int8", "1+", default=-1, ignorable=True)


class ConsumerGroupDescribeResponseAssignment(Struct):
    topic_partitions: list[ConsumerGroupDescribeResponseTopicPartitions] = field("[]struct")


class ConsumerGroupDescribeResponseTopicPartitions(Struct):
    topic_id: bytes = field("uuid")
    topic_name: str = field("string")
    partitions: list[int] = field("[]int32")
