"""Cleaned segments that are about to take the others' place: when they must not, and in which order they do."""

from __future__ import annotations

import pytest

from pykbroker.storage.compaction.compaction import CleanerConfig, Cleaning, CleaningAborted
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.segment import SWAP_SUFFIX
from tests.storage.batches import NOW_MS, config, open_log
from tests.storage.cleaning import MEMORY_BYTES, cleanable, keyed
from tests.storage.recording_disk import Directory, NameChange, RecordingDisk, SyncNames

PATH = "/data/t-0"
COMPACT = config(cleanup_policy="compact")


@pytest.fixture
def disk() -> RecordingDisk:
    disk = RecordingDisk()
    disk.make_directory("/data")
    return disk


def log_of_three_segments(disk: RecordingDisk) -> Log:
    log = open_log(disk, PATH, COMPACT)
    for value in (b"1", b"2", b"3"):
        log.append_as_leader(keyed((b"key", value)), 0, NOW_MS)
        log.roll(NOW_MS)
    log.append_as_leader(keyed((b"key", b"last")), 0, NOW_MS)
    log.flush()
    return log


def cleaning_of(log: Log) -> Cleaning:
    return Cleaning(cleanable(log), CleanerConfig(MEMORY_BYTES, 0.9), now_ms=NOW_MS, progress=lambda _: None)


def test_what_was_cleaned_for_the_sake_of_records_that_are_cut_off_is_thrown_away(disk: RecordingDisk) -> None:
    """The later value of a key is gone: the earlier one, which the new segment lacks, counts again."""
    log = log_of_three_segments(disk)
    cleaning = cleaning_of(log)
    group = cleaning.plan()[0][:2]
    segment = cleaning.clean(group)
    log.truncate_to(2)
    with pytest.raises(CleaningAborted):
        cleaning.begin_swap(segment, group)
    assert [each.base_offset for each in log.segments][:2] == [0, 1]
    assert not [name for name in disk.list_directory(PATH) if name.endswith(SWAP_SUFFIX)]


def test_the_old_files_are_gone_for_good_before_the_new_ones_have_their_names(disk: RecordingDisk) -> None:
    """Another power cut must not bring back a segment whose offsets the new one has."""
    log = log_of_three_segments(disk)
    cleaning = cleaning_of(log)
    group = cleaning.plan()[0]
    assert len(group) > 1
    cleaning.begin_swap(cleaning.clean(group), group)
    log.sync_names()
    log.abandon()  # the process dies before the swap is done
    disk.journal.clear()
    again = open_log(disk, PATH, COMPACT, has_been_compacted=True, recovery_point=log.recovery_point)
    assert [each.base_offset for each in again.segments] == [0, 3]
    directory = disk.find(PATH)
    assert isinstance(directory, Directory)
    last_removal = max(i for i, each in enumerate(disk.journal) if _removes_a_segment(each))
    first_rename = min(i for i, each in enumerate(disk.journal) if _puts_a_segment(each))
    synced = [i for i, each in enumerate(disk.journal) if each == SyncNames(directory)]
    assert any(last_removal < i < first_rename for i in synced)
    assert any(first_rename < i for i in synced)


def _names_of(operation: object, *, present: bool) -> list[str]:
    if not isinstance(operation, NameChange):
        return []
    return [name for _, name, node in operation.changes if (node is not None) is present]


def _removes_a_segment(operation: object) -> bool:
    names = _names_of(operation, present=False)
    is_rename = bool(_names_of(operation, present=True))
    return not is_rename and any(name.endswith(".log") for name in names)


def _puts_a_segment(operation: object) -> bool:
    gone = _names_of(operation, present=False)
    return any(name.endswith(".log") for name in _names_of(operation, present=True)) and any(
        name.endswith(SWAP_SUFFIX) for name in gone
    )
