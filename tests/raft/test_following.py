"""What a follower takes of what its leader sends, and what it takes back."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.control_records import KRaftVersionRecord
from pykbroker.protocol.messages.quorum import FetchSnapshotResponse
from pykbroker.protocol.messages.quorum import SnapshotId as WireSnapshotId
from pykbroker.raft import wire
from pykbroker.raft.events import SnapshotChunk
from pykbroker.raft.snapshots import SnapshotId

from .memory_log import batch_of, control_batch_of
from .one_voter import OneVoter, dynamic_voters, static_voters

THREE = static_voters(1, 2, 3)
SNAPSHOT = SnapshotId(9, 4)


def test_records_of_a_later_epoch_than_the_leaders_are_not_taken() -> None:
    """They come from whoever leads that epoch, and this leader is not the one."""
    voter = OneVoter(THREE)
    voter.follow(2, epoch=5)
    voter.give(2, [batch_of(["a"], base_offset=0, epoch=5), batch_of(["b"], base_offset=1, epoch=6)])
    assert voter.node.log_end_offset == 1


def test_what_the_leader_calls_committed_counts_as_far_as_the_log_goes() -> None:
    """Otherwise records that nobody has committed would count as soon as they are appended."""
    voter = OneVoter(THREE)
    voter.follow(2, epoch=5)
    voter.give(2, [batch_of(["a"], base_offset=0, epoch=5)], high_watermark=100)
    assert voter.node.high_watermark == 1
    voter.lead()
    voter.node.propose("b", 1)
    voter.carry_out()
    assert (voter.node.log_end_offset, voter.node.high_watermark) == (3, 1)


def test_two_logs_agree_up_to_the_smaller_end_of_their_last_common_epoch() -> None:
    voter = OneVoter(THREE, [batch_of(["a", "b"], base_offset=0, epoch=3), batch_of(["c"], base_offset=2, epoch=4)])
    voter.follow(2, epoch=6)
    voter.give(2, diverging=(3, 100))
    assert voter.node.log_end_offset == 2, "the leader has more of epoch 3 than was ever here"
    voter.give(2, diverging=(3, 1))
    assert voter.node.log_end_offset == 1


def test_voters_go_with_the_record_that_named_them() -> None:
    """A set counts from the moment that it is in the log, committed or not, and no longer than that (KIP-853)."""
    voter = OneVoter(THREE)
    voter.follow(2, epoch=5)
    records = [KRaftVersionRecord(kraft_version=1), dynamic_voters(1, 2, 3, 4).to_record()]
    voter.give(2, [batch_of(["a"], base_offset=0, epoch=5), control_batch_of(records, base_offset=1, epoch=5)])
    assert voter.node.voters.ids == [1, 2, 3, 4]
    voter.follow(3, epoch=6)
    voter.give(3, diverging=(5, 1))
    assert voter.node.voters.ids == [1, 2, 3]
    assert voter.node.kraft_version == 0


def test_what_becomes_durable_behind_a_truncation_is_not_the_logs_any_more() -> None:
    """The answer to the next Fetch may come while the disk is still at work on the records of the last one."""
    voter = OneVoter(THREE)
    voter.follow(2, epoch=5)
    voter.hear(2, [batch_of(["a"], base_offset=0, epoch=5), batch_of(["b", "c"], base_offset=1, epoch=5)])
    ready = voter.node.ready()
    assert [each.count for each in ready.appends] == [3]
    voter.sent = {each.destination.node_id: each for each in ready.requests}
    voter.hear(2, diverging=(5, 1))
    assert voter.node.log_end_offset == 1
    voter.node.advance(election=ready.election, durable_end_offset=3)
    assert voter.node._quorum.durable_end_offset == 1


def test_a_piece_of_a_snapshot_from_another_place_is_not_taken() -> None:
    voter = OneVoter(THREE)
    voter.follow(2, epoch=5)
    known = wire.Known(5, 2, None)
    voter.answer(2, wire.fetch_response(known, ErrorCode.NONE, snapshot_id=SNAPSHOT))
    voter.step_answer(2, piece(position=5, data=b"56789"))
    assert voter.node.ready().snapshot_chunk is None


def test_the_pieces_of_a_snapshot_are_taken_one_behind_the_other() -> None:
    voter = OneVoter(THREE)
    voter.follow(2, epoch=5)
    known = wire.Known(5, 2, None)
    voter.answer(2, wire.fetch_response(known, ErrorCode.NONE, snapshot_id=SNAPSHOT))
    voter.step_answer(2, piece(position=0, data=b"01234"))
    assert voter.node.ready().snapshot_chunk == SnapshotChunk(SNAPSHOT, 0, b"01234", is_last=False)


def piece(*, position: int, data: bytes) -> FetchSnapshotResponse:
    """Of ten bytes."""
    response = wire.fetch_snapshot_response(wire.Known(5, 2, None), ErrorCode.NONE)
    answer = response.topics[0].partitions[0]
    answer.snapshot_id = WireSnapshotId(end_offset=SNAPSHOT.end_offset, epoch=SNAPSHOT.epoch)
    answer.size, answer.position, answer.unaligned_records = 10, position, data
    return response
