"""Compaction in a running broker: which logs, when, and what may happen to a log meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple, Unpack

import pytest
import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.logs.cleaning_process import ThisThread, Workplace
from pykbroker.server.logs.log_cleaner import LogCleaner
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.log.log import Log
from tests.api.api_node import ApiNode, in_virtual_time
from tests.storage.batches import read_all

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    return ApiNode(tmp_path)


def create_compacted(node: ApiNode, topic: str, replicas: list[int] | None = None) -> None:
    node.create_topic(
        topic, replicas=replicas, cleanup_policy="compact", segment_bytes="250", file_delete_delay_ms="1000"
    )


def fill(node: ApiNode, topic: str, count: int = 20) -> Log:
    """One key again and again."""
    for number in range(count):
        node.append(topic, b"%d" % number)
    return node.partition(topic).log


def values(log: Log) -> list[bytes | None]:
    return [record.value for record in read_all(log)]


def inactive_start(log: Log) -> int:
    return log.segments[-1].base_offset


class ThreadsWithEvents:
    """Before the step of a given name something happens on the event loop."""

    def __init__(self, step: str, event: Callable[[], None]) -> None:
        self.step = step
        self.event = event
        self.steps: list[str] = []

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        await trio.lowlevel.checkpoint()
        name = fn.__name__
        self.steps.append(name)
        if name == self.step:
            self.step = ""
            self.event()
        return fn(*args)


def cleaner(
    node: ApiNode,
    step: str = "",
    event: Callable[[], None] = lambda: None,
    new_workplace: Callable[[], Workplace] = ThisThread,
) -> LogCleaner:
    def fail(directory: LogDirectory, failure: FileError) -> None:
        raise failure

    def quarantine(at: TopicPartition, log: Log, damage: CorruptLog) -> None:
        node.replicas.quarantine(node.partition(at.topic, at.partition), damage)

    def last_stable_offset(at: object, log: Log) -> int | None:
        return next((each.last_stable_offset for each in node.replicas.partitions() if each.log is log), None)

    return LogCleaner(
        node.config,
        node.replicas.logs,
        clock=node.clock,
        threads=ThreadsWithEvents(step, event),
        last_stable_offset=last_stable_offset,
        on_failure=fail,
        on_damage=quarantine,
        new_workplace=new_workplace,
    )


def clean_once(of: LogCleaner) -> bool:
    return in_virtual_time(of.clean_dirtiest)


def leftovers(node: ApiNode, topic: str) -> list[str]:
    names = [path.name for path in (node.path / f"data/{topic}-0").iterdir()]
    return [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]


async def until(condition: Callable[[], bool]) -> None:
    """In virtual time, so that it costs nothing."""
    with trio.fail_after(3600):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(1)


def test_compacted_topics_are_cleaned_while_the_broker_runs(node: ApiNode) -> None:
    create_compacted(node, "apples")
    node.create_topic("beets", segment_bytes="250")
    apples, beets = fill(node, "apples"), fill(node, "beets")
    size_before = apples.size_bytes
    first_kept = inactive_start(apples) - 1

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(node.replicas.run)
            await until(lambda: len(values(apples)) < 20)
            node.append("apples", b"appended meanwhile")
            await until(lambda: not leftovers(node, "apples"))
            nursery.cancel_scope.cancel()

    in_virtual_time(run)
    assert values(apples) == [b"%d" % number for number in range(first_kept, 20)] + [b"appended meanwhile"]
    assert apples.size_bytes < size_before
    assert len(values(beets)) == 20
    checkpoint = (node.path / "data/cleaner-offset-checkpoint").read_text()
    assert checkpoint == f"0\n1\napples 0 {first_kept + 1}\n"


def test_a_restart_knows_what_was_cleaned(node: ApiNode) -> None:
    create_compacted(node, "apples")
    fill(node, "apples")
    assert clean_once(cleaner(node))
    assert not clean_once(cleaner(node))
    kept = values(node.partition("apples").log)
    node.restart()
    assert values(node.partition("apples").log) == kept
    assert not clean_once(cleaner(node))
    fill(node, "apples")
    assert clean_once(cleaner(node))


def test_a_new_topic_of_the_same_name_is_dirty_from_its_start(node: ApiNode) -> None:
    create_compacted(node, "apples")
    fill(node, "apples")
    clean_once(cleaner(node))
    node.delete_topic("apples")
    create_compacted(node, "apples")
    log = fill(node, "apples")
    assert clean_once(cleaner(node))
    assert len(values(log)) < 20


def test_nothing_above_the_high_watermark_is_cleaned(node: ApiNode) -> None:
    create_compacted(node, "apples", [1, 2])
    log = fill(node, "apples")
    assert node.partition("apples").high_watermark == 0
    assert not clean_once(cleaner(node))
    assert len(values(log)) == 20


@pytest.mark.parametrize("step", ["plan", "clean", "sync_names"])
def test_deletion_of_the_topic_aborts_its_cleaning(node: ApiNode, step: str) -> None:
    create_compacted(node, "apples")
    fill(node, "apples")
    assert not clean_once(cleaner(node, step, lambda: node.delete_topic("apples")))
    assert node.replicas.get_partition("apples", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.replicas.logs.directories


@pytest.mark.parametrize("step", ["plan", "clean", "sync_names"])
def test_truncation_aborts_a_cleaning(node: ApiNode, step: str) -> None:
    create_compacted(node, "apples")
    log = fill(node, "apples")
    of = cleaner(node, step, lambda: log.truncate_to(3))
    clean_once(of)
    assert values(log) == [b"0", b"1", b"2"]
    assert leftovers(node, "apples") == []


def test_deletion_of_old_segments_aborts_a_cleaning(node: ApiNode) -> None:
    node.create_topic("apples", cleanup_policy="compact,delete", segment_bytes="250")
    log = fill(node, "apples")
    first = inactive_start(log)

    def delete() -> None:
        log.increment_log_start_offset(first)
        node.replicas.logs.put_old_segments_aside(node.directories[0], log, first, node.clock.now_ms())

    assert not clean_once(cleaner(node, "clean", delete))
    assert values(log) == [b"%d" % number for number in range(first, 20)]


def test_a_damaged_log_is_quarantined_and_others_are_cleaned(node: ApiNode, caplog: pytest.LogCaptureFixture) -> None:
    create_compacted(node, "apples")
    create_compacted(node, "beets")
    apples, beets = fill(node, "apples", 40), fill(node, "beets")
    path = Path(apples.segments[0].file.path)
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    of = cleaner(node)
    with caplog.at_level(logging.ERROR):
        rounds = [clean_once(of) for _ in range(4)]
    assert rounds == [False, True, False, False]
    [record] = caplog.records
    assert "apples-0 is quarantined" in record.message
    assert "wrong checksum" in record.message
    assert len(values(beets)) < 20


def test_cleaning_can_be_switched_off(tmp_path: Path) -> None:
    node = ApiNode(tmp_path, {"log.cleaner.enable": "false"})
    create_compacted(node, "apples")
    log = fill(node, "apples")

    async def run() -> None:
        with trio.move_on_after(3600):
            await node.replicas.run()

    in_virtual_time(run)
    assert len(values(log)) == 20
