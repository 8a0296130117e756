"""What threads do to the files of a log and its directory at the same time: flushes, truncations, checkpoints."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.compaction.cleanable_logs import find_cleanable
from pykbroker.storage.compaction.compaction import CleanerConfig, Cleaning, CleaningAborted
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.directories.shutdown_marks import ShutdownMarks
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import DiskFailed
from pykbroker.storage.log.log import Log, LogConfig
from pykbroker.storage.segments.segment import CLEANED_SUFFIX, LOG_SUFFIX, LogSegment
from tests.storage.batches import NOW_MS, batch, open_log
from tests.storage.cleaning import keyed

AT = TopicPartition("t", 0)
TIMEOUT_S = 60.0


class HeldSyncs:
    """The first sync of a file with this in its name waits until somebody says so."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch, *, call: str = "fsync") -> None:
        self._name = name
        self._real = getattr(os, call)
        self.begun = threading.Event()
        self.may_end = threading.Event()
        monkeypatch.setattr(os, call, self._sync)

    def _sync(self, descriptor: int) -> None:
        if self._name in os.readlink(f"/proc/self/fd/{descriptor}") and not self.begun.is_set():
            self.begun.set()
            assert self.may_end.wait(TIMEOUT_S)
        self._real(descriptor)

    @contextmanager
    def during(self, step: Callable[[], object]) -> Iterator[ThreadPoolExecutor]:
        """While the step is in that sync. What it raises is raised here."""
        with ThreadPoolExecutor() as threads:
            running = threads.submit(step)
            try:
                assert self.begun.wait(TIMEOUT_S)
                yield threads
            finally:
                self.may_end.set()
            running.result(TIMEOUT_S)


class WatchedTurn:
    """A turn that tells when somebody has to wait for it."""

    waiting = threading.Semaphore(0)

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.waiting.release()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Counts who waits for his turn."""
    monkeypatch.setattr(WatchedTurn, "waiting", threading.Semaphore(0))
    monkeypatch.setattr(OsDisk, "turn", lambda self: WatchedTurn())
    return WatchedTurn.waiting


def wait_for_end_or_turn(step: Future[None]) -> None:
    """The step is done, or it waits for its turn."""
    step.add_done_callback(lambda _: WatchedTurn.waiting.release())
    assert WatchedTurn.waiting.acquire(timeout=TIMEOUT_S)


def append(log: Log, count: int, epoch: int = 1) -> None:
    for _ in range(count):
        log.append_as_leader(batch(1), epoch, NOW_MS)


def test_a_flush_and_a_truncation_write_the_leader_epochs_one_behind_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(OsDisk(), str(tmp_path / "t-0"))
    append(log, 1)
    log.flush()
    append(log, 5, epoch=2)
    append(log, 5, epoch=3)
    with HeldSyncs("leader-epoch", monkeypatch).during(log.flush) as threads:
        truncation = threads.submit(log.truncate_to, 4)
        wait_for_end_or_turn(truncation)
    truncation.result(TIMEOUT_S)
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n2 1\n"
    assert (log.log_end_offset, log.recovery_point) == (4, 1)


def new_directory(path: Path) -> LogDirectory:
    disk = OsDisk()
    format_directory(disk, str(path), cluster_id="c", node_id=1, rng=Random(1))
    return LogDirectory.open(disk, str(path), rng=Random(1))


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("is_copied", [False, True])
def test_a_flush_of_a_log_that_is_deleted_meanwhile_leaves_nothing_in_the_next_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool, is_copied: bool
) -> None:
    directory = new_directory(tmp_path / "d")
    log = directory_log(directory)
    append(log, 5, epoch=3)

    def make_anew() -> None:
        make = partial(directory.open_copy, AT, bytes(16), LogConfig(), now_ms=NOW_MS)
        log = make() if is_copied else directory_log(directory)
        append(log, 5, epoch=0)
        log.flush()
        if is_copied:
            directory.promote_future(AT, 5)

    with HeldSyncs("t-0", monkeypatch).during(log.flush) as threads:
        if is_damaged:
            directory.quarantine(log, 0)
            directory.delete_damaged(AT)
        else:
            directory.delete_log(log)
        making = threads.submit(make_anew)
        wait_for_end_or_turn(making)
    making.result(TIMEOUT_S)
    assert (tmp_path / "d" / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert not (tmp_path / "d" / "t-0" / "leader-epoch-checkpoint.tmp").exists()
    directory.release()


def test_a_checkpoint_of_a_log_that_is_deleted_meanwhile_is_no_failure_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's name goes while its topic id is made durable; the directory must not go offline for it."""
    directory = new_directory(tmp_path / "d")
    log = directory_log(directory)
    append(log, 1)
    with HeldSyncs("partition.metadata", monkeypatch, call="fdatasync").during(directory.checkpoint_recovery_points):
        directory.delete_log(log)
    directory.release()


class HeldCreation:
    """The next file of a segment that is to replace others is made when somebody says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.may_go_on = threading.Event()
        create = LogSegment.create

        def held(segment: LogSegment) -> None:
            if segment.path(LOG_SUFFIX).endswith(CLEANED_SUFFIX) and not self.begun.is_set():
                self.begun.set()
                assert self.may_go_on.wait(TIMEOUT_S)
            create(segment)

        monkeypatch.setattr(LogSegment, "create", held)


def begin_cleaning(log: Log) -> tuple[Cleaning, list[LogSegment]]:
    """Of the first of two segments, which has one key."""
    for _ in range(2):
        log.append_as_leader(keyed((b"k", b"1"), (b"k", b"2")), 0, NOW_MS)
        log.roll(NOW_MS)
    found = find_cleanable(log, None, log.log_end_offset, NOW_MS)
    cleaning = Cleaning(found, CleanerConfig(1 << 16, 0.9), now_ms=NOW_MS, progress=lambda size: None)
    return cleaning, cleaning.plan()[0]


def compacted_log(directory: LogDirectory, topic_id: bytes) -> Log:
    config = LogConfig.from_properties({"cleanup.policy": "compact", "segment.bytes": "200"})
    return directory.open_log("t", 0, topic_id, config, now_ms=NOW_MS)


def cleaned_files(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir() if each.name.endswith(CLEANED_SUFFIX))


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_cleaning_of_a_log_that_is_deleted_meanwhile_leaves_nothing_in_the_next_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """A start that finds it there would take a swap back that was half done."""
    directory = new_directory(tmp_path / "d")
    log = compacted_log(directory, b"a" * 16)
    cleaning, group = begin_cleaning(log)
    held = HeldCreation(monkeypatch)
    with ThreadPoolExecutor() as threads:
        cleaned = threads.submit(cleaning.clean, group)
        assert held.begun.wait(TIMEOUT_S)
        if is_damaged:
            directory.quarantine(log, 0)
            directory.delete_damaged(AT)
        else:
            directory.delete_log(log)
        making = threads.submit(compacted_log, directory, b"b" * 16)
        wait_for_end_or_turn(making)
        held.may_go_on.set()
        with pytest.raises(DiskFailed):
            cleaned.result(TIMEOUT_S)
        made = making.result(TIMEOUT_S)
    assert cleaning.is_overtaken
    assert cleaned_files(tmp_path / "d" / "t-0") == []
    assert made.log_end_offset == 0
    directory.release()


def test_a_cleaning_of_a_deleted_log_takes_nothing_from_that_of_the_next_one_of_its_name(tmp_path: Path) -> None:
    directory = new_directory(tmp_path / "d")
    log = compacted_log(directory, b"a" * 16)
    cleaning, group = begin_cleaning(log)
    segment = cleaning.clean(group)
    directory.delete_log(log)
    other, other_group = begin_cleaning(compacted_log(directory, b"b" * 16))
    other_segment = other.clean(other_group)
    files = cleaned_files(tmp_path / "d" / "t-0")
    assert f"{0:020d}.log.cleaned" in files
    with pytest.raises(CleaningAborted):
        cleaning.begin_swap(segment, group)
    assert cleaned_files(tmp_path / "d" / "t-0") == files
    other.begin_swap(other_segment, other_group)
    directory.release()


def test_files_of_a_log_that_is_deleted_meanwhile_are_removed_without_a_failure_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory gets another name when the thread that removes what the log had put aside is about to sync it."""
    path = f"{tmp_path}/logs"
    format_directory(OsDisk(), path, cluster_id="c", node_id=1, rng=Random(1))
    directory = LogDirectory.open(OsDisk(), path, rng=Random(1))
    log = directory.open_log(AT.topic, AT.partition, bytes(16), LogConfig(), now_ms=NOW_MS)
    log.append_as_leader(batch(3), 0, NOW_MS)
    put_aside = log.segments[0].put_aside()
    sync_directory = OsDisk.sync_directory

    def delete_and_sync(disk: OsDisk, path: str) -> None:
        if AT in directory.logs:
            directory.delete_log(log)
        sync_directory(disk, path)

    monkeypatch.setattr(OsDisk, "sync_directory", delete_and_sync)
    directory.remove_deleted(put_aside)
    assert AT not in directory.logs


def test_a_log_that_was_deleted_while_nobody_flushed_it_is_made_anew_at_once(
    tmp_path: Path, waiting: threading.Semaphore
) -> None:
    path = str(tmp_path / "d")
    format_directory(OsDisk(), path, cluster_id="c", node_id=1, rng=Random(1))
    directory = LogDirectory.open(OsDisk(), path, rng=Random(1))
    for _ in range(3):
        directory.delete_log(directory_log(directory))
    assert not waiting.acquire(blocking=False)
    directory.release()


def open_directory(disk: SimulatedDisk, *, is_new: bool = False) -> LogDirectory:
    if is_new:
        format_directory(disk, "/d", cluster_id="c", node_id=1, rng=Random(1))
    return LogDirectory.open(disk, "/d", rng=Random(1))


def directory_log(directory: LogDirectory, topic: str = "t") -> Log:
    return directory.open_log(topic, 0, b"a" * 16, LogConfig(), now_ms=NOW_MS)


@pytest.mark.parametrize("which", ["recovery points", "high watermarks"])
def test_a_checkpoint_that_waited_for_its_turn_does_not_undo_what_a_truncation_lowered(
    which: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The high watermarks are found out on the event loop, the recovery points in the thread that writes them."""
    disk = OsDisk()
    path = str(tmp_path / "d")
    format_directory(disk, path, cluster_id="c", node_id=1, rng=Random(1))
    directory = LogDirectory.open(disk, path, rng=Random(1))
    log = directory_log(directory)
    append(log, 10)
    log.flush()
    directory.checkpoint_recovery_points()
    directory.checkpoint_high_watermarks({AT: 10})
    found, lowerings = {AT: log.log_end_offset}, directory.lowerings
    held = HeldSyncs("replication-offset-checkpoint", monkeypatch)
    with held.during(lambda: directory.checkpoint_high_watermarks({AT: 10})) as threads:
        truncation = threads.submit(log.truncate_to, 7)
        wait_for_end_or_turn(truncation)
        late = (
            threads.submit(directory.checkpoint_recovery_points)
            if which == "recovery points"
            else threads.submit(directory.checkpoint_high_watermarks, found, lowerings)
        )
        wait_for_end_or_turn(late)
    truncation.result(TIMEOUT_S)
    late.result(TIMEOUT_S)
    if which == "high watermarks":
        directory.checkpoint_high_watermarks(found, lowerings)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert int(Path(path, name).read_text().split()[-1]) <= 7
    directory.release()


class TakenTurn:
    """Who wants it first finds that another one has it, who does something meanwhile."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile: Callable[[], None] | None = meanwhile
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_recovery_points_are_those_of_the_moment_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut after it would leave a log that ends before its recovery point: damage, to whoever starts next."""
    disk = SimulatedDisk(Random(1))
    directory = open_directory(disk, is_new=True)
    log = directory_log(directory)
    append(log, 5)
    log.flush()
    directory.checkpoint_recovery_points()
    append(log, 5)
    log.flush()
    monkeypatch.setattr(directory._checkpoints, "_writing", TakenTurn(lambda: log.truncate_to(7)))
    directory.checkpoint_recovery_points()
    log.append_as_follower(batch(1, base_offset=7, epoch=2))
    assert log.recovery_point == 7
    disk.crash()
    assert 5 <= directory_log(open_directory(disk)).log_end_offset <= 8


def test_offsets_of_compaction_are_not_lost_where_two_threads_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk(Random(1))
    directory = open_directory(disk, is_new=True)
    log, second = directory_log(directory), directory_log(directory, "u")
    other = TakenTurn(lambda: directory.checkpoint_cleaned_offset(TopicPartition("u", 0), second, 1))
    monkeypatch.setattr(directory._checkpoints, "_writing", other)
    directory.checkpoint_cleaned_offset(AT, log, 5)
    assert disk.read_file("/d/cleaner-offset-checkpoint") == b"0\n2\nt 0 5\nu 0 1\n"


def test_what_was_cleaned_of_a_deleted_log_says_nothing_of_the_next_one_of_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimulatedDisk(Random(1))
    directory = open_directory(disk, is_new=True)
    log = directory_log(directory)

    def make_anew() -> None:
        directory.delete_log(log)
        directory_log(directory)

    monkeypatch.setattr(directory._checkpoints, "_writing", TakenTurn(make_anew))
    directory.checkpoint_cleaned_offset(AT, log, 5)
    assert directory.cleaned_offset(AT) is None
    assert b"t 0" not in disk.read_file("/d/cleaner-offset-checkpoint")


def test_only_one_of_the_threads_that_open_the_last_logs_notes_the_boot_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = new_directory(tmp_path / "d")
    for topic in "ab":
        append(directory_log(directory, topic), 1)
    directory.release()
    Path(directory.path, ".boot-id").unlink()
    directory = LogDirectory.open(OsDisk(), directory.path, rng=Random(1))
    notes: list[int] = []
    both = threading.Barrier(2)
    look, note = LogDirectory._note_boot_id, ShutdownMarks.note_boot_id

    def look_together(self: LogDirectory) -> None:
        both.wait(TIMEOUT_S)
        look(self)

    def note_slowly(self: ShutdownMarks) -> None:
        notes.append(1)
        if len(notes) > 1:
            WatchedTurn.waiting.release(2)
        assert WatchedTurn.waiting.acquire(timeout=TIMEOUT_S)
        note(self)

    monkeypatch.setattr(LogDirectory, "_note_boot_id", look_together)
    monkeypatch.setattr(ShutdownMarks, "note_boot_id", note_slowly)
    with ThreadPoolExecutor() as threads:
        for opening in [threads.submit(directory_log, directory, topic) for topic in "ab"]:
            opening.result(TIMEOUT_S)
    assert notes == [1]
    directory.release()
