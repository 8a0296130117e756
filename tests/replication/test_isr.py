"""Who is in sync: how the ISR shrinks and grows, and what the high watermark waits for meanwhile."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.replication.appended import Appended
from pykbroker.replication.isr import CommittedIsr, IsrChange
from pykbroker.replication.partition import ACKS_ALL

from .replicas import LAG_TIME_MAX_MS, Replicas


def proposed(replicas: Replicas) -> list[IsrChange]:
    return [change for _, change in replicas.leader.proposals.proposed]


def without_third() -> Replicas:
    """Broker 3 has fallen out of the ISR, and lacks two records that the others have."""
    replicas = Replicas()
    replicas.settle()
    replicas.append("a", "b")
    replicas.wait(LAG_TIME_MAX_MS + 1)
    replicas.fetch(2)
    replicas.fetch(2)
    replicas.decide(isr=(1, 2))
    return replicas


def test_who_has_everything_stays_however_long_nothing_happens() -> None:
    replicas = Replicas()
    replicas.append("a")
    replicas.settle()
    replicas.wait(10 * LAG_TIME_MAX_MS)
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    assert not proposed(replicas)


def test_who_lags_for_too_long_falls_out() -> None:
    replicas = Replicas()
    replicas.settle()
    replicas.append("a")
    replicas.fetch(2)
    replicas.fetch(2)
    partition = replicas.leader.partition
    replicas.wait(LAG_TIME_MAX_MS)
    partition.maybe_shrink_isr(replicas.now_ms)
    assert not proposed(replicas)
    replicas.wait(1)
    partition.maybe_shrink_isr(replicas.now_ms)
    (change,) = proposed(replicas)
    assert change == IsrChange((1, 2), (-1, 102), 0, 0, removed=(3,))
    assert partition.high_watermark == 0, "it is waited for until the controller has agreed"
    replicas.answer_proposals(1)
    assert partition.isr == (1, 2)
    assert partition.high_watermark == 1


def test_a_follower_that_is_always_a_fetch_behind_stays() -> None:
    replicas = Replicas((1, 2))
    for number in range(20):
        replicas.append(f"{number}")
        replicas.fetch(2)
        replicas.wait(LAG_TIME_MAX_MS // 2)
        replicas.append(f"{number} more")
        replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    assert not proposed(replicas)


def test_a_follower_that_fetches_and_never_catches_up_falls_out() -> None:
    replicas = Replicas((1, 2))
    replicas.settle()
    for number in range(20):
        replicas.append(*(f"{number} {each}" for each in "abcdefghijklmnopqrst"))
        replicas.append(*(f"{number} {each}" for each in "abcdefghijklmnopqrst"))
        replicas.fetch(2)
        replicas.wait(LAG_TIME_MAX_MS // 4)
        replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    assert [change.removed for change in proposed(replicas)] == [(2,)]


def test_only_one_change_is_under_way() -> None:
    replicas = Replicas()
    replicas.settle()
    replicas.append("a")
    replicas.wait(LAG_TIME_MAX_MS + 1)
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    replicas.fetch(3)
    replicas.fetch(3)
    assert [change.isr for change in proposed(replicas)] == [(1,)]


def test_who_has_caught_up_comes_back_and_is_waited_for_at_once() -> None:
    replicas = without_third()
    partition = replicas.leader.partition
    assert partition.high_watermark == 2
    replicas.fetch(3)
    assert not proposed(replicas), "it lacks what is replicated"
    replicas.fetch(3)
    (change,) = proposed(replicas)
    assert change == IsrChange((1, 2, 3), (-1, 102, 103), 0, 1, added=(3,))
    replicas.append("c")
    replicas.fetch(2)
    replicas.fetch(2)
    assert partition.isr == (1, 2)
    assert partition.high_watermark == 2, "the third counts as in sync before the controller has agreed"
    replicas.fetch(3)
    replicas.fetch(3)
    assert partition.high_watermark == 3


def test_who_has_what_is_replicated_but_not_the_leaders_epoch_does_not_come_back() -> None:
    replicas = Replicas((1, 2), min_isr=2)
    replicas.append("a")
    replicas.settle()
    replicas.append("b", "c")
    replicas.elect(1, (1,))
    assert replicas.leader.partition.high_watermark == 1
    partition = replicas.leader.partition
    read = partition.read_as_replica(2, 1, 1000, partition.leader_epoch, now_ms=0, broker_epoch=102)
    assert read.error_code is ErrorCode.NONE
    assert not proposed(replicas)
    partition.read_as_replica(2, 3, 1000, partition.leader_epoch, now_ms=0, broker_epoch=102)
    assert [change.isr for change in proposed(replicas)] == [(1, 2)]


@pytest.mark.parametrize("why", ["fenced", "leaving", "another incarnation"])
def test_who_is_not_there_does_not_come_back(why: str) -> None:
    replicas = without_third()
    match why:
        case "fenced":
            del replicas.brokers.epochs[3]
        case "leaving":
            replicas.brokers.leaving.add(3)
    partition = replicas.leader.partition
    epoch = 104 if why == "another incarnation" else 103
    assert partition.read_as_replica(3, 2, 1000, 0, now_ms=0, broker_epoch=epoch).error_code is ErrorCode.NONE
    assert not proposed(replicas)


def test_a_fetch_of_an_incarnation_that_is_gone_is_refused() -> None:
    replicas = Replicas()
    partition = replicas.leader.partition
    read = partition.read_as_replica(3, 0, 1000, 0, now_ms=0, broker_epoch=99)
    assert read.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.read_as_replica(3, 0, 1000, 0, now_ms=0).error_code is ErrorCode.NONE


def test_who_is_about_to_come_back_holds_the_high_watermark_back() -> None:
    replicas = without_third()
    partition = replicas.leader.partition
    partition.read_as_replica(3, 2, 1000, 0, now_ms=replicas.now_ms, broker_epoch=103)
    replicas.leader.proposals.proposed.clear()
    assert partition.in_sync.pending is not None
    assert not partition.isr_change_answered(partition.in_sync.pending, ErrorCode.INELIGIBLE_REPLICA)
    replicas.append("c")
    partition.read_as_replica(2, 3, 1000, 0, now_ms=replicas.now_ms, broker_epoch=102)
    assert partition.isr == (1, 2)
    assert partition.high_watermark == 2
    replicas.wait(LAG_TIME_MAX_MS + 1)
    partition.maybe_shrink_isr(replicas.now_ms)
    assert partition.high_watermark == 3


@pytest.mark.parametrize(
    ("error", "is_pending", "again"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, True, False),
        (ErrorCode.FENCED_LEADER_EPOCH, True, False),
        (ErrorCode.NEW_LEADER_ELECTED, True, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, True, False),
        (ErrorCode.NOT_CONTROLLER, True, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
    ],
)
def test_what_becomes_of_a_refused_change(error: ErrorCode, is_pending: bool, again: bool) -> None:
    replicas = without_third()
    partition = replicas.leader.partition
    replicas.fetch(3)
    replicas.fetch(3)
    (change,) = proposed(replicas)
    assert partition.isr_change_answered(change, error) is again
    assert (partition.in_sync.pending is change) is is_pending
    assert set(partition.in_sync.maximal) == ({1, 2, 3} if is_pending else {1, 2})


def test_metadata_behind_an_answer_leave_the_change_pending_that_was_proposed_since() -> None:
    """The controller can still make it: who is to join is in the ISR as soon as that is committed."""
    replicas = without_third()
    partition = replicas.leader.partition
    replicas.fetch(3)
    replicas.fetch(3)
    (change,) = proposed(replicas)
    known = replicas.state
    assert (known.isr, known.partition_epoch) == ((1, 2), change.partition_epoch)
    replicas.leader.apply(known, replicas.now_ms)
    assert (partition.in_sync.pending, set(partition.in_sync.maximal)) == (change, {1, 2, 3})
    replicas.append("c")
    replicas.fetch(2)
    replicas.fetch(2)
    assert partition.high_watermark == 2
    replicas.decide(isr=(1, 2))
    assert (partition.in_sync.pending, partition.in_sync.maximal) == (None, (1, 2))


def test_an_answer_that_the_metadata_have_overtaken_counts_no_more() -> None:
    replicas = without_third()
    partition = replicas.leader.partition
    replicas.fetch(3)
    replicas.fetch(3)
    (change,) = proposed(replicas)
    replicas.decide(isr=(1,))
    assert not partition.isr_change_answered(change, CommittedIsr(1, 0, (1, 2, 3), 2))
    assert partition.isr == (1,)


def test_with_too_few_in_sync_nothing_is_acknowledged_and_nothing_becomes_visible() -> None:
    replicas = Replicas((1, 2), min_isr=2)
    replicas.settle()
    replicas.append("a")
    replicas.decide(isr=(1,))
    partition = replicas.leader.partition
    assert partition.high_watermark == 0
    with pytest.raises(ApiError) as refused:
        replicas.append("b", acks=ACKS_ALL)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    first = Appended(partition, 1)
    assert first.settled() is None
    replicas.settle()
    assert partition.isr == (1, 2)
    assert partition.high_watermark == 1
    assert first.settled() is ErrorCode.NONE
