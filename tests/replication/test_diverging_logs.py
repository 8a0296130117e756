"""Where a follower cuts its log off when the leader names an epoch and its end, and which answers it passes over."""

from __future__ import annotations

from pykbroker.protocol.messages.fetch import EpochEndOffset
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.replication.follower import Follower
from pykbroker.replication.partition import Partition
from pykbroker.storage.segments.trusted_batches import PIECE_BATCHES
from tests.replication.truncations import begin_anew

from .replicas import NOW_MS, Replicas, State
from .test_follower import answer


def batch_at(offset: int, epoch: int) -> bytes:
    record = Record(key=None, value=b"v" * 20, timestamp=1)
    return encode_batch([record], base_offset=offset, partition_leader_epoch=epoch)


def follower_with(*epochs: int) -> tuple[Follower, Partition]:
    """One record in each of these epochs; the next leader leads epoch 9, and was asked."""
    replicas = Replicas((1, 2))
    partition = replicas[2].partition
    replicas.state = State(1, 9, 1, (1, 2), (1, 2))
    replicas.publish()
    for offset, epoch in enumerate(epochs):
        partition.log.append_as_follower(batch_at(offset, epoch))
    follower = replicas[2].follower_of(1)
    assert follower.next_request(0, 102) is not None
    return follower, partition


def test_what_the_leader_has_more_of_an_epoch_does_not_keep_later_epochs() -> None:
    """Both have the beginning of epoch 0; what this log has behind it is of an epoch that the leader never had."""
    follower, partition = follower_with(0, 0, 1)
    follower.answered(answer(diverging_epoch=EpochEndOffset(epoch=0, end_offset=5)), 0, NOW_MS)
    assert partition.log.log_end_offset == 2


def test_where_the_epochs_differ_the_own_end_of_the_earlier_one_counts() -> None:
    """This log knows nothing of the leader's epoch 2: the two have been apart since epoch 0 at the latest."""
    follower, partition = follower_with(0, 0, 3, 3)
    follower.answered(answer(diverging_epoch=EpochEndOffset(epoch=2, end_offset=3)), 0, NOW_MS)
    assert partition.log.log_end_offset == 2


def test_an_answer_of_the_epoch_before_is_passed_over_though_nobody_has_followed_anew() -> None:
    """The metadata have given the partition its next epoch; what was asked in the one before may not be in its log."""
    follower, partition = follower_with()
    partition.apply_state(State(3, 10, 2, (1, 2, 3), (1, 2, 3)), 0)
    records = batch_at(0, 9)
    follower.answered(answer(high_watermark=0, log_start_offset=0, records=records), 0, NOW_MS)
    assert partition.log.log_end_offset == 0


def test_the_rest_of_a_large_answer_is_not_for_a_log_that_was_cut_off_meanwhile() -> None:
    """It is taken in turns: behind the first piece there would be a hole."""
    follower, partition = follower_with()
    count = 2 * PIECE_BATCHES
    records = b"".join(batch_at(offset, 9) for offset in range(count))
    taking = follower.take_answer(answer(high_watermark=0, log_start_offset=0, records=records), 0, NOW_MS)
    next(taking)
    assert 0 < partition.log.log_end_offset < count
    begin_anew(partition, 0)
    for _ in taking:
        pass
    assert partition.log.log_end_offset == 0
