"""Runs of a log directory's life, each with a name: what is known to go wrong in a broker's storage, step by step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pykbroker.protocol.records.control import ControlRecordType
from tests.storage.crash_life import COMPACTED, SMALL, Life

Run = Callable[..., Life]
"""Takes what `Life` takes: a disk and a path."""


def appends(**place: Any) -> Life:
    """Idempotent producers, rolls and flushes in two partitions."""
    life = Life(**place)
    one, two = life.create("one"), life.create("two")
    for number in range(14):
        life.append(one, 1 + number % 3, producer=number % 2)
        if number % 2:
            life.append(two, 2)
        match number % 7:
            case 3:
                life.flush(one)
            case 4:
                life.checkpoint()
            case 5:
                life.roll(two)
                life.checkpoint_high_watermarks()
            case 6:
                life.flush(two)
    return life


def follower(**place: Any) -> Life:
    """Epochs, truncations below and above what was flushed and checkpointed, a new beginning."""
    life = Life(**place)
    at = life.create("t")

    def fetch(epoch: int, count: int) -> None:
        for number in range(count):
            life.append(at, 1 + number % 2, epoch=epoch, producer=epoch % 3, as_follower=True)

    fetch(1, 4)
    life.flush(at)
    fetch(2, 4)
    life.checkpoint()
    life.truncate(at, 7)
    fetch(4, 2)
    life.flush(at)
    life.checkpoint()
    life.truncate(at, 3)
    fetch(5, 6)
    life.flush(at)
    life.checkpoint()
    life.begin_anew(at, 100)
    fetch(6, 2)
    life.checkpoint()
    fetch(6, 2)
    life.flush(at)
    life.truncate(at, 101)
    fetch(7, 5)
    life.checkpoint()
    life.flush(at)
    return life


def deletions(**place: Any) -> Life:
    """DeleteRecords within and between segments, retention, files that go later."""
    life = Life(**place)
    at = life.create("t")
    for number in range(16):
        life.append(at, 2, producer=number % 2)
        match number:
            case 3 | 9:
                life.flush(at)
                life.checkpoint()
            case 5:
                life.delete_records(at, 3)
            case 6:
                life.retain(at)
            case 7:
                life.remove_deleted()
            case 11:
                life.delete_records(at, 17)
                life.retain(at)
            case 12:
                life.flush(at)
            case 13:
                life.retain(at, 300)
                life.checkpoint()
                life.remove_deleted()
    life.delete_records(at, 32)
    life.retain(at)
    life.flush(at)
    life.remove_deleted()
    life.append(at)
    life.flush(at)
    return life


def deletions_right_behind_a_roll(**place: Any) -> Life:
    """Of all segments again and again, with no flush in between."""
    life = Life(**place)
    at = life.create("t")
    life.append(at, 2)
    life.flush(at)
    life.checkpoint()
    for _ in range(2):
        life.append(at, 1)
        life.retain(at, 0)
    life.checkpoint_high_watermarks()
    life.append(at, 1)
    life.roll(at)
    life.append(at, 1)
    life.delete_records(at, 5)
    life.retain(at)
    life.remove_deleted()
    return life


def compaction(**place: Any) -> Life:
    life = Life(**place)
    at = life.create("t", COMPACTED)
    for number in range(24):
        life.append(at, 2, producer=number % 2)
        match number % 8:
            case 3:
                life.flush(at)
            case 5:
                life.clean(at)
            case 6:
                life.checkpoint()
            case 7:
                life.remove_deleted()
    life.roll(at)
    life.clean(at)
    life.flush(at)
    return life


def topics(**place: Any) -> Life:
    """Topics that are deleted and created anew, with and without checkpoints in between."""
    life = Life(**place)
    at, other = life.create("t"), life.create("other")
    for _ in range(5):
        life.append(at, 2, producer=1)
    life.flush(at)
    life.delete(at)
    at = life.create("t")
    life.append(at, 1, producer=1)
    life.append(other, 1)
    life.flush(at)
    life.checkpoint()
    for _ in range(4):
        life.append(at, 2, producer=1)
    life.delete_records(at, 5)
    life.flush(at)
    life.checkpoint()
    life.checkpoint_high_watermarks()
    life.delete(at)
    life.remove_deleted()
    at = life.create("t")
    life.append(at, 1, producer=1)
    life.flush(at)
    life.append(at, 1, producer=1)
    life.checkpoint()
    life.delete(at)
    life.flush(other)
    life.delete(other)
    life.checkpoint()
    life.remove_deleted()
    other = life.create("other")
    life.append(other, 2)
    life.flush(other)
    return life


def restarts(**place: Any) -> Life:
    """Clean shutdowns, killed processes, and starts on what they left."""
    life = Life(**place)
    at, compacted = life.create("t"), life.create("c", COMPACTED)
    life.append(at)
    life.kill()
    life.start()
    for number in range(18):
        life.append(at, 1 + number % 2, producer=number % 2)
        if number % 3 == 0:
            life.append(compacted, 2, producer=5)
        match number:
            case 3 | 14:
                life.stop()
                life.start()
            case 4:
                life.kill()
                life.start()
            case 7:
                life.checkpoint()
            case 8:
                life.flush(at)
            case 9:
                life.kill()
                life.start()
            case 10:
                life.clean(compacted)
            case 12:
                life.truncate(at, 12)
            case 15:
                life.kill()
                life.start()
                life.stop()
                life.start()
    life.append(at)
    life.stop()
    return life


def first_records_after_a_kill(**place: Any) -> Life:
    """A log that had no record yet is recovered, and its topic id is not durable before its first records are."""
    life = Life(**place)
    at = life.create("t", replace(SMALL, preallocate=True))
    life.kill()
    life.start()
    life.append(at, producer=1)
    life.flush(at)
    life.append(at, producer=1)
    life.checkpoint()
    return life


def rolls_behind_a_checkpoint(**place: Any) -> Life:
    """The indexes of a segment that was active when it was flushed are written when it is rolled, and not synced."""
    life = Life(**place)
    at = life.create("t", replace(SMALL, index_interval_bytes=4096))
    for _ in range(3):
        for _ in range(2):
            life.append(at, producer=1)
        life.flush(at)
        life.checkpoint()
        life.roll(at)
        life.append(at)
        life.kill()
        life.start()
    return life


def beginning_before_a_flush(**place: Any) -> Life:
    """A follower's log that is new begins at an offset, which a checkpoint tells before anything is flushed."""
    life = Life(**place)
    at = life.create("t")
    life.begin_anew(at, 1000)
    life.checkpoint()
    life.append(at, as_follower=True)
    life.begin_anew(at, 2000)
    life.checkpoint()
    return life


def aborts(**place: Any) -> Life:
    """Aborted transactions in segments that are rolled where they were flushed, by the process that wrote them and by
    the one behind it: their batches are not read any more, nothing but their transaction indexes tells of the aborts.
    """
    life = Life(**place)
    at = life.create("t", replace(SMALL, segment_bytes=2000))
    for is_killed in (False, True):
        for producer in (1, 2):
            life.append(at, producer=producer, is_transactional=True)
            life.append(at)
            life.end_transaction(at, producer, ControlRecordType.ABORT)
        life.flush(at)
        life.checkpoint()
        if is_killed:
            life.kill()
            life.start()
        life.roll(at)
        life.append(at)
    life.flush(at)
    life.checkpoint()
    return life


def removed_indexes(**place: Any) -> Life:
    """Somebody removes the indexes of old segments, to have them made anew."""
    life = Life(**place)
    at = life.create("t", replace(SMALL, segment_bytes=2000))
    for _ in range(2):
        for number in range(5):
            life.append(at, producer=1, is_transactional=True)
            if number % 2:
                life.end_transaction(at, 1, ControlRecordType.ABORT)
        life.roll(at)
    life.append(at)
    directory = life.log(at).directory
    life.stop()
    for name in life.disk.list_directory(directory):
        if name.endswith("index"):
            life.disk.remove(f"{directory}/{name}")
    return life


def epochs_before_records(**place: Any) -> Life:
    """A file of leader epochs is written while there are no records, and their process does not flush them."""
    life = Life(**place)
    for topic, offset in (("t", 0), ("u", 1000)):
        at = life.create(topic)
        if offset:
            life.begin_anew(at, offset)
        life.lead(at, 3)
        life.flush(at)
        life.checkpoint()
        life.append(at, epoch=3)
        life.kill()
        life.start()
        life.flush(at)
        life.roll(at)
        life.append(at, epoch=3)
        life.flush(at)
        life.checkpoint()
    return life


RUNS: dict[str, Run] = {
    run.__name__: run
    for run in (
        appends,
        follower,
        deletions,
        deletions_right_behind_a_roll,
        compaction,
        topics,
        restarts,
        first_records_after_a_kill,
        rolls_behind_a_checkpoint,
        beginning_before_a_flush,
        aborts,
        removed_indexes,
        epochs_before_records,
    )
}
