"""What the high watermark never passes, and when it does not go back: each bound with the event that would break it."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.appended import Appended
from tests.replication.truncations import truncate

from .replicas import LAG_TIME_MAX_MS, Replicas


def followed() -> Replicas:
    """Broker 2 has two of the three records that its leader has, and knows that one is replicated."""
    replicas = Replicas((1, 2))
    replicas.append("a")
    replicas.settle()
    replicas.append("b")
    replicas.fetch(2)
    replicas.append("c")
    partition = replicas[2].partition
    assert (partition.log.log_end_offset, partition.high_watermark) == (2, 1)
    return replicas


def test_a_follower_knows_no_more_to_be_replicated_than_it_has() -> None:
    partition = followed()[2].partition
    assert partition.follow_watermarks(100, 0)
    assert partition.high_watermark == 2


def test_a_new_leader_that_knows_less_does_not_take_back_what_was_read() -> None:
    """The new leader learns of it with its first fetches; consumers have read it from this replica (KIP-392)."""
    partition = followed()[2].partition
    assert not partition.follow_watermarks(0, 0)
    assert partition.high_watermark == 1


def test_a_truncation_takes_the_high_watermark_along() -> None:
    """Also where it lost what was replicated: nobody may read behind the log's end."""
    partition = followed()[2].partition
    truncate(partition, 0)
    assert partition.high_watermark == 0
    partition.append_as_follower(followed()[1].bytes())
    assert partition.high_watermark == 0, "what comes now may be other records"


def test_records_that_are_not_replicated_cannot_be_deleted() -> None:
    partition = followed()[1].partition
    assert (partition.high_watermark, partition.log.log_end_offset) == (1, 3)
    assert partition.delete_records(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.log.log_start_offset == 0
    assert partition.delete_records(1).error_code == ErrorCode.NONE


def test_what_a_follower_had_in_an_earlier_epoch_does_not_count_in_this_one() -> None:
    """It may have lost its disk since: only what it says in this epoch counts (Kafka's `resetReplicaState`)."""
    replicas = Replicas()
    replicas.append("a")
    replicas.fetch(2)
    replicas.fetch(2)
    leader = replicas.leader.partition
    assert leader.high_watermark == 0, "broker 3 has nothing"
    replicas.elect(1, isr=(1, 2))
    assert leader.high_watermark == 0
    replicas.fetch(2)
    assert leader.high_watermark == 1


def test_a_replica_that_is_to_leave_the_isr_is_waited_for_until_it_has_left() -> None:
    replicas = Replicas()
    replicas.settle()
    replicas.append("a")
    replicas.fetch(2)
    replicas.wait(LAG_TIME_MAX_MS + 1)
    replicas.fetch(2)
    leader = replicas.leader.partition
    leader.maybe_shrink_isr(replicas.now_ms)
    replicas.append("b")
    replicas.fetch(2)
    assert leader.high_watermark == 0, "the controller may elect broker 3 before it hears of the change"
    replicas.answer_proposals(1)
    assert leader.isr == (1, 2)
    assert leader.high_watermark == 1


def test_what_a_follower_has_not_flushed_is_not_replicated_when_it_leads() -> None:
    """It took over a high watermark that its own disk has not come to; flush.messages promises the disk."""
    replicas = Replicas((1, 2), flush_messages="1")
    replicas.append("a")
    replicas.leader.partition.log.flush()
    replicas.settle()
    replicas[2].partition.follow_watermarks(1, 0)
    replicas.elect(2)
    appended = Appended(replicas[2].partition, 1)
    assert replicas[2].partition.high_watermark == 1
    assert not appended.is_replicated
    assert appended.settled() is None
    replicas[2].partition.log.flush()
    assert appended.settled() is ErrorCode.NONE


def test_a_leader_with_followers_waits_for_its_own_disk() -> None:
    replicas = Replicas((1, 2), flush_messages="1")
    replicas.append("a")
    replicas.settle()
    leader = replicas.leader.partition
    assert (leader.high_watermark, replicas[2].partition.log.log_end_offset) == (0, 1)
    leader.log.flush()
    leader.maybe_increment_high_watermark()
    assert leader.high_watermark == 1


def test_a_write_that_lost_its_in_sync_minimum_is_told_so() -> None:
    """The record is there, on fewer replicas than acks=all was promised."""
    replicas = Replicas(min_isr=2)
    replicas.settle()
    replicas.append("a", acks=-1)
    appended = Appended(replicas.leader.partition, 1)
    replicas.settle()
    assert appended.settled() is ErrorCode.NONE
    replicas.decide(isr=(1,))
    assert appended.settled() is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
