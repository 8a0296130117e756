"""Descriptions of the topologies of streams groups (KIP-1331): a member brings one, and others may look at it.

What keeps descriptions is a setting of the broker, `group.streams.topology.description.plugin.class`: nothing, or this
node's memory, which forgets them with the process. A group has at most one, for one epoch of its topology, and its
record says for which; so a description that another coordinator has kept is not asked for again, as in Kafka, and is
not there to look at. A coordinator asks for a description with the heartbeat answers of the group, and not again until
the backoff is over. The models are Kafka's `StreamsGroupTopologyDescriptionManager`, its `…Converter`, its `…Backoff`,
and `InMemoryTopologyDescriptionPlugin`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from random import Random
from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_groups import (
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from pykbroker.protocol.messages.streams_topology_descriptions import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from pykbroker.protocol.messages.streams_topology_descriptions import TopologyDescription as BroughtDescription
from pykbroker.protocol.messages.streams_topology_descriptions import TopologyDescriptionNode as BroughtNode

from ..common.context import Step
from ..common.group import Group, GroupType
from ..modern.heartbeat_rules import not_found
from ..modern.membership import known_member
from .description_backoff import backoff_after
from .streams_group import StreamsGroup, find_streams
from .streams_records import NO_DESCRIPTION, group_record_of
from .streams_replay import StreamsReplay

MOST_BYTES: Final = 1 << 20
"""How large a description may be, by `_size_of`."""
MOST_BYTES_TOGETHER: Final = 64 << 20

_BYTES_OF_NODE: Final = 500
_BYTES_OF_NAME: Final = 60


class DescriptionStatus(IntEnum):
    """Kafka's `StreamsGroupDescribeResponse.TopologyDescriptionStatus`."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class NodeType(IntEnum):
    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class TopologyDescriptions:
    """The descriptions that one node keeps in memory, those of all its shards together."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, TopologyDescription, int]] = {}
        """By group: the topology's epoch, the description, and its size in bytes."""
        self._size_bytes = 0

    def put(self, group_id: str, topology_epoch: int, description: TopologyDescription) -> None:
        """Keep the description in the place of another one of the group. Raises ApiError where there is no room."""
        size_bytes = _size_of(description)
        _, _, before_bytes = self._known.get(group_id, (0, None, 0))
        if size_bytes > MOST_BYTES:
            reason = f"The description takes {size_bytes} bytes, of {MOST_BYTES} at most."
            raise ApiError(ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, reason)
        if self._size_bytes - before_bytes + size_bytes > MOST_BYTES_TOGETHER:
            reason = f"The descriptions of all groups together take more than {MOST_BYTES_TOGETHER} bytes."
            raise ApiError(ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, reason)
        self._size_bytes += size_bytes - before_bytes
        self._known[group_id] = topology_epoch, description, size_bytes

    def get(self, group_id: str, topology_epoch: int) -> TopologyDescription | None:
        epoch, description, _ = self._known.get(group_id, (-1, None, 0))
        return description if epoch == topology_epoch else None

    def delete_all_of(self, is_gone: Callable[[str], bool]) -> None:
        """Delete the descriptions of groups that another node coordinates from now on: nobody asks here for them, and
        they would take the room of others for as long as the process lives.
        """
        for group_id in list(filter(is_gone, self._known)):
            self.delete(group_id)

    def delete(self, group_id: str) -> None:
        *_, size_bytes = self._known.pop(group_id, (0, None, 0))
        self._size_bytes -= size_bytes


class StreamsDescriptions:
    """The descriptions of a shard's streams groups. groups: the shard's groups of all types, shared with it."""

    def __init__(
        self, groups: Mapping[str, Group], records: StreamsReplay, store: TopologyDescriptions, rng: Random
    ) -> None:
        self._groups = groups
        self._records = records
        self._store = store
        self._rng = rng

    def ask(self, group: StreamsGroup, topology_epoch: int, step: Step) -> bool:
        """Tell whether a member is to bring the description. topology_epoch: of the group after the heartbeat."""
        if topology_epoch in (group.stored_description_epoch, group.failed_description_epoch):
            return False
        backoff = group.description_backoff
        if backoff is not None and backoff.is_active(topology_epoch, step.now_ms):
            return False
        group.description_backoff = backoff_after(backoff, topology_epoch, step.now_ms, self._rng)
        return True

    def update(
        self, request: StreamsGroupTopologyDescriptionUpdateRequest, step: Step
    ) -> StreamsGroupTopologyDescriptionUpdateResponse:
        """Keep the description that a member has brought, and note in the group's record whether it is kept."""
        try:
            self._update(request, step)
        except ApiError as error:
            return StreamsGroupTopologyDescriptionUpdateResponse(error_code=error.code, error_message=error.message)
        return StreamsGroupTopologyDescriptionUpdateResponse()

    def _update(self, request: StreamsGroupTopologyDescriptionUpdateRequest, step: Step) -> None:
        """Raises ApiError."""
        group = find_streams(self._groups, request.group_id)
        if group is None:
            raise not_found(self._groups, request.group_id, GroupType.STREAMS, "Group")
        known_member(group, request.member_id)
        epoch, current = request.topology_epoch, group.topology_epoch
        if epoch != current:
            words = f"Topology epoch {epoch} does not match the group's current topology epoch {current}."
            raise ApiError(ErrorCode.INVALID_REQUEST, words)
        description = converted(request.topology_description)
        try:
            self._store.put(group.group_id, epoch, description)
        except ApiError:
            self._note(group, group.stored_description_epoch, epoch, step)
            raise
        group.description_backoff = None
        self._note(group, epoch, group.failed_description_epoch, step)

    def _note(self, group: StreamsGroup, stored: int, failed: int, step: Step) -> None:
        if (stored, failed) != (group.stored_description_epoch, group.failed_description_epoch):
            record = group_record_of(group, stored_description_epoch=stored, failed_description_epoch=failed)
            self._records.change(record, step)

    def describe(self, group: StreamsGroup) -> tuple[DescriptionStatus, TopologyDescription | None]:
        stored = group.stored_description_epoch
        if stored == NO_DESCRIPTION or stored != group.topology_epoch:
            return DescriptionStatus.NOT_STORED, None
        found = self._store.get(group.group_id, stored)
        return (DescriptionStatus.NOT_STORED if found is None else DescriptionStatus.AVAILABLE), found

    def forget(self, group_id: str) -> None:
        """The group is deleted."""
        self._store.delete(group_id)


def converted(brought: BroughtDescription) -> TopologyDescription:
    """The description as it is shown: each node has the fields of its type, and names it once. Raises ApiError."""
    return TopologyDescription(
        subtopologies=[
            TopologyDescriptionSubtopology(subtopology_id=each.subtopology_id, nodes=list(map(_converted, each.nodes)))
            for each in brought.subtopologies
        ],
        global_stores=[_store_of(each.source, each.processor) for each in brought.global_stores],
    )


def _store_of(source: BroughtNode, processor: BroughtNode) -> TopologyDescriptionGlobalStore:
    store = TopologyDescriptionGlobalStore(source=_converted(source), processor=_converted(processor))
    if source.node_type != NodeType.SOURCE or processor.node_type != NodeType.PROCESSOR:
        words = "Global store must be composed of a source and a processor node."
        raise ApiError(ErrorCode.INVALID_REQUEST, words)
    return store


def _converted(node: BroughtNode) -> TopologyDescriptionNode:
    shown = TopologyDescriptionNode(name=node.name, node_type=node.node_type, successors=_once(node.successors))
    match node.node_type:
        case NodeType.SOURCE:
            shown.source_topics = _once(node.source_topics)
        case NodeType.PROCESSOR:
            shown.stores = _once(node.stores)
        case NodeType.SINK:
            shown.sink_topic = node.sink_topic
        case other:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown topology node type: {other}")
    return shown


def _once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _size_of(description: TopologyDescription) -> int:
    """Estimate the memory that a description takes."""
    names = (name for node in _nodes(description) for name in _names(node))
    nodes = sum(1 for _ in _nodes(description))
    ids = sum(len(each.subtopology_id) + _BYTES_OF_NAME for each in description.subtopologies)
    return nodes * _BYTES_OF_NODE + ids + sum(len(name) + _BYTES_OF_NAME for name in names)


def _nodes(description: TopologyDescription) -> Iterator[TopologyDescriptionNode]:
    for each in description.subtopologies:
        yield from each.nodes
    for store in description.global_stores:
        yield from (store.source, store.processor)


def _names(node: TopologyDescriptionNode) -> Iterator[str]:
    yield node.name
    yield node.sink_topic or ""
    for names in (node.source_topics, node.stores, node.successors):
        yield from names
