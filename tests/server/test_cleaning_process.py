"""Cleaning in a process of its own: the same files come out, and whichever of the two dies, the other one goes on."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import trio

from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.server.logs.cleaning_messages import Failed
from pykbroker.server.logs.cleaning_process import CleaningProcess, CleaningProcessLost, ThisThread, Workplace
from pykbroker.storage.compaction.cleaning_task import CleanerConfig
from pykbroker.storage.compaction.compaction import Cleaning, CleaningAborted, Uncleanable
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import CorruptIndex, CorruptLog, DiskFailed, FileError, NoRoom, StorageError
from pykbroker.storage.log.log import AppendOrigin, Log
from pykbroker.storage.segments.segment import LogSegment
from tests.api.api_node import ApiNode, in_virtual_time
from tests.server.test_log_cleaner import cleaner, create_compacted, fill, until, values
from tests.storage.batches import NOW_MS, config, open_log, read_all
from tests.storage.cleaning import cleanable, keyed
from tests.storage.test_compaction import marker, transactional


@pytest.fixture
def process() -> Iterator[CleaningProcess]:
    process = CleaningProcess(worth_a_process_bytes=0)
    yield process
    process.close()


def new_log(path: Path, *segments: list[bytes]) -> Log:
    path.mkdir()
    log = open_log(OsDisk(), str(path), config(cleanup_policy="compact", index_interval_bytes=100))
    for batches in segments:
        for data in batches:
            log.append_as_leader(data, 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
        log.roll(NOW_MS)
    log.flush()
    return log


def varied_log(path: Path) -> Log:
    """With everything that a cleaning has to know of."""
    return new_log(
        path,
        [keyed((b"a", b"1"), (b"b", b"1"), compression=Compression.LZ4), keyed((None, b"1"), (b"c", b"1"))],
        [transactional((b"d", b"aborted")), marker(ControlRecordType.ABORT), keyed((b"b", None))],
        [transactional((b"e", b"1"), sequence=1), marker(ControlRecordType.COMMIT), keyed((b"a", b"2"))],
    )


def large_log(path: Path) -> Log:
    """Enough for some reports of how far it is."""
    value = bytes(100_000)
    return new_log(path, *([keyed(*((b"%d" % key, value) for key in range(7)))] * 10 for _ in range(2)))


def clean(log: Log, place: Workplace, progress: Callable[[int], None] = lambda size: None) -> int:
    settings = CleanerConfig(1 << 20, 0.9)
    cleaning = Cleaning(cleanable(log), settings, now_ms=NOW_MS, progress=progress, begin=place.begin)
    for group in cleaning.plan():
        segment = cleaning.clean(group)
        cleaning.begin_swap(segment, group)
        for path in cleaning.swap(segment):
            Path(path).unlink()
    return cleaning.end_offset


def state(segment: LogSegment) -> tuple[object, ...]:
    index = segment.transaction_index
    return (
        segment.base_offset,
        segment.size,
        segment.max_timestamp,
        segment.offset_of_max_timestamp,
        list(index.entries()),
    )


def files(log: Log) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(log.directory).iterdir()}


def leftovers(log: Log) -> list[str]:
    return [name for name in files(log) if name.endswith((".cleaned", ".swap", ".deleted"))]


def test_the_same_comes_out_of_it(tmp_path: Path, process: CleaningProcess) -> None:
    here, elsewhere = varied_log(tmp_path / "a"), varied_log(tmp_path / "b")
    size = here.size_bytes
    assert clean(elsewhere, process) == clean(here, ThisThread())
    assert process.is_open
    assert here.size_bytes < size
    assert files(elsewhere) == files(here)
    assert [state(each) for each in elsewhere.segments] == [state(each) for each in here.segments]
    assert read_all(elsewhere) == read_all(here)


def test_one_process_cleans_many_logs_and_more_than_once(tmp_path: Path, process: CleaningProcess) -> None:
    pids = set()
    for name in ("a", "b", "a-b"):
        log = large_log(tmp_path / name)
        clean(log, process)
        assert len(read_all(log)) == 7
        pids.add(process.pid)
    assert len(pids) == 1


def test_little_is_cleaned_here(tmp_path: Path) -> None:
    process = CleaningProcess()
    clean(varied_log(tmp_path / "a"), process)
    assert not process.is_open


class Reports:
    """allowed: how many there may be before something happens. A wait for an answer is no report."""

    def __init__(self, allowed: int = 1000, then: Callable[[], None] = lambda: None) -> None:
        self.sizes: list[int] = []
        self._allowed = allowed
        self._then = then

    def __call__(self, size: int) -> None:
        if size:
            self.sizes.append(size)
        if len(self.sizes) > self._allowed:
            self._then()


def reports_of_a_cleaning(path: Path, process: CleaningProcess) -> Reports:
    reports = Reports()
    clean(large_log(path), process, reports)
    return reports


def test_progress_is_told_of_both_passes_and_may_abort_each(tmp_path: Path, process: CleaningProcess) -> None:
    log = large_log(tmp_path / "a")
    before = files(log)
    usual = reports_of_a_cleaning(tmp_path / "b", process)
    assert 1.5 * log.size_bytes < sum(usual.sizes) < 2.5 * log.size_bytes

    def stop() -> None:
        raise CleaningAborted("the broker stops")

    pid = process.pid
    for allowed in range(len(usual.sizes)):
        with pytest.raises(CleaningAborted, match="the broker stops"):
            clean(log, process, Reports(allowed, stop))
        assert files(log) == before
    clean(log, process)
    assert process.pid == pid
    assert len(read_all(log)) == 7


def test_a_process_that_is_killed_aborts_the_cleaning_and_leaves_nothing(
    tmp_path: Path, process: CleaningProcess
) -> None:
    log = large_log(tmp_path / "a")
    before = files(log)
    usual = reports_of_a_cleaning(tmp_path / "b", process)

    def kill() -> None:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)

    for allowed in (0, len(usual.sizes) - 1):
        with pytest.raises(CleaningProcessLost, match="its process was ended by signal 9"):
            clean(log, process, Reports(allowed, kill))
        assert files(log) == before
        assert not process.is_open
    clean(log, process)
    assert len(read_all(log)) == 7


def test_a_process_that_does_not_answer_holds_up_no_broker_that_stops(tmp_path: Path, process: CleaningProcess) -> None:
    log = large_log(tmp_path / "a")

    def progress(size: int) -> None:
        assert process.pid is not None
        if not size:
            raise CleaningAborted("the broker stops")
        os.kill(process.pid, signal.SIGSTOP)

    with pytest.raises(CleaningAborted, match="the broker stops"):
        clean(log, process, progress)
    assert leftovers(log) == []
    assert not process.is_open


def test_what_cannot_be_started_is_told_in_one_line(
    tmp_path: Path, process: CleaningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with pytest.raises(CleaningProcessLost, match="its process cannot be started: No such file"):
        clean(large_log(tmp_path / "a"), process)


def test_damage_and_failures_are_told_as_if_it_had_been_done_here(tmp_path: Path, process: CleaningProcess) -> None:
    log = varied_log(tmp_path / "a")
    path = Path(log.segments[0].file.path)
    data = path.read_bytes()
    path.write_bytes(data[:-2] + b"\xff\xff")
    with pytest.raises(CorruptLog, match=f"{path}: the batch at offset 2 has a wrong checksum"):
        clean(log, process)
    path.unlink()
    with pytest.raises(DiskFailed, match=f"cannot open {path}: No such file") as failure:
        clean(log, process)
    assert failure.value.error.errno == errno.ENOENT
    path.write_bytes(data)
    clean(log, process)


@pytest.mark.parametrize("place", [ThisThread(), CleaningProcess(worth_a_process_bytes=0)], ids=["here", "elsewhere"])
def test_what_nobody_has_read_since_the_start_is_checked_first(tmp_path: Path, place: Workplace) -> None:
    """The leader epoch, for one: no checksum covers it."""
    log = varied_log(tmp_path / "a")
    log.close()
    path = tmp_path / "a" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[15] ^= 1
    path.write_bytes(data)
    settings = log.config
    log = open_log(OsDisk(), log.directory, settings, recovery_point=log.log_end_offset, clean_shutdown=True)
    with pytest.raises(CorruptLog, match=f"{path} is damaged at position 0: the batch has the leader epoch 1, not 0"):
        clean(log, place)
    data[15] ^= 1
    path.write_bytes(data)
    clean(log, place)
    place.close()


@pytest.mark.parametrize(
    "error",
    [
        CleaningAborted("the broker stops"),
        Uncleanable("too little memory"),
        CorruptLog("damage"),
        CorruptIndex("it lies"),
        DiskFailed("read", "/data/x", OSError(errno.EIO, "I/O error")),
        NoRoom("write", "/data/x", OSError(errno.ENOSPC, "no space")),
        DiskFailed("sync", "/data/x", OSError("without a number")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_expected_error_comes_over_whole(error: StorageError) -> None:
    with pytest.raises(type(error)) as raised:
        Failed.because_of(error).raise_again()
    assert type(raised.value) is type(error)
    assert str(raised.value) == str(error)
    if isinstance(error, FileError) and isinstance(raised.value, FileError):
        assert (raised.value.operation, raised.value.path) == (error.operation, error.path)


A_BROKER = """
import os, signal, sys
from pykbroker.server.logs.cleaning_process import CleaningProcess
from tests.server.test_cleaning_process import clean, large_log
process = CleaningProcess(worth_a_process_bytes=0)
from pathlib import Path
def die(size):
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
clean(large_log(Path(sys.argv[1])), process, die)
"""


def test_it_ends_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", A_BROKER, str(tmp_path / "a")]
    broker = subprocess.run(command, stdout=subprocess.PIPE, check=False, cwd=Path(__file__).parents[2])
    assert broker.returncode == -signal.SIGKILL
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(broker.stdout)).wait(30)
    assert not psutil.pid_exists(int(broker.stdout))


class Watched(CleaningProcess):
    """closed: the process ids that were there when it was closed."""

    def __init__(self) -> None:
        super().__init__(worth_a_process_bytes=0)
        self.closed: list[int | None] = []

    def close(self) -> None:
        self.closed.append(self.pid)
        super().close()


def test_the_log_cleaner_closes_it_when_nothing_is_due(tmp_path: Path) -> None:
    node = ApiNode(tmp_path)
    create_compacted(node, "apples")
    log = fill(node, "apples")
    process = Watched()

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cleaner(node, new_workplace=lambda: process).run)
            await until(lambda: bool(process.closed))
            nursery.cancel_scope.cancel()

    in_virtual_time(run)
    assert len(values(log)) < 20
    pid, *_ = process.closed
    assert pid is not None
    assert not psutil.pid_exists(pid)


def test_a_lost_process_is_a_warning_and_the_next_round_goes_on(
    tmp_path: Path, process: CleaningProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = ApiNode(tmp_path)
    create_compacted(node, "apples")
    log = fill(node, "apples")
    of = cleaner(node)
    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
        broken.setattr(sys, "executable", str(tmp_path / "nothing"))
        assert not in_virtual_time(lambda: of.clean_dirtiest(process))
    assert [record.getMessage() for record in caplog.records] == [
        "the cleaning of apples-0 was aborted, and is tried again:"
        " its process cannot be started: No such file or directory"
    ]
    assert len(values(log)) == 20
    assert in_virtual_time(lambda: of.clean_dirtiest(process))
    assert len(values(log)) < 20
