"""Who is not there is asked less and less often, and whoever is there does not wait for it."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import VoteRequest
from pykbroker.raft import wire
from pykbroker.raft.epochs import OffsetAndEpoch
from pykbroker.raft.events import Destination, OutgoingRequest, RequestReceived, ResponseReceived
from pykbroker.raft.node import Role
from pykbroker.raft.reconnect_backoff import ReconnectBackoff
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.timeouts import KAFKA_TIMEOUTS

from .test_elections import Stage

LONG_MS = 60_000
MOST_MS = KAFKA_TIMEOUTS.reconnect_backoff_max_ms


def refused_within(stage: Stage, ms: int, dead: set[int]) -> list[OutgoingRequest]:
    """What it asks of nodes that refuse, while those who are there say nothing."""
    end_ms, refused = stage.now_ms + ms, []
    while stage.now_ms < end_ms:
        for node_id, request in stage.requests().items():
            if node_id in dead:
                refused.append(request)
                stage.fail(request, refused=True)
        stage.wait()
    return refused


def test_a_voter_without_peers_asks_them_twice_a_second() -> None:
    stage = Stage()
    refused_within(stage, LONG_MS, {2, 3})
    asked = refused_within(stage, LONG_MS, {2, 3})
    assert stage.node.role in (Role.UNATTACHED, Role.PROSPECTIVE)
    assert LONG_MS // MOST_MS < len(asked) <= 2 * (LONG_MS // MOST_MS + 2)


def test_the_first_attempts_follow_soon() -> None:
    assert len(refused_within(Stage(), 2 * KAFKA_TIMEOUTS.election_ms, {2, 3})) >= 8


def test_a_candidate_asks_those_who_refused_too() -> None:
    """Of three voters with one gone the other two may have stood at once: it has to know that it can't win."""
    stage = Stage()
    refused_within(stage, LONG_MS, {2, 3})
    while stage.node.role is not Role.CANDIDATE:
        stage.wait()
        for node_id, request in stage.requests().items():
            if node_id == 2 and isinstance(request.request, VoteRequest):
                stage.answer(request, granted=True)
            else:
                stage.fail(request, refused=True)
    assert stage.requests().keys() == {2, 3}


def test_who_asks_for_a_vote_is_there() -> None:
    stage = Stage()
    refused_within(stage, LONG_MS, {2, 3})
    while stage.node.role is not Role.PROSPECTIVE:
        refused_within(stage, 1, {2, 3})
    key = stage.node._quorum.replica.key
    behind = wire.vote_request(LocalReplica(3), key, stage.node.epoch, OffsetAndEpoch(0, 0), pre_vote=True)
    stage.node.step(RequestReceived(7, behind, api_version=2), stage.now_ms)
    asked = stage.requests()
    assert isinstance(asked[3].request, VoteRequest)


def test_nothing_is_kept_of_who_is_not_asked_any_more() -> None:
    """A peer can name any number of places where somebody leads."""
    backoff = ReconnectBackoff(KAFKA_TIMEOUTS)
    for i in range(3 * MOST_MS):
        backoff.disconnected(Destination(i, "localhost", 1), now_ms=i)
    assert len(backoff._by_peer) <= MOST_MS + KAFKA_TIMEOUTS.reconnect_backoff_ms + 1


# Voters whose nodes have another directory


def answered_with_another_key(stage: Stage, ms: int) -> list[int]:
    """When node 2 was asked, all of whose answers say that it is not the voter that was meant; node 3 is silent."""
    end_ms, asked_ms = stage.now_ms + ms, []
    while stage.now_ms < end_ms:
        request = stage.requests().get(2)
        if request is not None:
            asked_ms.append(stage.now_ms)
            known = wire.Known(stage.node.epoch, -1, None)
            response = wire.vote_response(known, ErrorCode.INVALID_VOTER_KEY, granted=False)
            stage.node.step(ResponseReceived(request.request_id, response), stage.now_ms)
        stage.wait()
    return asked_ms


def test_a_voter_whose_node_has_another_directory_is_asked_twice_a_second() -> None:
    stage = Stage()
    assert len(answered_with_another_key(stage, 2 * KAFKA_TIMEOUTS.election_ms)) >= 4
    answered_with_another_key(stage, LONG_MS)
    asked_ms = answered_with_another_key(stage, LONG_MS)
    assert stage.node.role in (Role.UNATTACHED, Role.PROSPECTIVE)
    assert asked_ms
    assert len(asked_ms) < 2 * (LONG_MS // MOST_MS)


def test_a_voter_that_has_its_directory_again_counts_at_its_next_answer() -> None:
    stage = Stage()
    answered_with_another_key(stage, LONG_MS)
    began_ms = stage.now_ms
    while stage.node.role is not Role.CANDIDATE:
        stage.wait()
        request = stage.requests().get(2)
        if request is not None:
            stage.answer(request, granted=True)
    assert stage.now_ms - began_ms <= MOST_MS + 2 * KAFKA_TIMEOUTS.election_ms
