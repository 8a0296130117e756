"""ShareFetch and ShareAcknowledge have the same acknowledgements, and the same way to say who asks (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import AcknowledgementBatch
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.sharing.share_partitions import Outcome, outcome_of

from .authorization import is_allowed
from .group_requests import check_group
from .share_group_requests import has_share_groups

if TYPE_CHECKING:
    from pykbroker.sharing.partition.values import Acknowledgement
    from pykbroker.sharing.sessions import SessionKey, TopicIdPartition

RENEWS_SINCE: Final = 2
"""Version 2 has RENEW and the acquire modes."""

LEADER_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

_MOST_CHARACTERS_OF_MEMBER: Final = 36
"""A UUID in words has no more."""
_STEPS_OF_PARTITION: Final = 5
_STEPS_OF_BATCH: Final = 2


class NamedPartition(Protocol):
    """A partition in a request, with what its client says of its records."""

    partition_index: int
    acknowledgement_batches: list[AcknowledgementBatch]


class NamedTopic(Protocol):
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[NamedPartition]: ...


def session_key(context: RequestContext[Broker], group_id: str | None, member_id: str | None) -> SessionKey:
    """Return whose session the request belongs to. Raises ApiError."""
    from pykbroker.sharing.sessions import SessionKey

    if not has_share_groups(context):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if group_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    check_group(context, Operation.READ, group_id)
    if not member_id or len(member_id) > _MOST_CHARACTERS_OF_MEMBER:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return SessionKey(group_id, member_id)


def partition_error(context: RequestContext[Broker], at: TopicIdPartition) -> ErrorCode:
    """Return why the client may not have the partition, or why there is none; NONE where it may."""
    image = context.node.image
    topic = image.topic_by_id(at.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not is_allowed(context, Operation.READ, ResourceType.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if at.partition in topic.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Acknowledgements:
    """The acknowledgements of one request: begun in its order, and waited for together."""

    def __init__(self) -> None:
        self._outcomes: dict[TopicIdPartition, Outcome] = {}

    async def begin(
        self, context: RequestContext[Broker], key: SessionKey, topics: Iterable[NamedTopic], *, is_renewal: bool
    ) -> None:
        """Begin with what the request says of each of its partitions; what is not well formed is refused as a whole."""
        from pykbroker.sharing.partition.acknowledgements import are_well_formed
        from pykbroker.sharing.partition.values import Acknowledgement
        from pykbroker.sharing.sessions import TopicIdPartition

        knows_renewal = context.header.api_version >= RENEWS_SINCE
        wanted: dict[TopicIdPartition, list[Acknowledgement]] = {}
        for topic in topics:
            for each in topic.partitions:
                at = TopicIdPartition(topic.topic_id, each.partition_index)
                batches = [
                    Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                    for batch in each.acknowledgement_batches
                ]
                error = ErrorCode.INVALID_REQUEST
                if are_well_formed(batches, knows_renewal=knows_renewal, is_renewal=is_renewal):
                    error = partition_error(context, at)
                elif context.node.image.topic_by_id(at.topic_id) is None:
                    error = ErrorCode.UNKNOWN_TOPIC_ID
                self._outcomes[at] = None if error is ErrorCode.NONE else ApiError(error)
                wanted.pop(at, None)
                if error is ErrorCode.NONE and batches:
                    wanted[at] = batches
                await context.turn.took(_STEPS_OF_PARTITION + _STEPS_OF_BATCH * len(batches))
        if not wanted:  # Kafka names those without acknowledgements beside others alone
            self._outcomes = {at: refused for at, refused in self._outcomes.items() if refused is not None}
        else:
            shares = context.node.share_partitions
            outcomes = await shares.begin_to_acknowledge(*key, list(wanted.items()), context.turn)
            self._outcomes.update(zip(wanted, outcomes, strict=True))

    async def outcomes(self) -> dict[TopicIdPartition, ApiError | None]:
        """Return what became of them, once all that was accepted is persisted, or is not."""
        return {at: await outcome_of(outcome) for at, outcome in self._outcomes.items()}
