"""Epochs that nobody can have reached: refused, survived where they are stored, and no obstacle to who was away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchResponse
from pykbroker.protocol.messages.quorum import VoteResponse
from pykbroker.protocol.schema import Message
from pykbroker.raft import wire
from pykbroker.raft.credible_epochs import A_FEW, ELECTIONS_PER_SECOND, LAST_EPOCH, UNDECIDED_ELECTIONS
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.events import RequestReceived, ResponseReceived
from pykbroker.raft.node import RaftNode, Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.voters import Voter, VoterSet

from .memory_log import MemoryLog, batch_of
from .test_conversations import OurVoter
from .test_elections import VOTERS, Stage
from .voter_scenarios import Situation, begin, end, fetch_from, fetch_snapshot, vote

FAR = 2 * UNDECIDED_ELECTIONS
BUILDERS = {
    "Vote": lambda epoch: vote(epoch),
    "pre-vote": lambda epoch: vote(epoch, pre_vote=True),
    "BeginQuorumEpoch": lambda epoch: begin(epoch),
    "EndQuorumEpoch": lambda epoch: end(epoch),
}


def restarted(epoch: int, *, voters: VoterSet = VOTERS, log: MemoryLog | None = None) -> RaftNode:
    """With what `quorum-state` says."""
    return RaftNode(LocalReplica(1), voters, ElectionState(epoch, voted_id=2), log or MemoryLog(), rng=Random(1))


def error_of(response: Message) -> int:
    partition = wire.partition_of(response)
    return int(partition.error_code)


@pytest.mark.parametrize("epoch", [FAR, LAST_EPOCH - 1, LAST_EPOCH])
@pytest.mark.parametrize("name", BUILDERS)
def test_a_request_cannot_take_a_leader_to_an_epoch_that_nobody_reached(
    name: str, epoch: int, caplog: pytest.LogCaptureFixture
) -> None:
    voter = OurVoter(Situation())
    before = voter.status()
    caplog.set_level(logging.WARNING, logger="pykbroker.raft")
    for _ in range(20):
        request = BUILDERS[name](epoch)
        answer = voter.ask(request, request.__schema__.stable_versions.high)
        assert error_of(answer) == ErrorCode.INVALID_REQUEST
        assert wire.partition_of(answer).leader_epoch == before[1]
    assert voter.status() == before
    assert before[0] is Role.LEADER
    assert len([each for each in caplog.records if "no node can be there" in each.message]) == 1


@pytest.mark.parametrize("request_", [fetch_from(LAST_EPOCH, 0, 0), fetch_snapshot(LAST_EPOCH, (5, 1))], ids=str)
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_a_fetch_of_an_epoch_that_nobody_reached_changes_nothing(request_: Message, is_dynamic: bool) -> None:
    voter = OurVoter(Situation(is_dynamic=is_dynamic))
    before = voter.status()
    voter.ask(request_, request_.__schema__.stable_versions.high)
    assert voter.status() == before


@pytest.mark.parametrize(
    ("situation", "replica"), [(Situation(), 5), (Situation(is_dynamic=True), -1)], ids=["static voters", "a consumer"]
)
def test_a_fetch_of_who_was_never_a_voter_leaves_the_leader_its_epoch(situation: Situation, replica: int) -> None:
    voter = OurVoter(situation)
    role, epoch, *_ = before = voter.status()
    ahead = fetch_from(epoch + 1, 0, 0, replica=replica)
    answer = wire.fetch_answer_of(voter.ask(ahead, ahead.__schema__.stable_versions.high))
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert voter.status() == before
    assert role is Role.LEADER


def test_a_removed_voter_that_is_ahead_follows_the_next_epoch() -> None:
    """It stood for election before it heard that it is removed, and nobody whom it asks for votes leads."""
    voter = OurVoter(Situation(is_dynamic=True))
    _, epoch, *_ = voter.status()
    ahead = fetch_from(epoch + 3, 0, 0)
    version = ahead.__schema__.stable_versions.high
    answer = wire.fetch_answer_of(voter.ask(ahead, version))
    assert (answer.error_code, answer.current_leader.leader_epoch) == (ErrorCode.UNKNOWN_LEADER_EPOCH, epoch)
    voter.wait(100)
    assert voter.status()[:2] == (Role.LEADER, epoch + 4)
    answer = wire.fetch_answer_of(voter.ask(fetch_from(epoch + 3, 0, 0), version))
    assert (answer.error_code, answer.current_leader.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, epoch + 4)


def test_many_small_steps_get_no_farther_than_a_large_one() -> None:
    """Each would have to be made durable before it is answered, so that the last steps take years."""
    node = restarted(0)
    node.tick(0)
    for _ in range(3):
        request = vote(node.epoch + UNDECIDED_ELECTIONS)
        node.step(RequestReceived(1, request, api_version=2), 0)
    assert node.epoch == UNDECIDED_ELECTIONS
    node.step(RequestReceived(2, vote(node.epoch + A_FEW), api_version=2), 0)
    assert node.epoch == UNDECIDED_ELECTIONS + A_FEW


LARGE_STEPS: dict[str, Callable[[int], Message]] = {
    "Vote": lambda epoch: vote(epoch, end=(0, 0)),
    "Fetch of no voter": lambda epoch: fetch_from(epoch, 0, 0),
}


@pytest.mark.parametrize("name", LARGE_STEPS)
def test_large_steps_with_elections_between_go_no_faster_than_elections(name: str) -> None:
    """The voter writes a record in each epoch that it leads; without a bound all epochs were gone in 17 minutes."""
    voter = OurVoter(Situation(is_dynamic=True))

    def step(size: int) -> int:
        """Of how many epochs it is ahead once it leads again."""
        before = voter.status()[1]
        request = LARGE_STEPS[name](before + size)
        voter.ask(request, request.__schema__.stable_versions.high)
        voter.wait(100)
        role, epoch, *_ = voter.status()
        assert role is Role.LEADER
        return epoch - before

    most = UNDECIDED_ELECTIONS - 1
    assert step(most) == most + 1
    assert step(most) == 0
    assert step(A_FEW) == A_FEW + 1, "whoever is ahead by a few is believed all the same"
    began_ms = voter.now_ms
    voter.wait(3_600_000)
    usual = (voter.now_ms - began_ms) * ELECTIONS_PER_SECOND // 1000
    assert step(most) == 0
    assert step(usual) == usual + 1


def test_the_only_voter_starts_again_where_the_last_epoch_was_stored() -> None:
    only = VoterSet([Voter(1, "localhost", 9093)])
    node = restarted(LAST_EPOCH, voters=only, log=MemoryLog([batch_of(["a"], base_offset=0, epoch=7)]))
    node.tick(0)
    for _ in range(4):
        ready = node.ready()
        end_offset = 1 + sum(append.count for append in ready.appends)
        node.advance(election=ready.election, durable_end_offset=end_offset)
    assert (node.role, node.epoch) == (Role.LEADER, 7 + UNDECIDED_ELECTIONS + 1)


def test_what_is_stored_in_place_of_an_incredible_epoch_holds_no_vote_for_anybody() -> None:
    node = restarted(LAST_EPOCH)
    node.tick(0)
    stored = node.ready().election
    assert stored == ElectionState(UNDECIDED_ELECTIONS, voted_id=1)
    node.step(RequestReceived(1, vote(UNDECIDED_ELECTIONS, candidate=2), api_version=2), 0)
    [response] = node.ready().responses
    assert not wire.partition_of(response.response).vote_granted


def test_a_broker_begins_at_the_epoch_of_its_log_where_an_incredible_one_was_stored() -> None:
    """Ahead of the leader it would wait for elections that nobody needs."""
    log = MemoryLog([batch_of(["a"], base_offset=0, epoch=7)])
    broker = RaftNode(LocalReplica(9, may_vote=False), VOTERS, ElectionState(LAST_EPOCH), log, rng=Random(1))
    assert broker.epoch == 7


def test_an_epoch_that_can_have_been_reached_stays_as_it_was_stored() -> None:
    assert restarted(LAST_EPOCH // 2).epoch == LAST_EPOCH // 2
    far = MemoryLog([batch_of(["a"], base_offset=0, epoch=LAST_EPOCH - 9)])
    assert restarted(LAST_EPOCH - 9, log=far).epoch == LAST_EPOCH - 9


def test_a_node_that_was_away_for_however_long_learns_the_epoch_from_whom_it_asks() -> None:
    stage = Stage()
    stage.wait()
    asked = stage.requests()
    while not asked:
        stage.wait()
        asked = stage.requests()
    source, sent = next(iter(asked.items()))
    known = wire.Known(LAST_EPOCH // 3, source, None)
    answer = (
        wire.vote_response(known, ErrorCode.FENCED_LEADER_EPOCH, granted=False)
        if "Vote" in type(sent.request).__name__
        else wire.fetch_response(known, ErrorCode.FENCED_LEADER_EPOCH)
    )
    stage.node.step(ResponseReceived(sent.request_id, answer), stage.now_ms)
    assert (stage.node.epoch, stage.node.leader_id, stage.node.role) == (LAST_EPOCH // 3, source, Role.FOLLOWER)


def test_an_answer_cannot_use_up_all_epochs_either(caplog: pytest.LogCaptureFixture) -> None:
    """A node that has been taken to the last epoch, such as one of another implementation, takes no others with it."""
    stage = Stage()
    while stage.node.role is not Role.PROSPECTIVE:
        stage.wait()
    [sent, *_] = stage.requests().values()
    answer: VoteResponse | FetchResponse = wire.vote_response(
        wire.Known(LAST_EPOCH, -1, None), ErrorCode.FENCED_LEADER_EPOCH, granted=False
    )
    stage.node.step(ResponseReceived(sent.request_id, answer), stage.now_ms)
    assert stage.node.epoch == 0
    assert "no node can be there" in caplog.text


def test_a_node_in_the_last_epoch_never_stands_and_lives_on() -> None:
    far = MemoryLog([batch_of(["a"], base_offset=0, epoch=LAST_EPOCH)])
    node = restarted(LAST_EPOCH, log=far)
    for now_ms in range(0, 60_000, 500):
        node.tick(now_ms)
        ready = node.ready()
        node.advance(election=ready.election, durable_end_offset=1)
    assert (node.role, node.epoch) == (Role.UNATTACHED, LAST_EPOCH)


def test_a_snapshot_of_an_epoch_to_come_is_of_no_use() -> None:
    node = RaftNode(LocalReplica(1), VOTERS, ElectionState(1, leader_id=2), MemoryLog(), rng=Random(1))
    node.tick(0)
    [sent] = node.ready().requests
    offered = wire.fetch_response(wire.Known(1, 2, None), ErrorCode.NONE, snapshot_id=SnapshotId(10, LAST_EPOCH))
    node.step(ResponseReceived(sent.request_id, offered), 0)
    node.tick(1000)
    kinds = [type(each.request).__name__ for each in node.ready().requests]
    assert "FetchSnapshotRequest" not in kinds


def test_two_voters_of_three_that_begin_far_apart_elect_one_of_them() -> None:
    """The one that is ahead is refused; the other one asks it, and learns."""
    behind = restarted(0)
    behind.tick(0)
    behind.step(RequestReceived(1, vote(FAR, pre_vote=True), api_version=2), 0)
    assert behind.epoch == 0
    behind.tick(60)
    assert behind.role is Role.PROSPECTIVE
    asked = next(each for each in behind.ready().requests if each.destination.node_id == 2)
    known = wire.vote_response(wire.Known(FAR, -1, None), ErrorCode.FENCED_LEADER_EPOCH, granted=False)
    behind.step(ResponseReceived(asked.request_id, known), 60)
    assert behind.epoch == FAR
    behind.step(RequestReceived(2, vote(FAR + 1), api_version=2), 61)
    assert (behind.election.epoch, behind.election.voted_id) == (FAR + 1, 2)
