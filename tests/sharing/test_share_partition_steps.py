"""A share partition of 3,000 records, each of which is a run or a batch of its own, at work in steps: none of them is
longer than a turn, and others may do anything between two of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykbroker.long_work import LongWork, whole
from pykbroker.server.runtime.turns import STEPS_PER_TURN
from pykbroker.sharing.partition.share_partition import MOST_ACQUIRED, SharePartition
from pykbroker.sharing.partition.values import (
    Acknowledgement,
    AcknowledgeType,
    AcquireMode,
    Change,
    FetchedBatch,
    Limits,
    RecordState,
)
from pykbroker.sharing.persister import PartitionState, SharePartitionKey, StateBatch

RECORDS = 3_000
LIMITS = Limits(max_record_locks=RECORDS)
LETTERS = LIMITS._replace(has_dead_letters=True)
KEY = SharePartitionKey("group", bytes(16), 0)
AVAILABLE = RecordState.AVAILABLE


def of_many_batches() -> SharePartition:
    """Return one that was loaded with a batch for each record, so that each is one of its own."""
    batches = tuple(StateBatch(each, each, 0, 1 + each % 2) for each in range(RECORDS))
    return SharePartition.load(PartitionState(KEY, 1, 1, 0, 0, batches), 0)


def of_many_runs() -> SharePartition:
    """Return one with a single batch, each of whose records has another count than its neighbours."""
    partition = SharePartition(0)
    fetched = [FetchedBatch(0, RECORDS - 1)]
    partition.acquire("first", AcquireMode.RECORD_LIMIT, RECORDS, RECORDS, 0, fetched, LIMITS, 0)
    every_second = [Acknowledgement(each, each, [AcknowledgeType.RELEASE]) for each in range(0, RECORDS, 2)]
    partition.complete(partition.acknowledge("first", every_second, LIMITS, 0), is_persisted=True, now_ms=0)
    acquire_all(partition, "second")
    partition.complete(partition.release("first", LIMITS), is_persisted=True, now_ms=0)
    partition.complete(partition.release("second", LIMITS), is_persisted=True, now_ms=0)
    return partition


MADE = pytest.mark.parametrize("made", [of_many_batches, of_many_runs])


def acquire_all(partition: SharePartition, member: str, now_ms: int = 0) -> int:
    """Return how many calls it took."""
    calls = 0
    while (offset := partition.next_fetch_offset()) < RECORDS:
        fetched = [FetchedBatch(offset, RECORDS - 1)]
        acquired = partition.acquire(
            member, AcquireMode.BATCH_OPTIMIZED, RECORDS, RECORDS, offset, fetched, LIMITS, now_ms
        )
        assert 0 < len(acquired) <= MOST_ACQUIRED
        calls += 1
    return calls


def run_counts(partition: SharePartition) -> tuple[int, int]:
    return sum(1 for _ in partition.runs()), partition.batch_count


def longest(work: LongWork[object]) -> int:
    return max(work, default=0)


@MADE
def test_there_are_as_many_runs_as_records(made: Callable[[], SharePartition]) -> None:
    assert run_counts(made()) in [(RECORDS, RECORDS), (RECORDS, 1)]


@MADE
def test_one_call_hands_out_few_pieces_and_the_next_one_goes_on(made: Callable[[], SharePartition]) -> None:
    partition = made()
    assert acquire_all(partition, "anna") == RECORDS // MOST_ACQUIRED
    assert all(run.member == "anna" for run in partition.runs())


@MADE
@pytest.mark.parametrize("limits", [LIMITS, LETTERS])
def test_no_step_is_longer_than_a_turn(made: Callable[[], SharePartition], limits: Limits) -> None:
    partition = made()
    limits = limits._replace(delivery_count_limit=3)
    acquire_all(partition, "anna")
    change = Change()
    steps: list[int] = []

    def release() -> LongWork[None]:
        nonlocal change
        change = yield from partition.release_steps("anna", limits)

    def expire() -> LongWork[None]:
        nonlocal change
        change = yield from partition.expire_steps(limits, 10**9)

    for begin, is_persisted in ((release, False), (expire, True)):
        steps.append(longest(begin()))
        assert sum(last - first + 1 for first, last, *_ in change.batches) == RECORDS
        steps.append(longest(partition.complete_steps(change, is_persisted=is_persisted, now_ms=1)))
    settled = sum(last - first + 1 for first, last, *_ in change.letters)
    assert bool(settled) == limits.has_dead_letters
    steps.append(longest(partition.log_begins_steps(RECORDS - 1)))
    assert max(steps) < STEPS_PER_TURN


def test_a_state_is_loaded_in_steps() -> None:
    batches = tuple(StateBatch(each, each, 0, 1) for each in range(RECORDS))
    assert longest(SharePartition.load_steps(PartitionState(KEY, 1, 1, 0, 0, batches), 0)) < STEPS_PER_TURN


@MADE
def test_others_may_do_anything_between_two_steps(made: Callable[[], SharePartition]) -> None:
    partition = made()
    acquire_all(partition, "anna")
    release = partition.release_steps("anna", LIMITS)
    for _ in range(20):
        next(release)
    accepted = partition.acknowledge("anna", [Acknowledgement(2500, RECORDS - 1, [1])], LIMITS, 0)
    partition.complete(accepted, is_persisted=True, now_ms=0)
    released = whole(release)
    complete = partition.complete_steps(released, is_persisted=True, now_ms=0)
    for _ in range(20):
        next(complete)
    offset = partition.next_fetch_offset()
    assert offset == 0
    fetched = [FetchedBatch(0, RECORDS - 1)]
    acquired = partition.acquire("bert", AcquireMode.RECORD_LIMIT, 10, 10, 0, fetched, LIMITS, 0)
    of_bert = {at for first, last, _ in acquired for at in range(first, last + 1)}
    assert 0 in of_bert
    whole(complete)
    states = {at: run.state for run in partition.runs() for at in range(run.first, run.last + 1)}
    assert {at for at, state in states.items() if state is RecordState.ACQUIRED} == of_bert
    assert {at for at, state in states.items() if state is AVAILABLE} == set(range(2500)) - of_bert
    assert {state for at, state in states.items() if at >= 2500} == {RecordState.ACKNOWLEDGED}


@MADE
def test_the_log_begins_later_while_records_are_released(made: Callable[[], SharePartition]) -> None:
    partition = made()
    acquire_all(partition, "anna")
    partition.complete(partition.release("anna", LIMITS), is_persisted=True, now_ms=0)
    acquire_all(partition, "bert")
    release = partition.release_steps("bert", LIMITS)
    for _ in range(20):
        next(release)
    assert partition.log_begins_at(1500)
    change = whole(release)
    partition.complete(change, is_persisted=True, now_ms=0)
    partition.log_begins_at(1501)
    assert partition.start_offset == 1501
    assert partition.next_fetch_offset() == 1501
    assert partition.delivery_complete_count == 0


def test_the_start_moves_over_what_is_settled_though_nobody_persisted_it() -> None:
    """Else nobody could acquire anything any more: everything that may be in flight is settled."""
    partition = SharePartition(0)
    limits = Limits(max_record_locks=100, delivery_count_limit=1)
    partition.acquire("anna", AcquireMode.BATCH_OPTIMIZED, 100, 100, 0, [FetchedBatch(0, 99)], limits, 0)
    change = partition.expire(limits, 10**9)
    assert partition.complete(change, is_persisted=False, now_ms=10**9)
    assert (partition.start_offset, partition.in_flight) == (100, 0)
    assert partition.can_acquire(limits)
