"""Who fetches the metadata log without voting is known to the leader for a while, and only so many are."""

from __future__ import annotations

from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.raft.events import RequestReceived, RequestWithdrawn
from pykbroker.raft.leader_state import MOST_OBSERVERS, OBSERVER_SESSION_MS, LeaderState

from .test_conversations import OurVoter
from .voter_scenarios import Situation, fetch_from

FETCH = FetchRequest.__schema__.stable_versions.high


def observed(voter: OurVoter) -> list[int]:
    leader = voter.raft.leader_state
    assert isinstance(leader, LeaderState)
    return [key.node_id for key in leader.observers]


def fetch_as(voter: OurVoter, node_id: int) -> None:
    voter.ask(fetch_from(voter.raft.epoch, 0, 0, replica=node_id), FETCH)


def test_an_observer_that_fetches_no_more_is_forgotten() -> None:
    voter = OurVoter(Situation())
    fetch_as(voter, 7)
    voter.wait(OBSERVER_SESSION_MS * 3 // 4)
    fetch_as(voter, 8)
    assert observed(voter) == [7, 8]
    voter.wait(OBSERVER_SESSION_MS // 2)
    voter.raft.tick(voter.now_ms)
    assert observed(voter) == [8]
    voter.wait(OBSERVER_SESSION_MS * 5 // 4)
    voter.raft.tick(voter.now_ms)
    assert observed(voter) == []


def test_of_too_many_observers_the_one_that_fetched_longest_ago_is_forgotten() -> None:
    voter = OurVoter(Situation())
    fetch_as(voter, 7)
    for node_id in range(1000, 1000 + MOST_OBSERVERS - 1):
        fetch_as(voter, node_id)
    fetch_as(voter, 7)
    assert len(observed(voter)) == MOST_OBSERVERS
    fetch_as(voter, 8)
    assert len(observed(voter)) == MOST_OBSERVERS
    assert observed(voter)[-2:] == [7, 8]
    assert 1000 not in observed(voter)


def test_a_fetch_whose_asker_is_gone_waits_no_more() -> None:
    voter = OurVoter(Situation())
    end_offset = voter.raft.log_end_offset
    request = fetch_from(voter.raft.epoch, end_offset, voter.raft.epoch, replica=7, wait_ms=2**31 - 1)
    request.topics[0].partitions[0].high_watermark = voter.raft.high_watermark
    waiting = voter.raft._leading._waiting
    voter.raft.step(RequestReceived(9, request, FETCH), voter.now_ms)
    assert list(waiting) == [9]
    voter.raft.step(RequestWithdrawn(9), voter.now_ms)
    assert not voter.raft._leading._waiting
