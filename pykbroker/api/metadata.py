"""Metadata (key 3): brokers, and the partitions of some or all topics, which may be created on the way.

Served are versions 0 to 13: in 0 an empty list of topics is all of them, since 1 it is none; 4 lets the client forbid
creation (KIP-204); 8 to 10 tell of the cluster's authorized operations (KIP-430); 12 takes topic ids (KIP-516).
A topic that is to be created is unknown in the answer, as in Kafka, and the client asks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykbroker.metadata.image import TopicState
from pykbroker.metadata.request_pieces import MAX_PARTITIONS
from pykbroker.metadata.topic_names import invalid_reason, is_internal
from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.server.network.handlers import CloseConnection, RequestContext
from pykbroker.server.node.broker import Broker, ClusterNode
from pykbroker.server.node.handlers import handles

from .authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS

_EMPTY_IS_NONE_SINCE: Final = 1
_TOPIC_IDS_SINCE: Final = 12

_STEPS_OF_CHECK: Final = 2
_STEPS_OF_UNKNOWN: Final = 8
_UNKNOWN_AT_ONCE: Final = 250


@handles(MetadataRequest)
async def metadata(context: RequestContext[Broker], request: MetadataRequest) -> MetadataResponse:
    """The brokers are told last: what the topics say of leaders was true before, and no leader is newer than they."""
    broker = context.node
    description = _Description(context, TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED)
    if _wants_all(context, request):
        topics = await description.of_all()
    else:
        topics = await _named_or_created(context, request, description)
    image = broker.image
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.id, host=endpoint.host, port=endpoint.port, rack=each.rack)
            for each in image.live_brokers
            if (endpoint := each.endpoint(context.listener_name)) is not None
        ],
        cluster_id=broker.cluster_id,
        controller_id=controller_id(broker),
        topics=topics.of(MetadataResponseTopic),
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def controller_id(node: ClusterNode) -> int:
    """Clients send admin requests to any live broker, since it passes them on to the controller (KIP-590)."""
    if node.image.is_alive(node.node_id):
        return node.node_id
    return next((each.id for each in node.image.live_brokers), -1)


def _wants_all(context: RequestContext[Broker], request: MetadataRequest) -> bool:
    return request.topics is None or (not request.topics and context.header.api_version < _EMPTY_IS_NONE_SINCE)


async def _named_or_created(
    context: RequestContext[Broker], request: MetadataRequest, description: _Description
) -> EncodedStructs:
    wanted, turn = request.topics or [], context.turn
    ids = await turn.distinct(each.topic_id for each in wanted)
    names = await turn.distinct(each.name for each in wanted)
    ids.pop(NO_UUID, None)
    if context.header.api_version < _TOPIC_IDS_SINCE and (ids or None in names):
        raise CloseConnection("Metadata by topic id needs version 12")
    if ids:
        return await description.of_ids(ids)  # the names beside them do not count
    named = [name for name in names if name is not None]
    if request.allow_auto_topic_creation and context.node.config.bool("auto.create.topics.enable"):
        await _create_missing(context, named)
    return await description.of_names(named)


async def _create_missing(context: RequestContext[Broker], names: Iterable[str]) -> None:
    """Internal topics are created by those who need them."""
    missing = []
    for name in names:
        if context.node.image.topic(name) is None:
            await context.turn.took(_STEPS_OF_CHECK)
            if invalid_reason(name) is None and not is_internal(name):
                missing.append(name)
    if len(missing) <= MAX_PARTITIONS:  # of more, the controller would refuse every one
        context.node.auto_topic_creation.create(missing)


class _Description:
    """The topics of one answer, most of which were encoded for others before."""

    def __init__(self, context: RequestContext[Broker], operations: int) -> None:
        version = context.header.api_version
        self._broker = context.node
        self._turn = context.turn
        self._operations = operations
        self._known = context.node.encoded_topics.of(context.listener_name, version, operations)
        self._answer = EncodedArray(MetadataResponse, version)
        self._unknown: list[MetadataResponseTopic] = []

    async def of_all(self) -> EncodedStructs:
        """A request that comes while all topics are encoded for another one waits for that."""
        found = self._known.find_all(self._broker.image)
        if found is not None:
            return found
        async with self._broker.encoding_all_topics:
            return self._known.find_all(self._broker.image) or await self._encode_all()

    async def _encode_all(self) -> EncodedStructs:
        image = self._broker.image
        revision = image.revision
        for name in list(image.topics):
            topic = self._broker.image.topic(name)
            if topic is not None:
                await self._add(topic)
        answer = self._answer.finish()
        if self._broker.image is image and image.revision == revision:
            self._known.keep_all(image, revision, answer)
        return answer

    async def of_ids(self, ids: Iterable[bytes]) -> EncodedStructs:
        for topic_id in ids:
            topic = self._broker.image.topic_by_id(topic_id)
            if topic is not None:
                await self._add(topic)
            else:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
                await self._add_unknown(MetadataResponseTopic(error_code=unknown, name=None, topic_id=topic_id))
        return self._finish()

    async def of_names(self, names: Iterable[str]) -> EncodedStructs:
        for name in names:
            topic = self._broker.image.topic(name)
            if topic is not None:
                await self._add(topic)
            else:
                await self._add_unknown(self._unknown_name(name))
        return self._finish()

    async def _add(self, topic: TopicState) -> None:
        self._add_encoded_unknown()
        image = self._broker.image
        parts = self._known.find(image, topic)
        if parts is None:
            parts = await self._turn.through(self._known.encode(image, topic))
        self._answer.add_parts(parts)
        await self._turn.took(2 + len(parts) // 2)

    def _unknown_name(self, name: str) -> MetadataResponseTopic:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if invalid_reason(name) is not None:
            unknown = ErrorCode.INVALID_TOPIC_EXCEPTION
        return MetadataResponseTopic(
            error_code=unknown,
            name=name,
            is_internal=is_internal(name),
            topic_authorized_operations=self._operations,
        )

    async def _add_unknown(self, topic: MetadataResponseTopic) -> None:
        """Many of them at a time are encoded, and forgotten: as objects they would take ten times the room."""
        self._unknown.append(topic)
        if len(self._unknown) >= _UNKNOWN_AT_ONCE:
            self._add_encoded_unknown()
        await self._turn.took(_STEPS_OF_UNKNOWN)

    def _add_encoded_unknown(self) -> None:
        if self._unknown:
            self._answer.add(self._unknown)
            self._unknown.clear()

    def _finish(self) -> EncodedStructs:
        self._add_encoded_unknown()
        return self._answer.finish()
