"""What retention leaves to a thread, while the log may change: its first look after a start reads batches, and old
segments go when the name of the one behind them is durable.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pykbroker.storage.log.log import Log
from tests.api.api_node import ApiNode, in_virtual_time
from tests.api.held_threads import HeldThreads, do_meanwhile

HOUR_MS = 3_600_000
SIZE = 700_000


@pytest.fixture
def restarted(tmp_path: Path) -> ApiNode:
    """With four segments of one batch each: two are an hour older than the others."""
    node = ApiNode(tmp_path)
    node.create_topic("apples", retention_ms=str(HOUR_MS // 2), segment_bytes=str(1 << 20))
    now_ms = node.clock.now_ms()
    for timestamp in (now_ms - HOUR_MS, now_ms - HOUR_MS, now_ms, now_ms):
        node.append("apples", bytes(SIZE), timestamp=timestamp)
    node.restart()
    return node


@pytest.fixture
def rolled(tmp_path: Path) -> ApiNode:
    """With four old segments of one batch each, whose names nobody has made durable."""
    node = ApiNode(tmp_path)
    node.create_topic("apples", retention_ms="1000", segment_bytes=str(1 << 20))
    for _ in range(4):
        node.append("apples", bytes(SIZE), timestamp=node.clock.now_ms() - HOUR_MS)
    return node


def look(node: ApiNode, meanwhile: Callable[[Log], object]) -> None:
    """Retention looks at the log, which changes while a thread has something to do for it."""
    log = node.partition("apples").log
    threads = HeldThreads()
    upkeep = node.replicas.upkeep
    upkeep._threads = cast(Any, threads)
    in_virtual_time(lambda: do_meanwhile(threads, upkeep._delete_old_segments, lambda: meanwhile(log)))


def is_unconfirmed(log: Log) -> list[bool]:
    return [each.unconfirmed is not None for each in log.segments]


def test_what_is_old_goes_when_a_thread_has_read_it(restarted: ApiNode) -> None:
    log = restarted.partition("apples").log
    look(restarted, lambda log: is_unconfirmed(log) == [True] * 4 or pytest.fail("it was read on the event loop"))
    assert log.log_start_offset == 2
    assert is_unconfirmed(log) == [True] * 2  # they are too young for anybody to ask


def test_a_log_that_is_truncated_while_a_thread_reads_it_is_looked_at_again_later(restarted: ApiNode) -> None:
    log = restarted.partition("apples").log
    look(restarted, lambda log: log.truncate_to(3))
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)
    look(restarted, id)
    assert log.log_start_offset == 2


def test_a_topic_that_is_deleted_while_a_thread_reads_its_log_is_nobodys_failure(restarted: ApiNode) -> None:
    look(restarted, lambda log: restarted.delete_topic("apples"))
    assert restarted.replicas.logs.directories


def test_what_is_appended_while_a_thread_reads_counts(restarted: ApiNode) -> None:
    """Everything is old, and a young record comes into the active segment."""
    restarted.configure_topic("apples", retention_ms="1000", segment_bytes=str(1 << 30))
    log = restarted.partition("apples").log
    now_ms = restarted.clock.now_ms() + HOUR_MS
    restarted.clock.now_ms = lambda: now_ms  # type: ignore[method-assign]
    look(restarted, lambda _: restarted.append("apples", b"young", timestamp=now_ms))
    assert (log.log_start_offset, log.log_end_offset) == (3, 5)
    assert log.segments[-1].max_timestamp == now_ms


def test_old_segments_stay_until_the_name_of_the_one_behind_them_is_durable(rolled: ApiNode) -> None:
    log = rolled.partition("apples").log
    look(rolled, lambda log: log.log_start_offset == 0 or pytest.fail("a power cut could leave no segment"))
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert len(log.segments) == 1


def test_a_segment_that_is_begun_while_a_thread_syncs_names_takes_nobodys_place(
    rolled: ApiNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = rolled.partition("apples").log
    sync = log._names.sync_with_directory

    def sync_too_early() -> None:
        sync()
        rolled.append("apples", b"old", timestamp=rolled.clock.now_ms() - HOUR_MS)
        log.roll(rolled.clock.now_ms())

    monkeypatch.setattr(log._names, "sync_with_directory", sync_too_early)
    look(rolled, id)
    assert [segment.base_offset for segment in log.segments] == [4, 5]


def test_a_log_that_is_truncated_while_a_thread_syncs_its_names_is_looked_at_again_later(rolled: ApiNode) -> None:
    log = rolled.partition("apples").log
    look(rolled, lambda log: log.truncate_to(2))
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)
    in_virtual_time(rolled.replicas.upkeep._delete_old_segments)
    assert log.log_start_offset == 2


def test_a_topic_that_is_deleted_while_a_thread_syncs_its_names_is_nobodys_failure(rolled: ApiNode) -> None:
    look(rolled, lambda log: rolled.delete_topic("apples"))
    assert rolled.replicas.logs.directories
