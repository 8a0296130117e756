"""Descriptions of the topologies of Kafka Streams, for those who look at a streams group (KIP-1331)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class StreamsGroupTopologyDescriptionUpdateRequest(
    Message, api_key=93, versions="0", flexible="0+", listeners="broker"
):
    """A member brings the description of its group's topology, which its broker has asked for."""

    group_id: str = field("string")
    member_id: str = field("string")
    topology_epoch: int = field("int32")
    topology_description: TopologyDescription = field("struct")


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = field("[]struct")
    global_stores: list[TopologyDescriptionGlobalStore] = field("[]struct")


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = field("string")
    nodes: list[TopologyDescriptionNode] = field("[]struct")


class TopologyDescriptionNode(Struct):
    name: str = field("string")
    node_type: int = field("int8")
    source_topics: list[str] = field("[]string")
    sink_topic: str | None = field("string", nullable="0+", default=None)
    stores: list[str] = field("[]string")
    successors: list[str] = field("[]string")


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field("struct")
    processor: TopologyDescriptionNode = field("struct")


class StreamsGroupTopologyDescriptionUpdateResponse(Message, api_key=93, versions="0", flexible="0+"):
    """The response says whether the description was stored."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
