"""What time does: aborts of transactions that take too long, and ids that are forgotten."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.transactions import shard, timeouts
from pykbroker.transactions.config import TransactionConfig

from .world import TransactionWorld, after

ORDERS = TopicPartition("orders", 0)
CHECK_MS = 10_000
DAY_MS = 86_400_000


def test_a_coordinator_without_transactions_sleeps() -> None:
    assert TransactionWorld().shard.next_deadline_ms() is None


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(transaction_version: int) -> None:
    world = TransactionWorld(transaction_version=transaction_version)
    producer = world.producer(timeout_ms=CHECK_MS)
    world.add(producer, ORDERS)
    world.pass_time(CHECK_MS)
    assert world.state() == "Ongoing"
    world.pass_time(CHECK_MS)
    (markers,) = world.markers
    assert (markers.is_commit, markers.producer_epoch) == (False, 1)
    assert markers.transaction_version == (2 if transaction_version == 2 else 0)
    assert world.end(producer, commit=True, version=4).error_code == ErrorCode.PRODUCER_FENCED
    world.write_markers()
    assert world.state() == "CompleteAbort"
    assert world.end(producer, commit=True, version=4).error_code == ErrorCode.PRODUCER_FENCED
    assert world.producer() == (producer[0], 2)
    world.assert_log_is_complete()


def test_each_transaction_has_its_own_time() -> None:
    world = TransactionWorld()
    world.add(world.producer("short", timeout_ms=1000), ORDERS, transactional_id="short")
    world.add(world.producer("long", timeout_ms=60_000), ORDERS, transactional_id="long")
    world.pass_time(CHECK_MS)
    assert [markers.transactional_id for markers in world.markers] == ["short"]
    assert world.state("long") == "Ongoing"


def test_a_partition_that_is_added_gives_no_more_time() -> None:
    """The time counts from the beginning of the transaction, however busy its producer is."""
    world = TransactionWorld()
    producer = world.producer(timeout_ms=3 * CHECK_MS)
    world.add(producer, ORDERS)
    world.pass_time(2 * CHECK_MS)
    world.add(producer, TopicPartition("orders", 1))
    world.pass_time(2 * CHECK_MS)
    assert world.state() == "PrepareAbort"


@pytest.mark.parametrize("transaction_version", [0, 1])
def test_a_producer_with_the_last_epoch_is_fenced_without_another_one(transaction_version: int) -> None:
    """An epoch is an int16: the one behind the last could not be written."""
    world = TransactionWorld(transaction_version=transaction_version)
    producer = world.producer_at(32767, timeout_ms=CHECK_MS)
    world.add(producer, ORDERS)
    world.pass_time(2 * CHECK_MS)
    (markers,) = world.write_markers()
    assert (markers.is_commit, markers.producer_epoch) == (False, 32767)
    assert world.producer() == (producer[0] + 1, 0)
    world.assert_log_is_complete()


def test_the_time_goes_on_while_there_is_no_coordinator() -> None:
    world = TransactionWorld()
    world.add(world.producer(timeout_ms=60_000), ORDERS)
    world.now_ms += 60_001
    world.restart()
    world.pass_time(CHECK_MS)
    assert world.state() == "PrepareAbort"


def test_how_often_is_looked_is_configured() -> None:
    world = TransactionWorld(TransactionConfig(abort_timed_out_interval_ms=7))
    world.add(world.producer(timeout_ms=1), ORDERS)
    assert world.shard.next_deadline_ms() == world.now_ms + 7
    world.pass_time(7)
    assert world.state() == "PrepareAbort"


def test_an_abort_that_needs_a_new_producer_id_waits_for_one() -> None:
    world = TransactionWorld()
    producer = world.producer_at(32766, timeout_ms=1)
    world.add(producer, ORDERS)
    world.out_of_producer_ids = True
    world.pass_time(CHECK_MS)
    assert world.state() == "Ongoing"
    world.out_of_producer_ids = False
    world.pass_time(CHECK_MS)
    assert world.state() == "PrepareAbort"
    world.write_markers()
    assert (world.describe().producer_id, world.describe().producer_epoch) == (producer[0] + 1, 0)


@pytest.mark.parametrize("transaction_version", [1, 2])
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("commit", [True, False])
def test_a_late_end_of_a_timed_out_transaction_at_the_last_epoch_does_not_keep_it_open(
    transaction_version: int, version: int, commit: bool
) -> None:
    """KAFKA-20090: the abort takes the last epoch and EndTxn comes late: the producer id changes, sooner or later."""
    world = TransactionWorld(transaction_version=transaction_version)
    producer = world.producer_at(32766, timeout_ms=1)
    world.add(producer, ORDERS, version=version)
    world.pass_time(CHECK_MS)
    assert world.state() == "PrepareAbort"
    world.end(producer, commit=commit, version=version)
    (markers,) = world.write_markers()
    assert (markers.producer_id, markers.producer_epoch, markers.is_commit) == (producer[0], 32767, False)
    assert world.state() == "CompleteAbort"
    late = world.end(producer, commit=commit, version=version)
    if (transaction_version, version, commit) == (2, 5, False):
        assert after(late) == (producer[0] + 1, 0), "it asked for what has come about"
    else:
        assert late.error_code != ErrorCode.NONE
    new = world.producer()
    assert new == (producer[0] + 1, 1 if transaction_version == 2 else 0)
    assert world.add(new, ORDERS, version=version).errors[ORDERS] is ErrorCode.NONE
    world.assert_log_is_complete()


def test_an_id_that_nobody_uses_is_forgotten_after_a_week() -> None:
    world = TransactionWorld()
    world.producer("unused")
    world.add(world.producer("open", timeout_ms=900_000), ORDERS, transactional_id="open")
    world.pass_time(6 * DAY_MS)
    world.write_markers()
    assert world.listed() == ["unused", "open"]
    world.pass_time(DAY_MS + 3_600_000)
    assert world.listed() == ["open"]
    assert world.log[-1][1] is None
    assert world.describe("unused").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    world.restart()
    assert world.listed() == ["open"]


def test_what_is_decided_is_kept_until_its_markers_are_there() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ORDERS)
    world.end(producer, commit=True)
    world.pass_time(30 * DAY_MS)
    assert world.state() == "PrepareCommit"


def test_a_coordinator_that_forgot_everything_sleeps_again() -> None:
    world = TransactionWorld(TransactionConfig(transactional_id_expiration_ms=1))
    world.producer()
    world.pass_time(3_600_000)
    assert not world.shard.transactions
    assert world.shard.next_deadline_ms() is None


# Very many


def pass_time_in_steps(world: TransactionWorld, ms: int) -> list[int]:
    """How many records each step wrote."""
    world.now_ms += ms
    written = []
    while (deadline_ms := world.shard.next_deadline_ms()) is not None and deadline_ms <= world.now_ms:
        before = len(world.log)
        world.expire()
        written.append(len(world.log) - before)
    return written


def test_very_many_transactions_that_take_too_long_are_aborted_in_several_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "MOST_DECIDED", 3)
    world = TransactionWorld()
    for number in range(10):
        name = f"t{number}"
        world.add(world.producer(name, timeout_ms=1_000), ORDERS, transactional_id=name)
    assert pass_time_in_steps(world, 2 * CHECK_MS) == [3, 3, 3, 1]
    assert sorted(markers.transactional_id for markers in world.markers) == [f"t{number}" for number in range(10)]


def test_very_many_ids_are_forgotten_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "MOST_REMOVED", 4)
    world = TransactionWorld()
    for number in range(10):
        world.producer(f"t{number}")
    assert pass_time_in_steps(world, 8 * DAY_MS) == [4, 4, 2]
    assert not world.shard.transactions


def test_very_many_ids_are_looked_at_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "MOST_LOOKED_AT", 4)
    world = TransactionWorld()
    for number in range(10):
        world.producer(f"t{number}")
    assert pass_time_in_steps(world, 2 * CHECK_MS * 360) == [0, 0, 0]
    assert len(world.shard.transactions) == 10


@pytest.mark.parametrize("is_kept", [True, False])
def test_very_many_decided_transactions_are_carried_on_in_several_steps(
    monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    monkeypatch.setattr(shard, "MOST_DECIDED", 3)
    world = TransactionWorld()
    for number in range(5):
        name = f"t{number}"
        producer = world.producer(name)
        world.add(producer, ORDERS, transactional_id=name)
        world.end(producer, commit=True, transactional_id=name)
    successor = world.loaded()
    first = successor.start_timers(world.now_ms, world.timestamp_ms)
    successor.begin_trial()
    second = successor.start_timers(world.now_ms, world.timestamp_ms)
    successor.end_trial(is_kept=is_kept)
    assert (first.is_unfinished, second.is_unfinished) == (True, False)
    results = [first, second] if is_kept else [first, successor.start_timers(world.now_ms, world.timestamp_ms)]
    carried_on = [effect.transactional_id for result in results for effect in result.effects]
    assert sorted(carried_on) == [f"t{number}" for number in range(5)]
