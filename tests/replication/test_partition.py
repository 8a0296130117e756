"""A partition's rules on real logs: roles, epochs, the high watermark, and what each reader may see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches
from pykbroker.replication.appended import Appended
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchIsolation, ListedOffset, OffsetSpec
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.log.log import AppendResult, Log, LogConfig
from tests.replication.brokers import FixedBrokers, Proposals
from tests.storage.transactions import ABORT, COMMIT, Transactions

CONSUMER = FetchIsolation.HIGH_WATERMARK
NOW_MS = 1_000_000
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class State:
    leader: int = 1
    leader_epoch: int = 0
    partition_epoch: int = 0
    replicas: tuple[int, ...] = (1,)
    isr: tuple[int, ...] = (1,)
    adding_replicas: tuple[int, ...] = ()


THREE = (1, 2, 3)

MakePartition = Callable[..., Partition]


@pytest.fixture
def make(tmp_path: Path) -> MakePartition:
    def make_partition(
        state: State | None = State(), *, high_watermark: int = 0, brokers: FixedBrokers | None = None, **config: str
    ) -> Partition:
        properties: dict[str, str | None] = {key.replace("_", "."): value for key, value in config.items()}
        log = Log.open(OsDisk(), str(tmp_path / "apples-0"), LogConfig.from_properties(properties), now_ms=NOW_MS)
        rules = Proposals(brokers or FixedBrokers()).rules()
        partition = Partition("apples", b"a" * 16, 0, log, 1, rules, high_watermark=high_watermark)
        if state is not None:
            partition.apply_state(state, 0)
        return partition

    return make_partition


def batch(count: int = 1, timestamp: int = NOW_MS) -> bytes:
    return encode_batch([Record(key=b"k", value=b"v", timestamp=timestamp + i) for i in range(count)])


def append(partition: Partition, count: int = 1, acks: int = 1, timestamp: int = NOW_MS) -> AppendResult:
    return partition.append_as_leader(batch(count, timestamp), NOW_MS, acks)


class Watcher:
    def __init__(self, partition: Partition) -> None:
        self.calls = 0
        partition.watchers[self] = None

    def partition_changed(self, partition: Partition) -> None:
        self.calls += 1


# The high watermark


def test_with_one_replica_the_high_watermark_follows_the_log_end(make: MakePartition) -> None:
    partition = make()
    append(partition, 3)
    assert partition.high_watermark == partition.log.log_end_offset == 3
    assert Appended(partition, 3).settled() is ErrorCode.NONE


def test_a_leader_waits_until_the_registration_of_its_process_is_known(make: MakePartition) -> None:
    """Before, the only replica in sync may be one of several, and deposed."""
    brokers = FixedBrokers(has_registered=False)
    partition = make(brokers=brokers)
    appended = append(partition, 3)
    partition.maybe_shrink_isr(1)
    assert (partition.high_watermark, Appended(partition, appended.last_offset + 1).settled()) == (0, None)
    watcher = Watcher(partition)
    brokers.has_registered = True
    partition.lead()
    assert (partition.high_watermark, watcher.calls) == (3, 1)


def test_a_leader_begins_no_epoch_before_the_registration_of_its_process_is_known(make: MakePartition) -> None:
    """It may have begun that epoch in front of what a power cut took, and another one leads now."""
    brokers = FixedBrokers(has_registered=False)
    partition = make(State(leader_epoch=1), brokers=brokers)
    assert partition.log.epochs == []
    partition.apply_state(State(leader=2, leader_epoch=2, partition_epoch=1, replicas=(1, 2)), 0)
    brokers.has_registered = True
    partition.lead()
    assert partition.log.epochs == []
    partition.apply_state(State(leader_epoch=3, partition_epoch=2), 0)
    assert partition.log.epochs == [(3, 0)]


def test_what_flush_messages_wants_on_the_disk_is_not_read_before_it_is_there(make: MakePartition) -> None:
    partition = make(flush_messages="2")
    append(partition)
    assert partition.high_watermark == 1
    append(partition)
    second = Appended(partition, 2)
    assert (partition.high_watermark, second.settled(), second.lacks_flush) == (1, None, True)
    watcher = Watcher(partition)
    partition.log.flush()
    partition.maybe_increment_high_watermark()
    assert (partition.high_watermark, second.settled(), second.lacks_flush) == (2, ErrorCode.NONE, False)
    assert watcher.calls == 1


def test_a_new_leader_shows_nothing_that_it_never_flushed(make: MakePartition) -> None:
    """It wrote the tail as a follower, or found it when it started; a power cut would take it."""
    partition = make(State(leader=2, replicas=(1, 2)), flush_messages="1")
    partition.append_as_follower(batch(3))
    partition.apply_state(State(leader_epoch=1, partition_epoch=1), 0)
    assert partition.lacks_flush
    append(partition)
    assert (partition.high_watermark, partition.log.log_end_offset) == (0, 4)
    assert partition.list_offset(OffsetSpec.LATEST, CONSUMER).error_code is ErrorCode.OFFSET_NOT_AVAILABLE
    partition.log.flush()
    partition.maybe_increment_high_watermark()
    assert partition.high_watermark == 4


def test_a_leader_does_not_take_back_what_may_have_been_read_before_its_start(make: MakePartition) -> None:
    partition = make()
    append(partition, 3)
    partition.log.update_config(replace(partition.log.config, flush_messages=1))
    partition.apply_state(State(leader_epoch=1, partition_epoch=1), 0)
    append(partition)
    assert partition.lacks_flush
    assert partition.high_watermark == 3


def test_the_high_watermark_is_the_least_log_end_of_the_isr(make: MakePartition) -> None:
    partition = make(State(replicas=THREE, isr=THREE))
    append(partition, 2)
    append(partition, 2)
    assert partition.high_watermark == 0
    partition.read_as_replica(2, 4, MAX_BYTES, now_ms=0)
    assert partition.high_watermark == 0
    partition.read_as_replica(3, 2, MAX_BYTES, now_ms=0)
    assert partition.high_watermark == 2
    assert Appended(partition, 2).settled() is ErrorCode.NONE
    assert Appended(partition, 3).settled() is None
    partition.read_as_replica(3, 4, MAX_BYTES, now_ms=0)
    assert partition.high_watermark == 4


def test_a_replica_outside_of_the_isr_does_not_hold_the_high_watermark_back(make: MakePartition) -> None:
    partition = make(State(replicas=THREE, isr=(1, 2)))
    append(partition, 2)
    partition.read_as_replica(2, 2, MAX_BYTES, now_ms=0)
    assert partition.high_watermark == 2


def test_a_smaller_isr_lets_the_high_watermark_advance_and_wakes_who_waits(make: MakePartition) -> None:
    partition = make(State(replicas=THREE, isr=THREE))
    append(partition, 2)
    watcher = Watcher(partition)
    partition.apply_state(State(replicas=THREE, isr=(1,), partition_epoch=1), 0)
    assert partition.high_watermark == 2
    assert watcher.calls == 1


def test_below_min_isr_the_high_watermark_stands_still(make: MakePartition) -> None:
    partition = make(State(replicas=THREE, isr=(1, 2)), min_insync_replicas="2")
    append(partition, 2)
    partition.apply_state(State(replicas=THREE, isr=(1,), partition_epoch=1), 0)
    assert partition.high_watermark == 0
    assert Appended(partition, 2).settled() is None


def test_min_isr_above_the_number_of_replicas_counts_as_all_of_them(make: MakePartition) -> None:
    partition = make(min_insync_replicas="3")
    assert append(partition, 1, acks=-1).first_offset == 0
    assert partition.high_watermark == 1


def test_the_checkpointed_high_watermark_is_kept_within_the_log(make: MakePartition) -> None:
    assert make(None, high_watermark=77).high_watermark == 0
    assert make(None, high_watermark=-1).high_watermark == 0


# Appending


def test_only_the_leader_appends(make: MakePartition) -> None:
    partition = make(State(leader=2, replicas=THREE, isr=THREE))
    with pytest.raises(ApiError) as refused:
        partition.append_as_leader(batch(), NOW_MS, 1)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert Appended(partition, 0).settled() is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("acks", "accepted"), [(-1, False), (1, True), (0, True)])
def test_too_small_an_isr_refuses_acks_all_alone(make: MakePartition, acks: int, accepted: bool) -> None:
    partition = make(State(replicas=THREE, isr=(1,)), min_insync_replicas="2")
    if accepted:
        assert partition.append_as_leader(batch(), NOW_MS, acks).first_offset == 0
        return
    with pytest.raises(ApiError) as refused:
        partition.append_as_leader(batch(), NOW_MS, acks)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0


def test_an_isr_that_shrank_after_the_append_is_told(make: MakePartition) -> None:
    partition = make(State(replicas=THREE, isr=(1, 2)), min_insync_replicas="2")
    append(partition, acks=-1)
    partition.read_as_replica(2, 1, MAX_BYTES, now_ms=0)
    partition.apply_state(State(replicas=THREE, isr=(1,), partition_epoch=1), 0)
    assert Appended(partition, 1).settled() is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_batches_carry_the_leader_epoch(make: MakePartition) -> None:
    partition = make(State(leader_epoch=7))
    append(partition)
    stored = partition.log.read(0, MAX_BYTES).read()
    assert [each.header.partition_leader_epoch for each in iter_batches(stored)] == [7]


def test_an_append_wakes_who_watches(make: MakePartition) -> None:
    partition = make()
    watcher = Watcher(partition)
    append(partition)
    assert watcher.calls == 1


# Roles


def test_an_older_partition_epoch_changes_nothing(make: MakePartition) -> None:
    partition = make(State(leader_epoch=3, partition_epoch=5))
    assert not partition.apply_state(State(leader=2, leader_epoch=2, partition_epoch=4), 0)
    assert (partition.leader, partition.leader_epoch) == (1, 3)


def test_whoever_resigns_refuses_and_wakes_who_waits(make: MakePartition) -> None:
    partition = make()
    append(partition)
    watcher = Watcher(partition)
    partition.resign()
    assert watcher.calls == 1
    assert partition.read(0, MAX_BYTES, CONSUMER).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ApiError) as refused:
        partition.append_as_leader(batch(), NOW_MS, 1)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_reader_s_leader_epoch_is_compared(make: MakePartition, epoch: int, error: ErrorCode) -> None:
    partition = make(State(leader_epoch=5))
    append(partition)
    assert partition.read(0, MAX_BYTES, CONSUMER, epoch).error_code is error
    assert partition.list_offset(OffsetSpec.LATEST, CONSUMER, epoch).error_code is error
    assert partition.end_offset_for_epoch(5, epoch).error_code is error


def test_a_negative_epoch_that_does_not_mean_none_is_an_old_one_but_for_a_fetch(make: MakePartition) -> None:
    """As in Kafka's `FetchRequest.optionalEpoch` and `RequestUtils.getLeaderEpoch`."""
    partition = make(State(leader_epoch=5))
    append(partition)
    assert partition.read(0, MAX_BYTES, CONSUMER, -3).error_code is ErrorCode.NONE
    assert partition.list_offset(OffsetSpec.LATEST, CONSUMER, -3).error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert partition.end_offset_for_epoch(5, -3).error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_a_follower_serves_those_who_may_read_from_followers(make: MakePartition) -> None:
    partition = make(State(leader=2, replicas=(1, 2), isr=(1, 2)))
    assert partition.read(0, MAX_BYTES, CONSUMER).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.read(0, MAX_BYTES, CONSUMER, leader_only=False).error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("replica_id", "epoch", "error"),
    [
        (2, 0, ErrorCode.NONE),
        (9, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (9, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_is_no_replica_does_not_read_as_one(
    make: MakePartition, replica_id: int, epoch: int, error: ErrorCode
) -> None:
    partition = make(State(replicas=(1, 2), isr=(1, 2)))
    append(partition)
    assert partition.read_as_replica(replica_id, 0, MAX_BYTES, epoch, now_ms=0).error_code is error


# Reading


def test_a_consumer_reads_below_the_high_watermark_and_a_replica_to_the_end(make: MakePartition) -> None:
    partition = make(State(replicas=(1, 2), isr=(1, 2)))
    append(partition, 2)
    append(partition, 2)
    size = partition.log.size_bytes
    partition.read_as_replica(2, 2, MAX_BYTES, now_ms=0)
    assert partition.read(0, MAX_BYTES, CONSUMER).records_size == size // 2
    assert partition.read_as_replica(2, 0, MAX_BYTES, now_ms=0).records_size == size


@pytest.mark.parametrize(
    ("offset", "error", "size"),
    [
        (-5, ErrorCode.OFFSET_OUT_OF_RANGE, 0),
        (4, ErrorCode.OFFSET_OUT_OF_RANGE, 0),
        (3, ErrorCode.NONE, 0),
        (2, ErrorCode.NONE, 1),
    ],
)
def test_offsets_outside_of_the_log_are_out_of_range(
    make: MakePartition, offset: int, error: ErrorCode, size: int
) -> None:
    partition = make()
    append(partition, 3)
    data = partition.read(offset, MAX_BYTES, CONSUMER)
    assert data.error_code is error
    assert bool(data.records_size) is bool(size)
    expected = (-1, -1, -1) if error else (3, 3, 0)
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == expected


def test_between_high_watermark_and_log_end_there_is_nothing_and_no_error(make: MakePartition) -> None:
    partition = make(State(replicas=(1, 2), isr=(1, 2)))
    append(partition, 2)
    for offset in (0, 1, 2):
        data = partition.read(offset, MAX_BYTES, CONSUMER)
        assert (data.error_code, data.records_size) == (ErrorCode.NONE, 0)


def test_a_batch_larger_than_the_limit_comes_whole_or_not_at_all(make: MakePartition) -> None:
    partition = make()
    append(partition, 3)
    assert partition.read(1, 10, CONSUMER, min_one_batch=True).records_size == partition.log.size_bytes
    assert partition.read(1, 10, CONSUMER).records_size == 0
    assert partition.read(1, 0, CONSUMER, min_one_batch=True).records_size == partition.log.size_bytes


def test_only_read_committed_asks_for_aborted_transactions(make: MakePartition) -> None:
    partition = make()
    append(partition)
    assert partition.read(0, MAX_BYTES, CONSUMER).aborted_transactions is None
    assert partition.read(0, MAX_BYTES, FetchIsolation.TXN_COMMITTED).aborted_transactions == ()


def test_a_fetch_names_the_aborted_transactions_among_its_records(make: MakePartition) -> None:
    partition = make()
    transactions = Transactions(partition.log)
    for producer_id in (5, 6):
        transactions.write(producer_id)
        transactions.end(producer_id, ABORT)
    append(partition)
    transactions.write(7)
    append(partition)
    expected = {0: ((5, 0), (6, 2)), 1: ((5, 0), (6, 2)), 2: ((6, 2),), 4: ()}
    for offset, aborted in expected.items():
        assert partition.read(offset, MAX_BYTES, FetchIsolation.TXN_COMMITTED).aborted_transactions == aborted
    assert partition.last_stable_offset == 5
    assert partition.list_offset(OffsetSpec.LATEST, FetchIsolation.TXN_COMMITTED).offset == 5
    assert partition.list_offset(OffsetSpec.LATEST, CONSUMER).offset == 7


def test_a_transaction_is_decided_for_readers_when_its_marker_is_replicated(make: MakePartition) -> None:
    """A new leader might not have it."""
    partition = make(State(replicas=(1, 2), isr=(1, 2)))
    transactions = Transactions(partition.log)
    transactions.write(5)
    transactions.write(5)
    transactions.end(5, COMMIT)
    transactions.write(6)
    stable = []
    for replicated in range(5):
        partition.read_as_replica(2, replicated, MAX_BYTES, now_ms=0)
        assert partition.high_watermark == replicated
        stable.append(partition.last_stable_offset)
    assert stable == [0, 0, 0, 3, 3]


# Leader epochs


@pytest.fixture
def two_epochs(make: MakePartition) -> Partition:
    """Epoch 1: offsets 0 and 1; epoch 4: offset 2."""
    partition = make(State(leader_epoch=1))
    append(partition, 2)
    partition.apply_state(State(leader_epoch=4, partition_epoch=1), 0)
    append(partition)
    return partition


@pytest.mark.parametrize(
    ("asked", "epoch", "end_offset"),
    [(-1, -1, -1), (0, 0, 0), (1, 1, 2), (2, 1, 2), (3, 1, 2), (4, 4, 3), (5, -1, -1)],
)
def test_where_an_epoch_ends(two_epochs: Partition, asked: int, epoch: int, end_offset: int) -> None:
    found = two_epochs.end_offset_for_epoch(asked)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (ErrorCode.NONE, epoch, end_offset)


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch", "error", "diverging"),
    [
        (2, 1, ErrorCode.NONE, None),
        (3, 4, ErrorCode.NONE, None),
        (3, 1, ErrorCode.NONE, (1, 2)),
        (2, 3, ErrorCode.NONE, (1, 2)),
        (9, 4, ErrorCode.NONE, (4, 3)),
        (2, 5, ErrorCode.OFFSET_OUT_OF_RANGE, None),
        (-1, 1, ErrorCode.OFFSET_OUT_OF_RANGE, None),
    ],
)
def test_a_log_that_took_another_way_is_told_where(
    two_epochs: Partition, offset: int, last_fetched_epoch: int, error: ErrorCode, diverging: tuple[int, int] | None
) -> None:
    data = two_epochs.read(offset, MAX_BYTES, CONSUMER, last_fetched_epoch=last_fetched_epoch)
    assert (data.error_code, data.diverging_epoch) == (error, diverging)


def test_a_diverging_replica_does_not_move_the_high_watermark(make: MakePartition) -> None:
    partition = make(State(replicas=(1, 2), isr=(1, 2)))
    append(partition, 2)
    partition.read_as_replica(2, 9, MAX_BYTES, last_fetched_epoch=0, now_ms=0)
    assert partition.high_watermark == 0


# Offsets


def listed(found: ListedOffset) -> tuple[ErrorCode, int, int, int]:
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


NONE = ErrorCode.NONE


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (OffsetSpec.LATEST, (NONE, -1, 6, 0)),
        (OffsetSpec.EARLIEST, (NONE, -1, 0, 0)),
        (OffsetSpec.MAX_TIMESTAMP, (NONE, 1022, 5, 0)),
        (OffsetSpec.EARLIEST_LOCAL, (NONE, -1, 0, 0)),
        (OffsetSpec.LATEST_TIERED, (NONE, -1, -1, -1)),
        (OffsetSpec.EARLIEST_PENDING_UPLOAD, (NONE, -1, -1, -1)),
        (0, (NONE, 1000, 0, 0)),
        (1001, (NONE, 1001, 1, 0)),
        (1003, (NONE, 1020, 3, 0)),
        (1022, (NONE, 1022, 5, 0)),
        (1023, (NONE, -1, -1, -1)),
    ],
)
def test_listed_offsets(make: MakePartition, timestamp: int, expected: tuple[ErrorCode, int, int, int]) -> None:
    partition = make()
    append(partition, 3, timestamp=1000)
    append(partition, 3, timestamp=1020)
    assert listed(partition.list_offset(timestamp, CONSUMER)) == expected


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(OffsetSpec.LATEST, 0), (OffsetSpec.EARLIEST, 0), (OffsetSpec.MAX_TIMESTAMP, -1), (5, -1)]
)
def test_listed_offsets_of_an_empty_log(make: MakePartition, timestamp: int, offset: int) -> None:
    assert make().list_offset(timestamp, CONSUMER).offset == offset


def test_a_consumer_finds_no_timestamp_above_the_high_watermark(make: MakePartition) -> None:
    partition = make(State(replicas=(1, 2), isr=(1, 2)))
    append(partition, 2, timestamp=1000)
    assert listed(partition.list_offset(1000, CONSUMER)) == (NONE, -1, -1, -1)
    assert partition.list_offset(OffsetSpec.LATEST, CONSUMER).offset == 0
    assert partition.list_offset(1000, FetchIsolation.LOG_END).offset == 0
    assert partition.list_offset(OffsetSpec.LATEST, FetchIsolation.LOG_END).offset == 2


def test_a_new_leader_does_not_list_what_it_does_not_know_to_be_replicated(make: MakePartition) -> None:
    partition = make(State(replicas=(1, 2), isr=(1, 2)))
    append(partition, 2, timestamp=1000)
    partition.apply_state(State(leader_epoch=1, partition_epoch=1, replicas=(1, 2), isr=(1, 2)), 0)
    for timestamp in (OffsetSpec.LATEST, 1000):
        assert partition.list_offset(timestamp, CONSUMER).error_code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert partition.list_offset(OffsetSpec.EARLIEST, CONSUMER).offset == 0
    partition.read_as_replica(2, 2, MAX_BYTES, now_ms=0)
    assert partition.list_offset(OffsetSpec.LATEST, CONSUMER).offset == 2
