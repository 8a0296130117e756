"""`preallocate`: a segment's file has its full length while it is active, and nobody reads the zeros (KIP-20)."""

import errno
import logging
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from pykbroker.protocol.records.batch import ATTRIBUTES_OFFSET
from pykbroker.storage.files.disk import OsDisk, OsDiskFile
from pykbroker.storage.files.errors import CorruptLog, FileError, NoRoom
from pykbroker.storage.files.faulty_disk import Fault, FaultyDisk
from pykbroker.storage.log.log import Log
from tests.storage.batches import NOW_MS, batch, config, offsets, open_log, read_all
from tests.storage.full_system_calls import full_after
from tests.storage.power_cut import FragileDisk, PowerCut

SEGMENT_BYTES = 1000
CONFIG = config(preallocate="true", segment_bytes=SEGMENT_BYTES)
PER_SEGMENT = SEGMENT_BYTES // len(batch())


def write(log: Log, count: int) -> None:
    for _ in range(count):
        log.append_as_leader(batch(), 0, NOW_MS)


def file_sizes(path: Path) -> list[int]:
    return [file.stat().st_size for file in sorted(path.glob("*.log"))]


def test_only_the_active_segments_file_is_longer_than_its_batches(tmp_path: Path) -> None:
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    assert file_sizes(tmp_path) == [SEGMENT_BYTES]
    write(log, PER_SEGMENT + 2)
    full, rest = PER_SEGMENT * len(batch()), 2 * len(batch())
    assert file_sizes(tmp_path) == [full, SEGMENT_BYTES]
    assert log.size_bytes == full + rest
    assert offsets(read_all(log)) == list(range(PER_SEGMENT + 2))
    log.close()
    assert file_sizes(tmp_path) == [full, rest]


def test_a_log_that_was_closed_appends_to_its_file_as_it_is(tmp_path: Path) -> None:
    open_log(OsDisk(), str(tmp_path), CONFIG).close()
    log = open_log(OsDisk(), str(tmp_path), CONFIG, clean_shutdown=True)
    assert file_sizes(tmp_path) == [0]
    write(log, 2)
    assert file_sizes(tmp_path) == [2 * len(batch())]
    write(log, PER_SEGMENT)
    assert file_sizes(tmp_path)[-1] == SEGMENT_BYTES
    log.abandon()


@pytest.mark.parametrize("written", [0, 1, PER_SEGMENT, 2 * PER_SEGMENT + 1])
def test_a_process_that_was_killed_leaves_zeros_that_are_cut_off(tmp_path: Path, written: int) -> None:
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, written)
    log.abandon()
    assert file_sizes(tmp_path)[-1] == SEGMENT_BYTES

    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    assert sum(file_sizes(tmp_path)) == log.size_bytes == written * len(batch())
    write(log, 1)
    assert offsets(read_all(log)) == list(range(written + 1))
    log.abandon()


def test_zeros_that_a_power_cut_brought_back_behind_a_full_segment_are_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, PER_SEGMENT + 1)
    log.abandon()
    first, full = tmp_path / "00000000000000000000.log", PER_SEGMENT * len(batch())
    first.write_bytes(first.read_bytes() + bytes(SEGMENT_BYTES - full))
    with caplog.at_level(logging.INFO):
        log = open_log(OsDisk(), str(tmp_path), CONFIG)
    assert f"cutting off {SEGMENT_BYTES - full} zeros behind {first}, which was full" in caplog.messages
    assert file_sizes(tmp_path)[0] == full
    assert offsets(read_all(log)) == list(range(PER_SEGMENT + 1))
    log.abandon()


@pytest.mark.parametrize("batches_before", [0, PER_SEGMENT - 1])
@pytest.mark.parametrize("segment_bytes", [SEGMENT_BYTES, PER_SEGMENT * len(batch())])
def test_a_batch_that_a_killed_process_wrote_in_part_is_cut_off(
    tmp_path: Path, batches_before: int, segment_bytes: int
) -> None:
    """The zeros of a preallocated file stand where the rest of the batch would be, and are not taken for damage."""
    settings = replace(CONFIG, segment_bytes=segment_bytes)
    log = open_log(OsDisk(), str(tmp_path), settings)
    write(log, batches_before + 1)
    log.abandon()
    file = tmp_path / "00000000000000000000.log"
    whole = file.read_bytes()
    start, end = batches_before * len(batch()), (batches_before + 1) * len(batch())
    for written in range(start, end - 1):
        file.write_bytes(whole[:written] + bytes(segment_bytes - written))
        log = open_log(OsDisk(), str(tmp_path), settings, high_watermark=batches_before, machine_stayed_up=True)
        assert log.log_end_offset == batches_before, f"with {written - start} bytes of the batch"
        log.abandon()


def test_a_flipped_bit_in_a_preallocated_file_stays_damage(tmp_path: Path) -> None:
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, 2)
    log.abandon()
    file = tmp_path / "00000000000000000000.log"
    whole = file.read_bytes()
    for position in range(len(batch()) + ATTRIBUTES_OFFSET, 2 * len(batch())):
        flipped = bytearray(whole)
        flipped[position] ^= 16
        file.write_bytes(flipped)
        with pytest.raises(CorruptLog, match="no crash of a process leaves that"):
            open_log(OsDisk(), str(tmp_path), CONFIG, machine_stayed_up=True)


def test_zeros_that_were_never_written_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A start with a thousand preallocated logs of a gigabyte each would take an hour."""
    log = open_log(OsDisk(), str(tmp_path), config(preallocate="true", segment_bytes=2**30))
    write(log, 1)
    log.abandon()
    read: list[int] = []
    read_at = OsDiskFile.read_at

    def counted(file: OsDiskFile, position: int, size: int) -> bytes:
        data = read_at(file, position, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(OsDiskFile, "read_at", counted)
    with caplog.at_level(logging.INFO):
        log = open_log(OsDisk(), str(tmp_path), CONFIG)
    assert file_sizes(tmp_path) == [len(batch())]
    assert sum(read) < 5 * 2**20
    assert f"cutting off {2**30 - len(batch())} zeros" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.INFO]
    log.abandon()


def test_truncation_gives_the_file_the_length_of_its_batches(tmp_path: Path) -> None:
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, 3)
    log.truncate_to(1)
    assert file_sizes(tmp_path) == [len(batch())]
    write(log, 1)
    assert offsets(read_all(log)) == [0, 1]
    log.abandon()


def test_zeros_behind_a_full_segment_are_found_though_its_batches_are_trusted(tmp_path: Path) -> None:
    """A crash may undo that the file was cut when the next segment began."""
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, PER_SEGMENT)
    log.roll(NOW_MS)
    log.flush()
    log.abandon()
    os.truncate(sorted(tmp_path.glob("*.log"))[0], SEGMENT_BYTES)

    log = open_log(OsDisk(), str(tmp_path), CONFIG, recovery_point=PER_SEGMENT)
    assert log.size_bytes == PER_SEGMENT * len(batch())
    write(log, 1)
    assert offsets(read_all(log)) == list(range(PER_SEGMENT + 1))
    log.abandon()


@pytest.mark.parametrize("recovery_point", [0, PER_SEGMENT])
def test_segments_behind_a_full_one_stay_when_its_zeros_are_back(tmp_path: Path, recovery_point: int) -> None:
    """A start makes durable what a process left that was killed, and not the length of the segment before."""
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, PER_SEGMENT)
    log.roll(NOW_MS)
    write(log, 1)
    log.abandon()
    os.truncate(sorted(tmp_path.glob("*.log"))[0], SEGMENT_BYTES)

    log = open_log(OsDisk(), str(tmp_path), CONFIG, recovery_point=recovery_point)
    assert offsets(read_all(log)) == list(range(PER_SEGMENT + 1))
    assert file_sizes(tmp_path) == [PER_SEGMENT * len(batch()), len(batch())]
    log.abandon()


def test_zeros_in_the_place_of_batches_end_the_log(tmp_path: Path) -> None:
    """Of two segments a power cut may have kept the later one alone."""
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, PER_SEGMENT + 1)
    log.abandon()
    first = sorted(tmp_path.glob("*.log"))[0]
    kept = (PER_SEGMENT - 1) * len(batch())
    os.truncate(first, kept)
    os.truncate(first, SEGMENT_BYTES)

    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    assert offsets(read_all(log)) == list(range(PER_SEGMENT - 1))
    assert file_sizes(tmp_path) == [kept]
    log.abandon()


def test_a_write_that_fails_half_way_leaves_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(OsDisk(), str(tmp_path), CONFIG)
    write(log, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full_after(os.pwritev, 20))
        with pytest.raises(NoRoom, match="No space left on device"):
            write(log, 1)
    data = next(tmp_path.glob("*.log")).read_bytes()
    assert len(data) == SEGMENT_BYTES
    assert not any(data[len(batch()) :])
    write(log, 1)
    assert offsets(read_all(log)) == [0, 1]
    log.abandon()


def live(disk: FragileDisk, flushed: list[int]) -> None:
    log = open_log(disk, "/t-0", CONFIG, recovery_point=flushed[-1])
    for number in range(3 * PER_SEGMENT):
        write(log, 1)
        if number % 4 == 3:
            log.flush()
            flushed.append(log.log_end_offset)
    log.close()
    flushed.append(log.log_end_offset)


def test_a_crash_at_any_operation_loses_nothing_that_was_flushed() -> None:
    for seed in range(2):
        operations = 0
        while True:
            disk = FragileDisk(Random(1000 * seed + operations))
            disk.operations_left = operations
            flushed = [0]
            try:
                live(disk, flushed)
            except PowerCut:
                disk.crash()
            else:
                break
            log = open_log(disk, "/t-0", CONFIG, recovery_point=flushed[-1])
            assert log.log_end_offset >= flushed[-1], f"seed {seed}, operation {operations}"
            assert offsets(read_all(log)) == list(range(log.log_end_offset))
            operations += 1
        assert operations > 60


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_whichever_operation_fails_what_was_written_is_there_once(number: int) -> None:
    for skip in range(1000):
        inner = FragileDisk(Random(skip))
        disk = FaultyDisk(inner, Random(skip))
        log = open_log(disk, "/t-0", CONFIG)
        disk.faults = [Fault(number, skip=skip)]
        written = 0
        try:
            for written in range(2 * PER_SEGMENT):  # noqa: B007 - the number of those before the one that failed
                write(log, 1)
            written += 1
        except FileError as failure:
            if isinstance(failure, NoRoom):  # nothing has changed: the log goes on
                write(log, 1)
                written += 1
            log.abandon()
        else:
            if not disk.faults[0].times:
                raise AssertionError("a failure was swallowed")
            break
        disk.restart()
        again = open_log(disk, "/t-0", CONFIG)
        assert written <= again.log_end_offset <= written + 1
        assert offsets(read_all(again)) == list(range(again.log_end_offset))
    assert skip > 2 * PER_SEGMENT
