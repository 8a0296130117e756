"""What a leader counts as replicated, and whether it may go on: each rule with replicas that break it."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import FetchSnapshotRequest
from pykbroker.raft import wire
from pykbroker.raft.epochs import EpochChain
from pykbroker.raft.events import OutgoingResponse, RequestFailed
from pykbroker.raft.node import Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.timeouts import KAFKA_TIMEOUTS

from .memory_log import MemoryLog, MemorySnapshot, batch_of
from .one_voter import OneVoter, directory_of, dynamic_voters, static_voters, vote_request

THREE, FIVE = static_voters(1, 2, 3), static_voters(1, 2, 3, 4, 5)
CHECK_MS = KAFKA_TIMEOUTS.check_quorum_ms


def leader(voter: OneVoter) -> OneVoter:
    voter.lead()
    return voter


def test_a_record_of_an_earlier_epoch_is_committed_with_one_of_the_leaders_own() -> None:
    """A majority has the record of epoch 3 alone: another leader may still replace it (Raft §5.4.2)."""
    voter = leader(OneVoter(THREE, [batch_of(["a"], base_offset=0, epoch=3)]))
    voter.fetch(2, offset=1, last_epoch=3)
    assert voter.node.high_watermark == 0
    voter.fetch(2, offset=2, last_epoch=voter.node.epoch)
    assert voter.node.high_watermark == 2


def test_a_replica_whose_log_took_another_way_has_nothing_of_the_leaders_epoch() -> None:
    """It is as long as the leader's, and what is at its end was never the leader's."""
    voter = leader(OneVoter(THREE, [batch_of(["a"], base_offset=0, epoch=3)]))
    answer = voter.fetch(2, offset=2, last_epoch=3)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (3, 1)
    assert voter.node.high_watermark == 0


def test_what_the_leader_has_not_flushed_does_not_count_as_its_own() -> None:
    voter = leader(OneVoter(THREE))
    voter.durable_end_offset = 1
    voter.node.propose("a", 1)
    voter.carry_out()
    voter.fetch(2, offset=2, last_epoch=voter.node.epoch)
    assert voter.node.high_watermark == 1
    voter.fetch(3, offset=2, last_epoch=voter.node.epoch)
    assert voter.node.high_watermark == 2, "the two others are a majority"


def test_a_voter_with_another_directory_does_not_count() -> None:
    voter = leader(OneVoter(dynamic_voters(1, 2, 3)))
    voter.fetch(2, offset=1, last_epoch=voter.node.epoch, directory=directory_of(9))
    assert voter.node.high_watermark == 0
    voter.fetch(2, offset=1, last_epoch=voter.node.epoch, directory=directory_of(2))
    assert voter.node.high_watermark == 1


def test_a_leader_whom_no_majority_follows_resigns() -> None:
    """It can not know whether another one was elected (KIP-595)."""
    voter = leader(OneVoter(THREE))
    voter.pass_time(CHECK_MS - 1)
    assert voter.node.role is Role.LEADER
    voter.pass_time(1)
    assert voter.node.role is Role.RESIGNED


def test_of_five_voters_two_others_have_to_follow() -> None:
    voter = leader(OneVoter(FIVE))
    voter.pass_time(CHECK_MS - 1)
    for _ in range(3):
        voter.fetch(2, offset=1, last_epoch=voter.node.epoch)
    voter.pass_time(1)
    assert voter.node.role is Role.RESIGNED


def test_of_five_voters_two_others_are_enough() -> None:
    voter = leader(OneVoter(FIVE))
    voter.pass_time(CHECK_MS - 1)
    for node_id in (2, 3):
        voter.fetch(node_id, offset=1, last_epoch=voter.node.epoch)
    voter.pass_time(CHECK_MS - 1)
    assert voter.node.role is Role.LEADER


def test_a_voter_that_fetches_a_snapshot_follows() -> None:
    log = MemoryLog([batch_of(["a"], base_offset=0, epoch=3)])
    snapshot_id = SnapshotId(1, 3)
    log.snapshots[snapshot_id] = MemorySnapshot(((3, "a"),), (), b"some bytes")
    log.let_go(snapshot_id)
    voter = leader(OneVoter(THREE, log=log))
    voter.pass_time(CHECK_MS - 1)
    request: FetchSnapshotRequest = wire.fetch_snapshot_request(LocalReplica(2), voter.node.epoch, snapshot_id, 0, 5)
    answer = voter.ask(request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    voter.pass_time(CHECK_MS - 1)
    assert voter.node.role is Role.LEADER


def test_a_log_that_begins_at_an_older_snapshot_than_its_latest_goes_on_from_there() -> None:
    """The epoch in front of its first record is that of the snapshot which ends there."""
    log = MemoryLog([batch_of([name], base_offset=offset, epoch=3) for offset, name in enumerate("abc")])
    for end_offset in (1, 2):
        log.snapshots[SnapshotId(end_offset, 3)] = MemorySnapshot((), (), b"some bytes")
    log.let_go(SnapshotId(1, 3))
    voter = leader(OneVoter(THREE, log=log))
    answer = voter.fetch(2, offset=1, last_epoch=3)
    assert (answer.snapshot_id.end_offset, answer.diverging_epoch.end_offset) == (-1, -1)


def test_an_empty_log_ends_in_the_epoch_of_the_snapshot_that_it_begins_at_with_an_older_one_beside_it() -> None:
    """A fetched snapshot is there before older ones go. With another epoch it would lose votes, or win them."""
    log = MemoryLog([batch_of(["a"], base_offset=0, epoch=3)])
    log.let_go(SnapshotId(1, 3))
    for snapshot_id in (SnapshotId(0, 1), SnapshotId(1, 3)):
        log.snapshots[snapshot_id] = MemorySnapshot((), (), b"some bytes")
    chain = EpochChain.of_log(log)
    assert chain.end == (1, 3)
    assert chain.end_of(2) == (1, 3)


def test_what_a_log_does_not_tell_of_older_epochs_is_in_the_snapshot() -> None:
    """It begins in the midst of an epoch, and in front of its snapshot: a replica with records of an older epoch can't
    be told where these end, and would refuse to cut off what is committed.
    """
    log = MemoryLog([batch_of([name], base_offset=offset, epoch=3) for offset, name in enumerate("abcd")])
    log.let_go(SnapshotId(1, 3))
    log.snapshots[SnapshotId(3, 3)] = MemorySnapshot((), (), b"some bytes")
    voter = leader(OneVoter(THREE, log=log))
    answer = voter.fetch(2, offset=2, last_epoch=2)
    assert (answer.snapshot_id.end_offset, answer.snapshot_id.epoch) == (3, 3)
    assert answer.diverging_epoch.end_offset == -1


def test_a_leader_that_steps_down_answers_without_records() -> None:
    """Its log may be truncated before they are read."""
    voter = leader(OneVoter(THREE))
    fetched = voter.tell(voter.fetch_request(2, offset=0, last_epoch=0))
    voter.tell(vote_request(3, voter.node.epoch + 1, end=(9, voter.node.epoch)))
    responses: dict[int, OutgoingResponse] = {each.token: each for each in voter.node.ready().responses}
    assert responses[fetched].read is None


def test_voters_whose_ports_refused_count_again_when_they_fetch() -> None:
    """They have been started anew, one after the other, and this leader has asked them nothing since."""
    voter = leader(OneVoter(THREE))
    for node_id in (2, 3):
        assert voter.node.has_majority
        refused = voter.sent[node_id]
        voter.node.step(RequestFailed(refused.request_id, connection_refused=True), voter.now_ms)
    assert not voter.node.has_majority
    voter.fetch(2, offset=1, last_epoch=voter.node.epoch)
    assert voter.node.has_majority


def test_a_voter_whose_port_refused_counts_again_when_it_asks_for_a_vote() -> None:
    voter = leader(OneVoter(THREE))
    for node_id in (2, 3):
        refused = voter.sent[node_id]
        voter.node.step(RequestFailed(refused.request_id, connection_refused=True), voter.now_ms)
    voter.vote(2, voter.node.epoch + 1, (9, voter.node.epoch), pre_vote=True)
    assert voter.node.has_majority
