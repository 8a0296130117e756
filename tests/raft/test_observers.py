"""Observers: the leader knows for a while who fetches without voting, and they follow the leader that there is."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.quorum import FetchSnapshotRequest
from pykbroker.raft import wire
from pykbroker.raft.events import OutgoingRequest, RequestReceived, RequestWithdrawn, ResponseReceived
from pykbroker.raft.leader_state import MOST_OBSERVERS, OBSERVER_SESSION_MS, LeaderState
from pykbroker.raft.node import Role
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.voters import Endpoint

from .test_conversations import OurVoter
from .test_elections import Stage
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


def next_fetch(observer: Stage) -> OutgoingRequest:
    while not (sent := observer.requests()):
        observer.wait()
    [fetch] = sent.values()
    return fetch


def answer(observer: Stage, fetch: OutgoingRequest, known: wire.Known, error: ErrorCode) -> None:
    answer = wire.fetch_response(known, error, high_watermark=0)
    observer.node.step(ResponseReceived(fetch.request_id, answer), observer.now_ms)


@pytest.mark.parametrize("follows", [False, True])
def test_an_observer_that_hears_of_an_epoch_without_a_leader_follows_the_leader_that_there_is(follows: bool) -> None:
    """Voter 1 stands in epoch 4, and is never heard of again; voter 2 leads epoch 3 all the time."""
    observer = Stage(node_id=4)
    if follows:
        observer.follow(2, epoch=3)
    answer(observer, next_fetch(observer), wire.Known(4, wire.NO_LEADER, None), ErrorCode.FENCED_LEADER_EPOCH)
    fetch = next_fetch(observer)
    assert isinstance(fetch.request, FetchRequest)
    assert fetch.request.topics[0].partitions[0].current_leader_epoch == (3 if follows else 0)
    answer(observer, fetch, wire.Known(3, 2, Endpoint("", "host2", 9093)), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    fetch = next_fetch(observer)
    assert fetch.destination.node_id == 2
    answer(observer, fetch, wire.Known(3, 2, None), ErrorCode.NONE)
    assert (observer.node.role, observer.node.epoch, observer.node.leader_id) == (Role.FOLLOWER, 3, 2)


def test_an_observer_whose_leader_lost_its_disk_asks_the_voters_who_leads() -> None:
    """What led epoch 3 is in epoch 1 without its disk; voter 1 leads epoch 4, and knows of no observer."""
    observer = Stage(node_id=4)
    observer.follow(2, epoch=3)
    answer(observer, next_fetch(observer), wire.Known(1, 3, None), ErrorCode.UNKNOWN_LEADER_EPOCH)
    asked = []
    while (fetch := next_fetch(observer)).destination.node_id != 1:
        asked.append(fetch.destination.node_id)
        assert len(asked) < 20, asked
        answer(observer, fetch, wire.Known(1, 3, None), ErrorCode.UNKNOWN_LEADER_EPOCH)
    answer(observer, fetch, wire.Known(4, 1, Endpoint("", "host1", 9093)), ErrorCode.FENCED_LEADER_EPOCH)
    assert next_fetch(observer).destination.node_id == 1
    assert (observer.node.role, observer.node.epoch, observer.node.leader_id) == (Role.FOLLOWER, 4, 1)


def test_an_observer_that_fetches_a_snapshot_asks_the_voters_who_leads_too() -> None:
    observer = Stage(node_id=4)
    observer.follow(2, epoch=3)
    offered = wire.fetch_response(wire.Known(3, 2, None), ErrorCode.NONE, snapshot_id=SnapshotId(9, 2))
    observer.node.step(ResponseReceived(next_fetch(observer).request_id, offered), observer.now_ms)
    asked = next_fetch(observer)
    assert isinstance(asked.request, FetchSnapshotRequest)
    refused = wire.fetch_snapshot_response(wire.Known(1, 3, None), ErrorCode.UNKNOWN_LEADER_EPOCH)
    observer.node.step(ResponseReceived(asked.request_id, refused), observer.now_ms)
    assert isinstance(next_fetch(observer).request, FetchRequest)


def test_an_observer_whose_leader_refuses_it_and_leads_stays() -> None:
    observer = Stage(node_id=4)
    observer.follow(2, epoch=3)
    for _ in range(5):
        fetch = next_fetch(observer)
        assert fetch.destination.node_id == 2
        answer(observer, fetch, wire.Known(3, 2, None), ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_voter_that_hears_of_an_epoch_without_a_leader_takes_it_over() -> None:
    """The others do not vote in an older one."""
    voter = Stage(node_id=1)
    voter.follow(2, epoch=3)
    fetch = next_fetch(voter)
    answer(voter, fetch, wire.Known(4, wire.NO_LEADER, None), ErrorCode.FENCED_LEADER_EPOCH)
    assert (voter.node.role, voter.node.epoch, voter.node.leader_id) == (Role.UNATTACHED, 4, None)
