"""A share partition's rules, one by one: how records are cut, isolated and throttled, and what each refusal says."""

from __future__ import annotations

import time

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.sharing.partition.acknowledgements import are_well_formed
from pykbroker.sharing.partition.byte_shares import byte_share, rotated
from pykbroker.sharing.partition.share_partition import SharePartition
from pykbroker.sharing.partition.values import (
    Acknowledgement,
    Acquired,
    AcquireMode,
    Change,
    FetchedBatch,
    Limits,
    RecordState,
)
from pykbroker.sharing.persister import PartitionState, SharePartitionKey, StateBatch

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LIMITS = Limits()
KEY = SharePartitionKey("group", bytes(16), 0)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


def log(*sizes: int, base: int = 0) -> list[FetchedBatch]:
    """Record batches of so many records each, one behind the other."""
    batches = []
    for size in sizes:
        batches.append(FetchedBatch(base, base + size - 1))
        base += size
    return batches


def acquire(
    share: SharePartition,
    fetched: list[FetchedBatch],
    *,
    member: str = "anna",
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    batch_size: int = 500,
    max_records: int = 500,
    limits: Limits = LIMITS,
    now_ms: int = 0,
) -> list[Acquired]:
    offset = share.next_fetch_offset()
    there = [each for each in fetched if each.last_offset >= offset]
    return share.acquire(member, mode, batch_size, max_records, offset, there, limits, now_ms)


def acknowledge(
    share: SharePartition, *words: tuple[int, int, list[int]], member: str = "anna", limits: Limits = LIMITS
) -> Change:
    change = share.acknowledge(member, [Acknowledgement(*each) for each in words], limits, 0)
    share.complete(change, is_persisted=True, now_ms=0)
    return change


def release(share: SharePartition, member: str = "anna", limits: Limits = LIMITS) -> None:
    share.complete(share.release(member, limits), is_persisted=True, now_ms=0)


def load(*batches: StateBatch, start: int = 0) -> SharePartition:
    return SharePartition.load(PartitionState(KEY, 1, 1, start, 0, batches), start)


def test_new_records_are_cut_at_record_batches() -> None:
    share = SharePartition(0)
    assert acquire(share, log(3, 3, 3, 3), batch_size=5) == [(0, 5, 1), (6, 11, 1)]


def test_a_batch_is_taken_to_its_end_unless_the_number_of_records_is_a_limit() -> None:
    share = SharePartition(0)
    assert acquire(share, log(4, 4, 4), max_records=5) == [(0, 7, 1)]
    assert acquire(share, log(4, 4, 4), max_records=1, mode=AcquireMode.RECORD_LIMIT) == [(8, 8, 1)]
    assert acquire(share, log(4, 4, 4), max_records=2, mode=AcquireMode.RECORD_LIMIT) == [(9, 10, 1)]
    assert acquire(share, log(4, 4, 4)) == [(11, 11, 1)]


def test_no_more_are_in_flight_than_there_are_locks() -> None:
    share, limits = SharePartition(0), LIMITS._replace(max_record_locks=5)
    assert acquire(share, log(3, 3, 3), limits=limits) == [(0, 5, 1)]
    assert not share.can_acquire(limits)
    acknowledge(share, (0, 0, [RELEASE]), (1, 1, [ACCEPT]))
    assert share.can_acquire(limits), "what is in flight may be handed out again"
    assert acquire(share, log(3, 3, 3), limits=limits) == [(0, 0, 2)]
    acknowledge(share, (0, 0, [ACCEPT]), (2, 5, [ACCEPT]))
    assert acquire(share, log(3, 3, 3), limits=limits) == [(6, 8, 1)]


def test_a_record_is_handed_out_as_often_as_the_limit_says() -> None:
    share, limits = SharePartition(0), LIMITS._replace(delivery_count_limit=2)
    for count in (1, 2):
        assert acquire(share, log(1), limits=limits) == [(0, 0, count)]
        release(share, limits=limits)
    assert (share.start_offset, share.in_flight) == (1, 0)


def test_the_number_of_deliveries_stays_within_what_answers_and_states_have_room_for() -> None:
    share = load(StateBatch(0, 0, AVAILABLE, 32_767))
    assert acquire(share, log(1)) == [(0, 0, 32_767)]
    change = share.release("anna", LIMITS)
    assert [batch.delivery_count for batch in change.batches] == [32_767]


def test_records_that_fail_come_in_ever_smaller_portions_and_the_last_time_alone() -> None:
    share, limits = SharePartition(0), LIMITS._replace(delivery_count_limit=5)
    portions = []
    for _ in range(5):
        portions.append(acquire(share, log(8), limits=limits))
        release(share, limits=limits)
    assert portions == [[(0, 7, 1)], [(0, 7, 2)], [(0, 7, 3)], [(0, 3, 4)], [(0, 0, 5)]]
    assert acquire(share, log(8), limits=limits) == [(1, 1, 5)]
    acknowledge(share, (1, 1, [ACCEPT]), limits=limits)
    assert share.start_offset == 2


def test_records_of_aborted_transactions_are_settled_and_not_handed_out() -> None:
    share = SharePartition(0)
    fetched = [FetchedBatch(0, 1), FetchedBatch(2, 4, is_aborted=True), FetchedBatch(5, 5)]
    assert acquire(share, fetched) == [(0, 1, 1), (5, 5, 1)]
    acknowledge(share, (0, 1, [ACCEPT]))
    assert share.start_offset == 5
    only_aborted = [FetchedBatch(6 + at, 6 + at, is_aborted=True) for at in range(3000)]
    for _ in range(3):
        assert acquire(share, only_aborted[: 6 + 2000]) == []
    acknowledge(share, (5, 5, [ACCEPT]))
    assert share.next_fetch_offset() > 1000, "what is settled takes no locks"


@pytest.mark.parametrize(
    ("member", "words", "code", "text"),
    [
        ("bert", (0, 3, [ACCEPT]), ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record"),
        (
            "anna",
            (4, 9, [ACCEPT]),
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The last offset in request is past acquired records.",
        ),
        (
            "anna",
            (8, 9, [ACCEPT]),
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The first offset in request is past acquired records.",
        ),
    ],
)
def test_what_a_member_does_not_have_is_refused(
    member: str, words: tuple[int, int, list[int]], code: ErrorCode, text: str
) -> None:
    share = SharePartition(0)
    acquire(share, log(4, 4), batch_size=4)
    with pytest.raises(ApiError) as refused:
        acknowledge(share, words, member=member)
    assert (refused.value.code, refused.value.message) == (code, text)
    assert [run.state for run in share.runs()] == [RecordState.ACQUIRED] * 2


def test_a_second_word_is_refused_and_takes_the_first_one_back_with_it() -> None:
    share = SharePartition(0)
    acquire(share, log(4))
    with pytest.raises(ApiError) as refused:
        acknowledge(share, (0, 0, [ACCEPT]), (0, 0, [REJECT]))
    assert refused.value.message == "The offset cannot be acknowledged. The offset is not acquired."
    assert [(run.state, run.member) for run in share.runs()] == [(RecordState.ACQUIRED, "anna")]
    assert share.delivery_complete_count == 0
    acknowledge(share, (0, 3, [ACCEPT]))
    assert share.start_offset == 4


def test_what_is_being_written_is_one_batch_for_neighbours() -> None:
    share = SharePartition(0)
    acquire(share, log(500))
    words = [Acknowledgement(at, at, [ACCEPT]) for at in range(500)]
    change = share.acknowledge("anna", words, LIMITS, 0)
    assert change.batches == [StateBatch(0, 499, int(ACKNOWLEDGED), 1)]
    assert share.next_fetch_offset() == 500
    assert share.start_offset == 0, "nothing has moved before it is persisted"


def test_time_that_is_over_while_a_write_fails_frees_the_records() -> None:
    share = SharePartition(0)
    acquire(share, log(2))
    change = share.acknowledge("anna", [Acknowledgement(0, 1, [ACCEPT])], LIMITS, 0)
    assert not share.expire(LIMITS, 30_000)
    assert share.complete(change, is_persisted=False, now_ms=30_000)
    assert acquire(share, log(2), member="bert") == [(0, 1, 2)]


def test_the_start_moves_over_a_record_that_is_spent_also_where_that_is_not_persisted() -> None:
    """Nothing else would move it where no other record can be handed out before."""
    share, limits = SharePartition(0), LIMITS._replace(max_record_locks=3, delivery_count_limit=2)
    acquire(share, log(3), max_records=3, limits=limits)
    acknowledge(share, (0, 2, [RELEASE, ACCEPT, ACCEPT]), limits=limits)
    assert acquire(share, log(3, 3), limits=limits) == [(0, 0, 2)]
    change = share.acknowledge("anna", [Acknowledgement(0, 0, [RELEASE])], limits, 0)
    assert not share.can_acquire(limits)
    assert share.complete(change, is_persisted=False, now_ms=limits.record_lock_duration_ms)
    assert share.start_offset == 3
    assert share.can_acquire(limits)


@pytest.mark.parametrize("ends", ["refused", "closed", "not persisted"])
def test_a_lock_whose_time_ends_while_a_word_on_its_records_is_looked_at_ends_all_the_same(ends: str) -> None:
    share = SharePartition(0)
    acquire(share, log(2), max_records=2)
    acquire(share, log(2, 2), max_records=2, member="bert")
    words = [Acknowledgement(0, 1, [ACCEPT]), Acknowledgement(2, 3, [ACCEPT])]
    steps = share.acknowledge_steps("anna", words[:1] if ends == "not persisted" else words, LIMITS, 0)
    next(steps)
    if ends == "not persisted":
        with pytest.raises(StopIteration) as done:
            next(steps)
        steps = share.complete_steps(done.value.value, is_persisted=False, now_ms=LIMITS.record_lock_duration_ms - 1)
    share.expire(LIMITS, LIMITS.record_lock_duration_ms)
    if ends == "refused":
        with pytest.raises(ApiError):
            next(steps)
    elif ends == "closed":
        steps.close()
    else:
        list(steps)
    assert share.next_deadline_ms() == LIMITS.record_lock_duration_ms
    share.expire(LIMITS, LIMITS.record_lock_duration_ms)
    assert [run.state for run in share.runs()] == [AVAILABLE, AVAILABLE]


def test_a_gap_in_what_was_persisted_is_read_first() -> None:
    share = load(StateBatch(3, 4, int(ACKNOWLEDGED), 1), StateBatch(8, 9, int(AVAILABLE), 2))
    assert (share.start_offset, share.end_offset, share.delivery_complete_count) == (0, 9, 2)
    assert share.next_fetch_offset() == 0
    assert acquire(share, log(5, 5)) == [(0, 2, 1), (5, 7, 1), (8, 9, 3)]
    assert share.next_fetch_offset() == 10


def test_a_gap_that_compaction_has_taken_does_not_hold_the_start() -> None:
    share = load(StateBatch(3, 4, int(ACKNOWLEDGED), 1), StateBatch(6, 6, int(AVAILABLE), 1))
    assert acquire(share, log(2, base=5)) == [(5, 5, 1), (6, 6, 2)]
    acknowledge(share, (5, 6, [ACCEPT]))
    assert share.in_flight == 0
    assert share.start_offset == 7


@pytest.mark.parametrize(
    "batches",
    [[StateBatch(5, 4, 0, 1)], [StateBatch(0, 4, 0, 1), StateBatch(4, 5, 0, 1)], [StateBatch(0, 4, 1, 1)]],
)
def test_a_state_that_makes_no_sense_is_not_loaded(batches: list[StateBatch]) -> None:
    with pytest.raises(ApiError) as refused:
        load(*batches)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("order", ["up", "down", "every other"])
def test_acknowledging_one_by_one_takes_the_same_time_for_each(order: str) -> None:
    """With 4 times as many in flight one acknowledgement may take twice as long, and not 4 times."""

    def nanoseconds_for_each(count: int) -> float:
        share, limits = SharePartition(0), LIMITS._replace(max_record_locks=count)
        acquire(share, log(count), max_records=count, limits=limits)
        offsets = range(count) if order == "up" else range(count)[::-1]
        if order == "every other":
            offsets = [*range(0, count, 2), *range(1, count, 2)]
        began = time.process_time_ns()
        for at in offsets:
            acknowledge(share, (at, at, [ACCEPT]), limits=limits)
        assert share.in_flight == 0
        return (time.process_time_ns() - began) / count

    small = min(nanoseconds_for_each(5_000) for _ in range(3))
    assert nanoseconds_for_each(20_000) < 2 * small


def test_words_of_a_request_are_in_order_and_whole() -> None:
    def is_good(*batches: tuple[int, int, list[int]], knows_renewal: bool = True, is_renewal: bool = False) -> bool:
        words = [Acknowledgement(*each) for each in batches]
        return are_well_formed(words, knows_renewal=knows_renewal, is_renewal=is_renewal)

    assert is_good((0, 2, [ACCEPT]), (3, 4, [0, REJECT]))
    assert not is_good((0, 2, [ACCEPT]), (1, 3, [ACCEPT]))
    assert not is_good((0, 2, [ACCEPT, ACCEPT]))
    assert not is_good((0, 0, [RENEW]))
    assert is_good((0, 0, [RENEW]), is_renewal=True)
    assert not is_good((0, 0, [RENEW]), is_renewal=True, knows_renewal=False)


def test_bytes_are_shared_and_partitions_take_turns() -> None:
    assert [byte_share(10, 3, number) for number in range(3)] == [4, 3, 3]
    assert [byte_share(2, 3, number) for number in range(3)] == [1, 1, 0]
    assert rotated("abc", 0) == "abc"
    assert rotated("abc", 4) == ("b", "c", "a")
