"""How long an election takes, step by step: where one of three voters is gone, and where two of them stand."""

from __future__ import annotations

from random import Random

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import VoteResponse
from pykbroker.raft import wire
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.epochs import OffsetAndEpoch
from pykbroker.raft.events import OutgoingRequest, RequestFailed, RequestReceived, ResponseReceived
from pykbroker.raft.node import RaftNode, Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.timeouts import KAFKA_TIMEOUTS
from pykbroker.raft.voters import Voter, VoterSet

from .memory_log import MemoryLog, batch_of

VOTERS = VoterSet([Voter(node_id, f"host{node_id}", 9093) for node_id in (1, 2, 3)])


class Stage:
    """One node, and what it asks of the others."""

    def __init__(self, node_id: int = 1) -> None:
        self.now_ms = 0
        self.node = RaftNode(LocalReplica(node_id), VOTERS, ElectionState(0), MemoryLog(), rng=Random(1))

    def wait(self) -> None:
        deadline_ms = self.node.next_deadline_ms(self.now_ms)
        assert deadline_ms is not None
        self.now_ms = max(self.now_ms, deadline_ms)
        self.node.tick(self.now_ms)

    def requests(self) -> dict[int, OutgoingRequest]:
        """By destination; everything that is to be durable is."""
        sent: dict[int, OutgoingRequest] = {}
        while ready := self.node.ready():
            sent.update({each.destination.node_id: each for each in ready.requests})
            self.node.advance(election=ready.election, durable_end_offset=0)
        return sent

    def answer(self, sent: OutgoingRequest, *, granted: bool) -> None:
        known = wire.Known(self.node.epoch, -1, None)
        response = wire.vote_response(known, ErrorCode.NONE, granted=granted)
        self.node.step(ResponseReceived(sent.request_id, response), self.now_ms)

    def fail(self, sent: OutgoingRequest, *, refused: bool) -> None:
        self.node.step(RequestFailed(sent.request_id, connection_refused=refused), self.now_ms)

    def follow(self, leader_id: int, epoch: int) -> None:
        """That leader has told who leads, and answers the first Fetch."""
        begin = wire.begin_quorum_epoch_request(LocalReplica(leader_id), self.node._quorum.replica.key, epoch)
        self.node.step(RequestReceived(1, begin, api_version=1), self.now_ms)
        fetch = self.requests()[leader_id]
        answer = wire.fetch_response(wire.Known(epoch, leader_id, None), ErrorCode.NONE, high_watermark=0)
        self.node.step(ResponseReceived(fetch.request_id, answer), self.now_ms)
        assert self.node.role is Role.FOLLOWER

    def grants_pre_vote(self, candidate_id: int) -> bool:
        """Of the epoch that this node knows, to one whose log is as long."""
        asked = wire.vote_request(
            LocalReplica(candidate_id),
            self.node._quorum.replica.key,
            self.node.epoch,
            OffsetAndEpoch(0, 0),
            pre_vote=True,
        )
        self.node.step(RequestReceived(2, asked, api_version=2), self.now_ms)
        [granted] = [
            each.response.topics[0].partitions[0].vote_granted
            for each in self.node.ready().responses
            if isinstance(each.response, VoteResponse)
        ]
        return granted

    def become_candidate(self) -> dict[int, OutgoingRequest]:
        """The votes that it asks for."""
        while self.node.role is not Role.PROSPECTIVE:
            self.wait()
        asked = self.requests()
        self.fail(asked[3], refused=False)
        self.answer(asked[2], granted=True)
        votes = self.requests()
        while votes.keys() != {2, 3}:
            self.wait()
            votes |= self.requests()
        assert self.node.role is Role.CANDIDATE
        return votes


def time_after_a_defeat_ms() -> int:
    """Of one that both others reject."""
    stage = Stage()
    votes = stage.become_candidate()
    began_ms = stage.now_ms
    for each in votes.values():
        stage.answer(each, granted=False)
    while stage.node.role is Role.CANDIDATE:
        stage.requests()
        stage.wait()
    return stage.now_ms - began_ms


def time_as_a_candidate_ms(*, refused: bool) -> int:
    """Of one that node 2 rejects, and that hears nothing from node 3."""
    stage = Stage()
    votes = stage.become_candidate()
    began_ms = stage.now_ms
    stage.answer(votes[2], granted=False)
    stage.fail(votes[3], refused=refused)
    while stage.node.role is Role.CANDIDATE:
        stage.requests()
        stage.wait()
    return stage.now_ms - began_ms


def test_a_candidate_that_cannot_win_without_a_voter_that_is_gone_tries_again_soon() -> None:
    assert time_as_a_candidate_ms(refused=True) < 100


def test_a_candidate_waits_for_a_voter_that_may_be_there() -> None:
    assert time_as_a_candidate_ms(refused=False) >= KAFKA_TIMEOUTS.election_ms / 2


def test_a_candidate_that_lost_gives_the_winner_a_moment_to_say_so() -> None:
    assert 50 <= time_after_a_defeat_ms() < KAFKA_TIMEOUTS.election_ms / 2


def test_a_voter_that_rejects_a_shorter_log_stands_soon_itself() -> None:
    log = MemoryLog([batch_of(["a"], base_offset=0, epoch=1)])
    node = RaftNode(LocalReplica(1), VOTERS, ElectionState(1, leader_id=2), log, rng=Random(1))
    node.tick(0)
    assert node.role is Role.FOLLOWER
    voter = VOTERS.get(1)
    assert voter is not None
    vote = wire.vote_request(LocalReplica(3), voter.key, 2, OffsetAndEpoch(0, 0), pre_vote=False)
    node.step(RequestReceived(1, vote, api_version=2), 0)
    assert node.role is Role.UNATTACHED
    node.tick(50)
    assert node.role is Role.PROSPECTIVE


def test_who_only_observes_grants_a_pre_vote_when_its_leader_is_silent() -> None:
    """It may vote without knowing it: of voters 1, 2, 3 and 4, of which 1 is lost, the others need its vote."""
    stage = Stage(node_id=4)
    stage.follow(1, epoch=1)
    stage.now_ms += KAFKA_TIMEOUTS.fetch_ms - 1
    assert not stage.grants_pre_vote(3)
    stage.now_ms += 1
    assert stage.grants_pre_vote(3)


def test_too_few_voters_with_a_process_are_no_majority() -> None:
    stage, refused = Stage(), set()
    while refused != {2, 3}:
        assert stage.node.has_majority
        stage.wait()
        for node_id, request in stage.requests().items():
            stage.node.step(RequestFailed(request.request_id, connection_refused=True), stage.now_ms)
            refused.add(node_id)
    assert not stage.node.has_majority
    while not (asked := stage.requests()):
        stage.wait()
    [request, *_] = asked.values()
    answer = wire.vote_response(wire.Known(0, -1, None), ErrorCode.NONE, granted=False)
    stage.node.step(ResponseReceived(request.request_id, answer), stage.now_ms)
    assert stage.node.has_majority
