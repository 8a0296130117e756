"""Requests that should not be are refused with one clear line, however often they come, and nothing is harmed."""

from __future__ import annotations

import logging

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import VoteResponse
from pykbroker.protocol.schema import Message
from pykbroker.raft.complaints import PERIOD_MS
from pykbroker.raft.events import ResponseReceived
from pykbroker.raft.node import Role

from .test_conversations import OurVoter
from .test_elections import Stage
from .voter_scenarios import MALFORMED, UNKNOWN_CLUSTER, Situation, begin, end, fetch_from, fetch_snapshot, vote

BUILDERS = {
    "VoteRequest": lambda **how: vote(50, **how),
    "BeginQuorumEpochRequest": lambda **how: begin(50, **how),
    "EndQuorumEpochRequest": lambda **how: end(50, **how),
    "FetchRequest": lambda **how: fetch_from(1, 0, 0, **how),
    "FetchSnapshotRequest": lambda **how: fetch_snapshot(1, (5, 1), **how),
}


def ask(voter: OurVoter, request: Message) -> Message:
    return voter.ask(request, request.__schema__.stable_versions.high)


@pytest.mark.parametrize("name", BUILDERS)
def test_a_flood_of_malformed_requests_is_one_line(name: str, caplog: pytest.LogCaptureFixture) -> None:
    voter = OurVoter(Situation())
    before = voter.status()
    caplog.set_level(logging.WARNING, logger="pykbroker.raft")
    for _ in range(20):
        for change in MALFORMED.values():
            answer = ask(voter, BUILDERS[name](topics=change))
            is_about_others = name == "FetchSnapshotRequest" and answer.error_code == ErrorCode.NONE  # type: ignore[attr-defined]
            assert is_about_others or answer.error_code == ErrorCode.INVALID_REQUEST  # type: ignore[attr-defined]
    assert [record.message for record in caplog.records] == [f"raft node 1: refuses a {name} with INVALID_REQUEST"]
    assert voter.status() == before
    voter.wait(PERIOD_MS * 2)
    ask(voter, BUILDERS[name](cluster=UNKNOWN_CLUSTER))
    assert "INCONSISTENT_CLUSTER_ID (and " in caplog.records[-1].message
    assert len(caplog.records) == 2
    assert voter.status() == before
    assert before[0] is Role.LEADER


def test_a_peer_that_always_answers_nonsense_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    caplog.set_level(logging.WARNING, logger="pykbroker.raft")
    for _ in range(100):
        stage.wait()
        for request in stage.requests().values():
            answer = VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
            stage.node.step(ResponseReceived(request.request_id, answer), stage.now_ms)
    assert stage.now_ms < PERIOD_MS
    assert len(caplog.records) == 2, "one of each peer"
    assert "answers unexpectedly: VoteResponse" in caplog.records[0].message


def test_an_answer_to_nothing_is_left_alone() -> None:
    voter = OurVoter(Situation())
    before = voter.status()
    voter.raft.step(ResponseReceived(4711, VoteResponse()), 20_000)
    assert voter.status() == before
