"""Records of `__consumer_offsets` for streams groups (KIP-1071)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class StreamsGroupMetadataKey(Message, api_key=17, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class StreamsGroupMetadataValue(Message, api_key=17, versions="0", flexible="0+"):
    """The group's epoch, a hash over its topics (KIP-1101), and the assignment's last configuration.

    The last two say of which topology a description is stored, and of which one was refused (KIP-1331); -1 is none.
    """

    epoch: int = field("int32")
    metadata_hash: int = field("int64")
    validated_topology_epoch: int = field("int32", default=-1, tag=0, tagged="0+")
    last_assignment_configs: list[LastAssignmentConfig] | None = field("[]struct", nullable="0+", tag=1, tagged="0+")
    stored_description_topology_epoch: int = field("int32", default=-1, tag=2, tagged="0+")
    failed_description_topology_epoch: int = field("int32", default=-1, tag=3, tagged="0+")


class LastAssignmentConfig(Struct):
    key: str = field("string")
    value: str = field("string")


class StreamsGroupMemberMetadataKey(Message, api_key=19, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class StreamsGroupMemberMetadataValue(Message, api_key=19, versions="0", flexible="0+"):
    """The record says what a member has said of itself."""

    instance_id: str | None = field("string", nullable="0+")
    rack_id: str | None = field("string", nullable="0+")
    client_id: str = field("string")
    client_host: str = field("string")
    rebalance_timeout_ms: int = field("int32", default=-1)
    topology_epoch: int = field("int32")
    process_id: str = field("string")
    user_endpoint: Endpoint | None = field("struct", nullable="0+", default=None)
    client_tags: list[KeyValue] = field("[]struct")


class Endpoint(Struct):
    host: str = field("string")
    port: int = field("uint16")


class KeyValue(Struct):
    key: str = field("string")
    value: str = field("string")


class StreamsGroupTargetAssignmentMetadataKey(Message, api_key=20, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class StreamsGroupTargetAssignmentMetadataValue(Message, api_key=20, versions="0", flexible="0+"):
    """The epoch of the target assignment, and when it was computed (KIP-1263)."""

    assignment_epoch: int = field("int32")
    assignment_timestamp: int = field("int64", tag=0, tagged="0+", ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(Message, api_key=21, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class StreamsGroupTargetAssignmentMemberValue(Message, api_key=21, versions="0", flexible="0+"):
    """The tasks that the member should have."""

    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = field("[]struct")
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = field("[]struct")
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = field("[]struct")


class StreamsGroupTargetAssignmentMemberValueTaskIds(Struct):
    subtopology_id: str = field("string")
    partitions: list[int] = field("[]int32")


class StreamsGroupCurrentMemberAssignmentKey(Message, api_key=22, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class StreamsGroupCurrentMemberAssignmentValue(Message, api_key=22, versions="0", flexible="0+"):
    """The tasks that the member has, those it must give up, and its epochs."""

    member_epoch: int = field("int32")
    previous_member_epoch: int = field("int32")
    state: int = field("int8")
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field("[]struct")
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field("[]struct")
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field("[]struct")
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field("[]struct")
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field("[]struct")
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field("[]struct")


class StreamsGroupCurrentMemberAssignmentValueTaskIds(Struct):
    subtopology_id: str = field("string")
    partitions: list[int] = field("[]int32")
    assignment_epochs: list[int] | None = field("[]int32", nullable="0+", tag=0, tagged="0+")


class StreamsGroupTopologyKey(Message, api_key=23, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class StreamsGroupTopologyValue(Message, api_key=23, versions="0", flexible="0+"):
    """The topology as the members brought it."""

    epoch: int = field("int32")
    subtopologies: list[Subtopology] = field("[]struct")


class Subtopology(Struct):
    subtopology_id: str = field("string")
    source_topics: list[str] = field("[]string")
    source_topic_regex: list[str] = field("[]string")
    state_changelog_topics: list[TopicInfo] = field("[]struct")
    repartition_sink_topics: list[str] = field("[]string")
    repartition_source_topics: list[TopicInfo] = field("[]struct")
    copartition_groups: list[CopartitionGroup] = field("[]struct")


class TopicInfo(Struct):
    name: str = field("string")
    partitions: int = field("int32")
    replication_factor: int = field("int16")
    topic_configs: list[TopicConfig] = field("[]struct")


class TopicConfig(Struct):
    key: str = field("string")
    value: str = field("string")


class CopartitionGroup(Struct):
    source_topics: list[int] = field("[]int16")
    source_topic_regex: list[int] = field("[]int16")
    repartition_source_topics: list[int] = field("[]int16")
