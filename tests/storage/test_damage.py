"""Every byte of a small log, its indexes, snapshots and checkpoints is damaged once: nothing wrong is ever served.

What is read is what was written, or `CorruptLog`; no offset is given away twice; no data file is touched. Each case is
tried after a clean shutdown, after the process died, and after the machine died with everything flushed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from random import Random

import pytest

from pykbroker.protocol.records.batch import Record, iter_batches, iter_records
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import Log
from tests.storage.batches import NOW_MS, config, idempotent

AT = TopicPartition("t", 0)
TOPIC_ID = b"a topic of tests"
CONFIG = config(segment_bytes=420, index_interval_bytes=1)
BATCHES = 7
START = 2
END = 2 * BATCHES
LATER_MS = NOW_MS + 1000
PATTERNS = (0x01, 0x80, 0xFF)

Files = dict[str, bytes]


class End(Enum):
    CLEAN = "clean"
    KILLED = "killed"
    POWER_CUT = "power cut"


def written(end: End) -> Files:
    """Two records a batch, two epochs, three segments of which the second begins within the first epoch."""
    disk = SimulatedDisk(Random(1))
    format_directory(disk, "/data", cluster_id="c", node_id=1, rng=Random(1))
    directory = LogDirectory.open(disk, "/data", rng=Random(1))
    log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    for number in range(BATCHES):
        log.append_as_leader(idempotent(2 * number, 2, timestamp=NOW_MS + number), 3 if number < 5 else 4, NOW_MS)
    log.increment_log_start_offset(START)
    log.flush()
    directory.checkpoint_offsets()
    directory.checkpoint_high_watermarks({AT: END})
    if end is End.CLEAN:
        directory.close()
    return {path: disk.read_file(path) for path in paths(disk, "/data")}


def paths(disk: SimulatedDisk, directory: str) -> Iterator[str]:
    for name in disk.list_directory(directory):
        path = f"{directory}/{name}"
        if disk.is_directory(path):
            yield from paths(disk, path)
        elif name not in (".lock", "meta.properties"):
            yield path


FILES = {end: written(end) for end in End}
FIRST_LOG = f"/data/t-0/{0:020d}.log"
LAST_LOG = max(path for path in FILES[End.CLEAN] if path.endswith(".log"))
BATCH_BYTES = 12 + int.from_bytes(FILES[End.CLEAN][FIRST_LOG][8:12], "big")
NAMES = sorted({path for files in FILES.values() for path in files})


def disk_with(files: Files, end: End) -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    format_directory(disk, "/data", cluster_id="c", node_id=1, rng=Random(1))
    disk.make_directory("/data/t-0")
    for path, data in files.items():
        disk.replace_file(path, data)
    if end is End.POWER_CUT:
        disk.boot += 1
    return disk


def read(log: Log, offset: int, max_bytes: int) -> list[Record]:
    found: list[Record] = []
    for batch in iter_batches(log.read(offset, max_bytes).read(), allow_partial=True):
        batch.ensure_valid()
        found += [record for record in iter_records(batch) if record.offset >= offset]
    return found


def read_all(log: Log) -> list[Record]:
    found: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = read(log, offset, 1 << 20)
        assert records, f"nothing at {offset}"
        found += records
        offset = records[-1].offset + 1
    return found


def expected(start: int) -> list[tuple[int, int]]:
    return [(offset, NOW_MS + offset // 2) for offset in range(start, END)]


def check(files: Files, end: End, first_read: int) -> bool:
    """Whether the damage was found."""
    disk = disk_with(files, end)
    try:
        directory = LogDirectory.open(disk, "/data", rng=Random(1))
        log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        start = log.log_start_offset
        if start <= first_read:
            assert [(each.offset, each.timestamp) for each in read(log, first_read, 1)][:1] == expected(first_read)[:1]
        assert [(each.offset, each.timestamp) for each in read_all(log)] == expected(start)
        assert log.log_end_offset == END
        retried = log.append_as_leader(idempotent(END - 2, 2, timestamp=NOW_MS), 9, LATER_MS)
        assert (retried.is_duplicate, retried.first_offset) == (True, END - 2)
        assert log.append_as_leader(idempotent(END, 2, timestamp=LATER_MS), 9, LATER_MS).first_offset == END
        is_found = False
    except CorruptLog:
        is_found = True
    for path, data in files.items():
        if path.endswith(".log"):
            assert disk.read_file(path).startswith(data[: len(FILES[end][path])]), f"{path} was touched"
    return is_found


@pytest.mark.parametrize("end", End)
def test_nothing_is_damaged_at_first(end: End) -> None:
    assert len([path for path in FILES[end] if path.endswith(".log")]) == 2
    for first_read in range(END):
        assert not check(FILES[end], end, first_read)


@pytest.mark.parametrize("path", NAMES)
@pytest.mark.parametrize("end", End)
def test_a_damaged_byte(end: End, path: str) -> None:
    files = FILES[end]
    if path not in files:
        return
    for position in range(len(files[path])):
        for pattern in patterns(path, position):
            damaged = bytearray(files[path])
            damaged[position] ^= pattern
            case = f"{path}, byte {position} ^ {pattern}"
            try:
                is_found = check({**files, path: bytes(damaged)}, end, position % END)
            except AssertionError as error:
                raise AssertionError(case) from error
            if path.endswith(".log") and not is_deleted(path, position) and not is_last_epoch(end, path, position):
                assert is_found, f"{case} was not found"


def patterns(path: str, position: int) -> list[int]:
    """In turns."""
    at = position % len(PATTERNS)
    return [PATTERNS[at], PATTERNS[at - 1]] if path.endswith(".log") else [PATTERNS[at]]


def is_deleted(path: str, position: int) -> bool:
    """What DeleteRecords took from the readers."""
    return path == FIRST_LOG and position < BATCH_BYTES


def is_last_epoch(end: End, path: str, position: int) -> bool:
    """A later epoch in the very last batch can be right, as far as the log alone knows."""
    in_batch = position - len(FILES[end][path]) + BATCH_BYTES
    return path == LAST_LOG and end is not End.CLEAN and 12 <= in_batch < 16


def whole_files(data: bytes) -> dict[str, bytes | None]:
    """What may become of a file."""
    cut = {f"cut off at {size}": data[:size] for size in range(0, len(data), 7)}
    return {
        **cut,
        "missing": None,
        "zeros": bytes(len(data)),
        "zeros behind": data + bytes(37),
        "garbage": Random(1).randbytes(len(data)),
        "garbage behind": data + b"ABCDEFGHIJKLMNOPQRSTUVWX",
        "text": b"ABCDEFGHIJKLMNOPQRSTUVWX",
    }


@pytest.mark.parametrize("path", NAMES)
@pytest.mark.parametrize("end", End)
def test_a_damaged_file(end: End, path: str) -> None:
    if path not in FILES[end]:
        return
    for number, (what, data) in enumerate(whole_files(FILES[end][path]).items()):
        files = {name: content for name, content in FILES[end].items() if name != path}
        if data is not None:
            files[path] = data
        try:
            is_found = check(files, end, number % END)
        except AssertionError as error:
            raise AssertionError(f"{path}: {what}") from error
        if path.endswith(".log") and not what.endswith("behind"):
            assert is_found, f"{path}: {what} was not found"


@pytest.mark.parametrize("position", range(12))
def test_nothing_is_deleted_because_a_damaged_index_says_that_it_is_old(position: int) -> None:
    files = dict(FILES[End.CLEAN])
    path = FIRST_LOG.replace(".log", ".timeindex")
    data = bytearray(files[path])
    for pattern in (0x01, 0x40, 0x80):
        damaged = bytearray(data)
        damaged[len(data) - 12 + position] ^= pattern
        for what in (damaged, data[:-12], data[:-24], data[:12]):
            directory = LogDirectory.open(disk_with({**files, path: bytes(what)}, End.CLEAN), "/data", rng=Random(1))
            log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
            latest_ms = NOW_MS + 3  # of the first segment
            log.update_config(replace(CONFIG, retention_ms=1000))
            assert log.delete_old_segments(END, latest_ms + 1000) == []
