"""Rates of replication, and whom they hold back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.replication.quotas import RateLimit, ReplicationQuota, is_named

from .replicas import Replicas


def limit(bytes_per_second: float | None) -> RateLimit:
    made = RateLimit()
    made.bytes_per_second = bytes_per_second
    return made


@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 100_000)), max_size=40), st.integers(100, 100_000))
def test_whoever_keeps_to_the_limit_keeps_to_the_rate(steps: list[tuple[int, int]], rate: int) -> None:
    """In the long run: one piece may be of any size."""
    kept, now_ms, total, largest = limit(rate), 0, 0, 0
    for wait_ms, size in steps:
        now_ms += wait_ms
        if kept.is_exceeded(now_ms):
            continue
        kept.note(size, now_ms)
        total, largest = total + size, max(largest, size)
    pieces = 1 + now_ms // 11_000
    assert total <= rate * (now_ms + 1000) / 1000 + largest * pieces


def test_without_a_rate_nothing_is_held_back() -> None:
    free = limit(None)
    free.note(10**12, 0)
    assert not free.is_exceeded(0)


def test_what_was_sent_at_once_is_paid_for_in_time() -> None:
    throttled = limit(1000)
    throttled.note(5000, 0)
    assert throttled.is_exceeded(4999)
    assert throttled.free_at_ms(1) == 5000
    assert not throttled.is_exceeded(5000)


@pytest.mark.parametrize(
    ("throttled", "expected"),
    [("", False), ("*", True), ("0:1", True), ("0:2,1:1", False), ("1:1, 0:1", True), ("10:1", False)],
)
def test_which_replicas_a_topic_names(throttled: str, expected: bool) -> None:
    assert is_named(throttled, 0, 1) is expected


def test_a_follower_that_is_not_in_sync_waits_for_the_quota() -> None:
    replicas = Replicas((1, 2))
    quota = ReplicationQuota(2, lambda _: "*", RateLimit())
    quota.configure(10)
    follower = replicas[2].follower_of(1, throttle=quota)
    replicas.decide(isr=(1,))
    replicas.wait(100_000)
    for number in range(50):
        replicas.append(f"{number}")
    replicas.leader.partition.maybe_shrink_isr(replicas.now_ms)
    replicas.fetch(2)
    got = replicas[2].partition.log.log_end_offset
    assert 0 < got < 50
    assert replicas.fetch(2), "the leader's session is told to forget it"
    assert not replicas.fetch(2)
    assert replicas[2].partition.log.log_end_offset == got
    deadline_ms = follower.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms > replicas.now_ms + 5000
    replicas.wait(deadline_ms - replicas.now_ms)
    assert replicas.fetch(2)
    assert replicas[2].partition.log.log_end_offset > got


def test_a_follower_that_is_in_sync_is_not_held_back() -> None:
    """It would fall out of the ISR, and come back only as fast as the quota lets it (KIP-73)."""
    replicas = Replicas((1, 2))
    quota = ReplicationQuota(2, lambda _: "*", RateLimit())
    quota.configure(10)
    replicas[2].follower_of(1, throttle=quota)
    for number in range(20):
        replicas.append(f"{number}")
        replicas.fetch(2)
        replicas.fetch(2)
    assert quota.holds_back(replicas[2].partition, replicas.now_ms), "the rate is exceeded by far"
    assert replicas[2].partition.log.log_end_offset == 20
