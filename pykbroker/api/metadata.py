"""Metadata (key 3): brokers, and the partitions of some or all topics, which may be created on the way.

Served are versions 0 to 13: in 0 an empty list of topics is all of them, since 1 it is none; 4 lets the client forbid
creation (KIP-204); 8 to 10 tell of the cluster's authorized operations (KIP-430); 12 takes topic ids (KIP-516).
A topic that is to be created is unknown in the answer, as in Kafka, and the client asks again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final

from pykbroker.long_work import LongWork
from pykbroker.metadata.encoded_topics import EncodedTopics
from pykbroker.metadata.image import TopicState
from pykbroker.metadata.request_pieces import MAX_PARTITIONS
from pykbroker.metadata.topic_names import invalid_reason, is_internal
from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import ConnectionState, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.network.transport import Address
from pykbroker.server.node.broker import Broker, ClusterNode
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorization import (
    NOT_ASKED,
    authorized_operations,
    authorized_operations_on_cluster,
    denied,
    is_allowed,
    is_allowed_on_cluster,
)
from .broker_endpoint import broker_endpoint
from .coordinator_topics import coordinators_topic

_EMPTY_IS_NONE_SINCE: Final = 1
_TOPIC_IDS_SINCE: Final = 12
_LOOKED_AT: Final = 10

_STEPS_OF_CHECK: Final = 2
_STEPS_OF_UNKNOWN: Final = 8
_UNKNOWN_AT_ONCE: Final = 250


def _made_of(broker: Broker) -> tuple[object, int] | None:
    """Return what the topics and brokers of answers come from; None where what clients may see differs."""
    image = broker.image
    return None if broker.authorizer is not None else (image, image.revision)


@handles(
    MetadataRequest,
    needs=names(
        (Operation.DESCRIBE, ResourceType.TOPIC),
        (Operation.CREATE, ResourceType.CLUSTER),
        (Operation.CREATE, ResourceType.TOPIC),
        (Operation.DESCRIBE, ResourceType.CLUSTER),
    ),
    made_of=_made_of,
)
async def metadata(context: RequestContext[Broker], request: MetadataRequest) -> MetadataResponse:
    """The brokers are told last: what the topics say of leaders was true before, and no leader is newer than they."""
    broker = context.node
    description = _Description(context, tells_operations=request.include_topic_authorized_operations)
    if _wants_all(context, request):
        topics = await description.of_all()
    else:
        try:
            topics = await _named_or_created(context, request, description)
        except ApiError as error:
            return await context.turn.through(_all_refused(request, error.code))
    image = broker.image
    where = _where_all_is(context, request.topics) if request.topics and len(image.brokers) == 1 else None
    if where is not None:
        _note_question(where, context.connection)
    if description.is_of_known and context.connection.reached is None:
        context.repeat = _note_nothing if where is None else partial(_note_question, where)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.id, host=endpoint.host, port=endpoint.port, rack=each.rack)
            for each in image.live_brokers
            if (endpoint := broker_endpoint(context, each)) is not None
        ],
        cluster_id=broker.cluster_id,
        controller_id=controller_id(broker),
        topics=topics.of(MetadataResponseTopic),
        cluster_authorized_operations=authorized_operations_on_cluster(context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _all_refused(request: MetadataRequest, error_code: ErrorCode) -> LongWork[MetadataResponse]:
    """Every topic has the error, and nothing is told of the cluster (Kafka's `MetadataRequest.getErrorResponse`)."""
    refused = MetadataResponse(error_code=error_code)
    for portion in portions(request.topics or []):
        refused.topics += [
            MetadataResponseTopic(error_code=error_code, name=each.name or "", topic_id=each.topic_id)
            for each in portion
        ]
        yield len(portion)
    return refused


def _where_all_is(context: RequestContext[Broker], topics: Sequence[MetadataRequestTopic]) -> Address | None:
    """Return the address of the only broker, where a client is told to go with what it wants to do; None where no topic
    is there: a client that waits for one to be created has no place to go to. The first few that it names say enough.
    """
    image = context.node.image
    own = image.brokers.get(context.node.node_id)
    endpoint = None if own is None else broker_endpoint(context, own)
    if endpoint is None:
        return None
    for asked in topics[:_LOOKED_AT]:
        topic = image.topic(asked.name) if asked.name is not None else image.topic_by_id(asked.topic_id)
        if topic is not None:
            return Address(endpoint.host, endpoint.port)
    return None


def _note_question(where: Address, connection: ConnectionState) -> None:
    """Note that the client was told where to go (`SeekingClients`), also where the answer is a repeated one."""
    request = connection.request
    if connection.seeking is not None and request is not None:
        connection.seeking.was_told(connection.client_address, request.client_id, connection.listener_name, where)


def _note_nothing(_connection: ConnectionState) -> None:
    """Note nothing about who has got a repeated answer."""


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
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if ids:
        return await description.of_ids(ids)  # the names beside them do not count
    named = [name for name in names if name is not None]
    hidden = await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, named)
    if hidden:
        named = [name for name in named if name not in hidden]
    uncreatable: Collection[str] = ()
    if request.allow_auto_topic_creation and context.node.config.bool("auto.create.topics.enable"):
        uncreatable = await _uncreatable(context, named)
        if uncreatable:
            named = [name for name in named if name not in uncreatable]
        await _create_missing(context, named)
    return await description.of_names(named, hidden, uncreatable)


async def _uncreatable(context: RequestContext[Broker], names: Iterable[str]) -> Collection[str]:
    """Return those of the topics that do not exist, and that the client may not create."""
    if is_allowed_on_cluster(context, Operation.CREATE, is_logged=False):
        return ()
    missing = [name for name in names if context.node.image.topic(name) is None]
    return await denied(context, Operation.CREATE, ResourceType.TOPIC, missing)


async def _create_missing(context: RequestContext[Broker], names: Iterable[str]) -> None:
    missing = []
    for name in names:
        if context.node.image.topic(name) is None:
            await context.turn.took(_STEPS_OF_CHECK)
            if invalid_reason(name) is None:
                missing.append(name)
    if len(missing) <= MAX_PARTITIONS:  # of more, the controller would refuse every one
        context.node.auto_topic_creation.create(missing, partial(coordinators_topic, context.node), client=context)


class _Description:
    """The topics of one answer, most of which were encoded for others before."""

    def __init__(self, context: RequestContext[Broker], *, tells_operations: bool) -> None:
        version = context.header.api_version
        self._context = context
        self._broker = context.node
        self._turn = context.turn
        self._tells_operations = tells_operations
        self._is_open = context.node.authorizer is None
        self._known = self._encoded(self._operations(""))
        self._answer = EncodedArray(MetadataResponse, version)
        self._unknown: list[MetadataResponseTopic] = []
        self.is_of_known = True
        """Nothing was told of topics that are not there, or that the client may not see."""

    def _operations(self, name: str) -> int:
        """Return what the client may do with a topic; without ACLs that is the same for each."""
        if not self._tells_operations:
            return NOT_ASKED
        return authorized_operations(self._context, ResourceType.TOPIC, name)

    def _encoded(self, operations: int) -> EncodedTopics:
        context = self._context
        return context.node.encoded_topics.of(context.listener_name, context.header.api_version, operations)

    async def of_all(self) -> EncodedStructs:
        """A request that comes while all topics are encoded for another one waits for that."""
        if not self._is_open:
            return await self._of_all_allowed()
        found = self._known.find_all(self._broker.image)
        if found is not None:
            return found
        async with self._broker.encoding_all_topics:
            return self._known.find_all(self._broker.image) or await self._encode_all()

    async def _of_all_allowed(self) -> EncodedStructs:
        names = list(self._broker.image.topics)
        hidden = await denied(self._context, Operation.DESCRIBE, ResourceType.TOPIC, names, is_logged=False)
        for name in names:
            topic = None if name in hidden else self._broker.image.topic(name)
            if topic is not None:
                await self._add(topic)
        return self._finish()

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
            error_code = ErrorCode.UNKNOWN_TOPIC_ID
            if topic is not None and not is_allowed(self._context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                topic, error_code = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if topic is not None:
                await self._add(topic)
            else:
                await self._add_unknown(MetadataResponseTopic(error_code=error_code, name=None, topic_id=topic_id))
        return self._finish()

    async def of_names(
        self, names: Iterable[str], hidden: Iterable[str] = (), uncreatable: Iterable[str] = ()
    ) -> EncodedStructs:
        """Describe topics.

        hidden: may not be described, so that nothing is told of them. uncreatable: are not there, and will not be.
        """
        denial = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for name in hidden:
            await self._add_unknown(MetadataResponseTopic(error_code=denial, name=name))
        for name in uncreatable:
            await self._add_unknown(
                MetadataResponseTopic(
                    error_code=denial,
                    name=name,
                    is_internal=is_internal(name),
                )
            )
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
        known = self._known if self._is_open else self._encoded(self._operations(topic.name))
        parts = known.find(image, topic)
        if parts is None:
            parts = await self._turn.through(known.encode(image, topic))
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
            topic_authorized_operations=self._operations(name),
        )

    async def _add_unknown(self, topic: MetadataResponseTopic) -> None:
        """Many of them at a time are encoded, and forgotten: as objects they would take ten times the room."""
        self.is_of_known = False
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
