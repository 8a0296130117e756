"""Checks of what requests and responses of every kind name: the cluster, the epoch and the leader (KIP-595)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import BeginQuorumEpochResponse, VoteResponse
from pykbroker.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest
from pykbroker.protocol.schema import Message

from . import wire
from .events import Destination
from .leader_state import LeaderState
from .quorum_state import QuorumState
from .voters import Endpoint
from .wire import Known, Leadership

logger = logging.getLogger(__name__)

KnownNow = Callable[[], Known]
"""What a response tells of the quorum, as it is when the response is made."""


def is_of_cluster(quorum: QuorumState, cluster_id: str | None) -> bool:
    return cluster_id is None or quorum.replica.cluster_id is None or cluster_id == quorum.replica.cluster_id


def check_leader(quorum: QuorumState, epoch: int) -> ErrorCode:
    """Tell whether a request that only the leader of that epoch can answer is right here."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(quorum.state, LeaderState) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def handle_common(quorum: QuorumState, told: Leadership, error_code: int, source: Destination) -> bool | None:
    """Take up what an answer tells of epoch and leader. None where the answer itself is of interest; otherwise whether
    the peer was of use, so that it may be asked again at once.
    """
    if told.epoch < quorum.epoch or error_code == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if told.epoch > quorum.epoch and not quorum.believes(told.epoch, source, asked=False):
        return False
    if told.epoch > quorum.epoch or error_code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return _follow(quorum, told, source)
    if told.leader_id is not None and quorum.leader_id is None:
        _follow(quorum, told, source)
        return None if error_code == ErrorCode.NONE else True
    if error_code in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST):
        log_unexpected(quorum, source, error_code)
        return False
    if error_code == ErrorCode.INVALID_VOTER_KEY:
        text = "raft node %d: node %d has another directory than the voter that was asked"
        quorum.complain(("directory", source), text, quorum.replica.node_id, source.node_id)
        return False
    return None


def is_of_another_directory(response: object) -> bool:
    """Tell whether the voter that was asked is gone, because its node has another directory now."""
    if not isinstance(response, VoteResponse | BeginQuorumEpochResponse):
        return False
    partition = wire.partition_of(response)
    return partition is not None and partition.error_code == ErrorCode.INVALID_VOTER_KEY


def _follow(quorum: QuorumState, told: Leadership, source: Destination) -> bool:
    if quorum.follow(told):
        return True
    if told.leader_id == quorum.replica.node_id:
        # A controller led before, and who answers has not heard that it does not any more. A broker never did.
        if not quorum.replica.may_vote and _is_at(source, told.endpoint):
            quorum.namesake = source
        return False
    quorum.complain(
        ("leader", source),
        "raft node %d: node %d says that node %s leads epoch %d, where node %s does",
        quorum.replica.node_id,
        source.node_id,
        told.leader_id,
        told.epoch,
        quorum.leader_id,
    )
    return False


def _is_at(source: Destination, endpoint: Endpoint | None) -> bool:
    return endpoint is not None and (endpoint.host, endpoint.port) == (source.host, source.port)


def log_unexpected(quorum: QuorumState, source: Destination, answer: Message | int) -> bool:
    text = "node %d at %s:%d answers unexpectedly: %.300s"
    quorum.complain(("answer", source), text, source.node_id, source.host, source.port, str(answer))
    return False


def log_error_response(quorum: QuorumState, request: Message, response: Message) -> None:
    """Log the refusal of a request that has a mistake in it or comes from another cluster."""
    if getattr(response, "error_code", ErrorCode.NONE) in _OF_MISTAKES and not _is_of_administrators(request):
        name = type(request).__name__
        quorum.complain(
            ("request", name),
            "raft node %d: refuses a %s with %s",
            quorum.replica.node_id,
            name,
            ErrorCode(response.error_code).name,  # type: ignore[attr-defined]
        )


_OF_MISTAKES = (ErrorCode.INVALID_REQUEST, ErrorCode.INCONSISTENT_CLUSTER_ID)


def _is_of_administrators(request: Message) -> bool:
    """Tell whether administrators sent the request: they are told what is wrong and can read it."""
    return isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest)
