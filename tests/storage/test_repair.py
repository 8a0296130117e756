"""Directories that were damaged in every way, repaired and salvaged: what is sound stays at its offset, and opens."""

import posixpath
from collections.abc import Callable
from random import Random

import pytest

from pykbroker.cli.verify_repair import repair_directory
from pykbroker.protocol.records.batch import NO_PRODUCER_ID, Record
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.checks.directory_check import DirectoryCheck
from pykbroker.storage.checks.findings import Finding
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.log.log import Log
from tests.legacy_messages import message
from tests.storage.batches import NOW_MS, batch, read_all
from tests.storage.cleaning import batches
from tests.storage.test_directory_check import (
    CLUSTER,
    FIRST,
    PATH,
    SETTINGS,
    TOPIC_ID,
    file,
    flip,
    write_aborted_transaction,
    write_directory,
)


@pytest.fixture(params=[True, False], ids=["stopped", "killed"])
def directory(disk: SimulatedDisk, request: pytest.FixtureRequest) -> str:
    write_directory(disk, clean=request.param)
    return PATH


def repair(disk: SimulatedDisk, *, salvage: bool = False) -> tuple[list[str], list[Finding]]:
    """Steps, and what is left."""
    check = DirectoryCheck(disk, PATH, CLUSTER, deep=True)
    found = [finding for finding in check.run() if finding.is_damage]
    assert found, "nothing was damaged"
    done = list(repair_directory(disk, check, found, salvage=salvage, deep=True, now_ms=NOW_MS))
    return [each for each in done if isinstance(each, str)], [each for each in done if isinstance(each, Finding)]


def reopened(disk: SimulatedDisk) -> Log:
    directory = LogDirectory.open(disk, PATH, rng=Random(5))
    return directory.open_log("t", 0, TOPIC_ID, SETTINGS, now_ms=NOW_MS)


def records(disk: SimulatedDisk) -> list[Record]:
    """Without taking the marker of the clean shutdown."""
    return read_all(reopened(disk))


def last_log(disk: SimulatedDisk) -> str:
    return max(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))


def change(disk: SimulatedDisk, path: str, edit: Callable[[bytes], bytes]) -> None:
    disk.replace_file(path, edit(disk.read_file(path)))


LOSSLESS: list[tuple[str, Callable[[bytes], bytes]]] = [
    (FIRST + ".index", flip(3)),
    (FIRST + ".index", lambda data: b"garbage!" * 50),
    (FIRST + ".timeindex", lambda data: data[:-5]),
    (FIRST + ".txnindex", lambda data: b"garbage"),
    ("leader-epoch-checkpoint", lambda data: b"junk"),
    ("leader-epoch-checkpoint", lambda data: b"0\n1\n0 0\n"),
    ("partition.metadata", lambda data: b"junk"),
    ("../replication-offset-checkpoint", lambda data: b"0\n9\nt 0 80\nt 1 80\n"),
    ("../recovery-point-offset-checkpoint", lambda data: data[:-1] + b"x\n"),
    # What the checksum of a batch does not cover: base offset, length, epoch, magic.
    *((FIRST + ".log", flip(91 * 3 + at)) for at in (0, 5, 7, 8, 10, 11, 12, 15, 16)),
    (FIRST + ".log", flip(7)),
]


@pytest.mark.parametrize(("name", "edit"), LOSSLESS, ids=range(len(LOSSLESS)))
def test_what_the_log_tells_is_mended_without_loss(
    disk: SimulatedDisk, directory: str, name: str, edit: Callable[[bytes], bytes]
) -> None:
    path = posixpath.normpath(file(name))
    if not disk.exists(path):
        disk.replace_file(path, b"")
    before = {each: disk.read_file(file(each)) for each in disk.list_directory(f"{PATH}/t-0") if each.endswith(".log")}
    change(disk, path, edit)
    check = DirectoryCheck(disk, PATH, CLUSTER, deep=True)
    if not any(finding.is_damage for finding in check.run()):
        pytest.skip("after a crash the next start sees to it")
    steps, left = repair(disk)
    assert left == []
    assert steps
    after = {each: disk.read_file(file(each)) for each in disk.list_directory(f"{PATH}/t-0") if each.endswith(".log")}
    assert after == before
    log = reopened(disk)
    assert [record.offset for record in read_all(log)][:80] == list(range(80))
    assert log.latest_epoch == 1


def test_a_damaged_batch_is_taken_out_only_when_asked(disk: SimulatedDisk, directory: str) -> None:
    path = file(FIRST, ".log")
    change(disk, path, flip(91 * 3 + 70))
    damaged = disk.read_file(path)
    steps, left = repair(disk)
    assert (steps, len(left)) == ([], 1)
    assert disk.read_file(path) == damaged
    steps, left = repair(disk, salvage=True)
    assert left == []
    assert f"{path}: took out 91 bytes at 273, which are kept in {FIRST}.log.273-364.damaged" in steps
    assert f"{path}: an empty batch stands for the offsets 6-7" in steps
    assert disk.read_file(file(FIRST, ".log.273-364.damaged")) == damaged[273:364]
    log = reopened(disk)
    assert [record.offset for record in read_all(log)][:78] == [each for each in range(80) if each not in (6, 7)]
    assert log.log_end_offset >= 80


def test_the_end_of_the_log_stays_where_it_was(disk: SimulatedDisk, directory: str) -> None:
    """The last flushed batch is damaged, or cut off, or its whole segment is gone."""
    last = last_log(disk)
    base_offset = int(last[:20])
    size = 91 * (80 - base_offset) // 2
    for cut in (size - 91, -5, 0):
        change(disk, file(last), lambda data, cut=cut: data[:cut])  # type: ignore[misc]
        steps, left = repair(disk, salvage=True)
        assert left == []
        assert any("an empty batch stands for the offsets" in step for step in steps)
    log = reopened(disk)
    assert log.log_end_offset == 80
    assert {each.header.producer_id for each in batches(log) if not each.header.records_count} == {NO_PRODUCER_ID}
    assert log.append_as_leader(batch(1), 1, NOW_MS).first_offset == 80


def test_a_missing_segment_leaves_its_offsets_empty(disk: SimulatedDisk, directory: str) -> None:
    bases = sorted(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))
    start, end = int(bases[1][:20]), int(bases[2][:20])
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(file(bases[1].removesuffix(".log"), suffix))
    steps, left = repair(disk, salvage=True)
    assert left == []
    # Of each leader epoch one: the second begins at 40.
    for first, last in ((start, 39), (40, end - 1)):
        assert any(f"an empty batch stands for the offsets {first}-{last}" in step for step in steps)
    found = [record.offset for record in records(disk)]
    assert found[: 80 - end + start] == [each for each in range(80) if not start <= each < end]


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_behind_a_repair_takes_no_index_back(seed: int) -> None:
    disk = SimulatedDisk(Random(seed))
    write_aborted_transaction(disk)
    indexes = [file(FIRST, suffix) for suffix in (".index", ".timeindex", ".txnindex")]
    before = [disk.read_file(path) for path in indexes]
    for path in indexes:
        disk.remove(path)
    disk.sync_directory(f"{PATH}/t-0")
    repair(disk)
    disk.crash()
    assert [disk.read_file(path) for path in indexes] == before


def test_zeros_behind_the_end_are_cut_off(disk: SimulatedDisk) -> None:
    write_directory(disk)
    path = file(last_log(disk))
    before = disk.read_file(path)
    change(disk, path, lambda data: data + bytes(37))
    steps, left = repair(disk)
    assert left == []
    assert steps == [f"{path}: cut off 37 bytes at {len(before)}"]
    assert disk.read_file(path) == before


def test_any_flipped_byte_of_a_segment_costs_at_most_its_batch(disk: SimulatedDisk) -> None:
    write_directory(disk)
    path = file(FIRST, ".log")
    data = disk.read_file(path)
    for position in range(91, 4 * 91, 5):
        disk.replace_file(path, flip(position, 0x55)(data))
        _, left = repair(disk, salvage=True)
        assert left == []
        check = DirectoryCheck(disk, PATH, CLUSTER, deep=True)
        assert [finding for finding in check.run() if finding.is_damage] == []
        lost = 0 if (position % 91) < 17 else 2
        assert sum(log.records for log in check.report.logs) == 160 - lost, position
        for name in disk.list_directory(f"{PATH}/t-0"):
            if name.endswith(".damaged"):
                disk.remove(file(name))


def test_nothing_is_taken_out_of_the_metadata_log(disk: SimulatedDisk) -> None:
    write_directory(disk)
    log = Log.open(disk, f"{PATH}/__cluster_metadata-0", SETTINGS, now_ms=NOW_MS)
    for _ in range(3):
        log.append_as_leader(batch(), 0, NOW_MS)
    log.close()
    path = f"{PATH}/__cluster_metadata-0/{FIRST}.log"
    change(disk, path, flip(-80))
    steps, left = repair(disk, salvage=True)
    assert steps[0].endswith("nothing is taken out of the metadata log")
    assert any(finding.path == path for finding in left)


@pytest.mark.parametrize("position", [3 * 60 + 40, 3 * 60 + 10], ids=["value", "length"])
def test_what_is_damaged_among_old_formats_costs_nothing_else(disk: SimulatedDisk, position: int) -> None:
    write_directory(disk)
    path = file(FIRST, ".log")
    batches = disk.read_file(path)
    old = b"".join(message(Record(None, b"value" * 5, (), NOW_MS, offset), 1) for offset in range(10))
    assert len(old) == 10 * 59
    disk.replace_file(path, flip(position)(old + batches[5 * 91 :]))
    repair(disk, salvage=True)
    kept = disk.read_file(path)
    assert kept.endswith(batches[5 * 91 :])
    assert kept.count(b"value" * 5) >= 9
