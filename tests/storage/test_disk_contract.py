"""What storage expects of a disk, the same for the real one and the simulated one."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest

from pykbroker.sim.disk import SimulatedDisk
from pykbroker.sim.process import ProcessDied
from pykbroker.sim.process_disk import ProcessDisk
from pykbroker.storage.files.disk import Disk, OsDisk, OsDiskFile
from pykbroker.storage.files.errors import DirectoryLocked, DiskFailed, NoRoom
from pykbroker.storage.files.gathered_writes import write_all
from tests.storage.full_system_calls import full_after

DiskAndPath = tuple[Disk, str]


def test_append_and_read_back(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/a", create=True)
    file.append([b"one", memoryview(b"two"), bytearray(b"three")])
    file.append([b"four"])
    assert file.size() == 15
    assert file.read_at(0, 100) == b"onetwothreefour"
    assert file.read_at(3, 3) == b"two"
    assert file.read_at(15, 10) == b""
    assert [file.read_cached(position, 3) for position in (3, 14, 15)] == [b"two", b"r", b""], "it was just written"
    assert file.path == f"{path}/a"


def test_more_parts_than_a_system_call_takes_are_one_append(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    parts = [b"%06d" % number for number in range(5000)]
    file = disk.open(f"{path}/a", create=True)
    file.append(parts[:1])
    file.append(parts[1:])
    assert disk.read_file(f"{path}/a") == b"".join(parts)
    preallocated = disk.open(f"{path}/b", create=True)
    preallocated.preallocate(30_010)
    preallocated.append(parts[:1])
    preallocated.append(parts[1:])
    assert disk.read_file(f"{path}/b") == b"".join(parts) + bytes(10)


def test_long_parts_and_empty_ones_are_one_append(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    parts = [b"", bytes(200_000), b"", b"between", *[b""] * 2000, b"x" * 100_000, b""]
    file = disk.open(f"{path}/a", create=True)
    file.append(parts)
    file.append([])
    file.append([b"", b""])
    assert disk.read_file(f"{path}/a") == b"".join(parts)


def test_a_turn_is_for_one_thread_at_a_time(either_disk: DiskAndPath) -> None:
    turn, order = either_disk[0].turn(), []

    def follow() -> None:
        with turn:
            order.append("second")

    thread = threading.Thread(target=follow)
    with turn:
        assert turn.locked()
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert not turn.locked()


def test_open_again_sees_the_bytes_and_appends_behind_them(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    disk.open(f"{path}/a", create=True).append([b"one"])
    again = disk.open(f"{path}/a", create=True)
    again.append([b"two"])
    assert disk.read_file(f"{path}/a") == b"onetwo"


def test_truncate_shortens_and_lengthens_with_zeros(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/a", create=True)
    file.append([b"abcdef"])
    file.truncate(3)
    file.append([b"X"])
    assert file.read_at(0, 10) == b"abcX"
    file.truncate(6)
    assert file.read_at(0, 10) == b"abcX\0\0"


def test_a_preallocated_file_takes_appends_before_its_end(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/a", create=True)
    file.preallocate(10)
    assert file.size() == 0
    file.append([b"one", b"two"])
    assert file.size() == 6
    assert disk.read_file(f"{path}/a") == b"onetwo" + bytes(4)
    assert disk.open(f"{path}/a").size() == 10
    file.append([b"three"])
    assert file.size() == 11
    assert disk.read_file(f"{path}/a") == b"onetwothree"


def test_a_preallocated_file_that_was_cut_grows_at_its_end(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/a", create=True)
    file.preallocate(10)
    file.append([b"one"])
    file.truncate(2)
    assert file.size() == 2
    file.append([b"two"])
    assert disk.read_file(f"{path}/a") == b"ontwo"


def test_data_ends_before_zeros_that_were_never_written(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/a", create=True)
    assert file.end_of_data() == 0
    file.preallocate(10_000_000)
    assert file.end_of_data() == 0
    file.append([b"data" * 5000])
    assert 20_000 <= file.end_of_data() < 100_000
    assert 20_000 <= disk.open(f"{path}/a").end_of_data() < 100_000
    file.truncate(20_000)
    assert file.end_of_data() == 20_000
    file.append([b"more"])
    assert disk.read_file(f"{path}/a").endswith(b"datamore")


def test_a_missing_file_is_not_opened_for_reading(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    for operation in (disk.open, disk.read_file):
        with pytest.raises(DiskFailed) as failed:
            operation(f"{path}/missing")
        assert failed.value.error.errno == errno.ENOENT
        assert "missing: No such file or directory" in str(failed.value)


def test_names(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    disk.make_directory(f"{path}/d/e")
    disk.make_directory(f"{path}/d/e")
    disk.open(f"{path}/d/b", create=True)
    disk.open(f"{path}/d/a", create=True)
    assert disk.list_directory(f"{path}/d") == ["a", "b", "e"]
    assert disk.is_directory(f"{path}/d/e")
    assert not disk.is_directory(f"{path}/d/a")
    assert disk.exists(f"{path}/d/a")
    assert not disk.exists(f"{path}/d/a/b")
    disk.remove(f"{path}/d/a")
    disk.remove(f"{path}/d/a")
    assert disk.list_directory(f"{path}/d") == ["b", "e"]
    disk.remove_directory(f"{path}/d")
    disk.remove_directory(f"{path}/d")
    assert disk.list_directory(path) == []
    with pytest.raises(DiskFailed):
        disk.list_directory(f"{path}/d")


def test_a_file_knows_when_it_was_written_to(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/a", create=True)
    created = disk.modified_ms(f"{path}/a")
    file.append([b"data"])
    written = disk.modified_ms(f"{path}/a")
    assert created is not None
    assert written is not None
    assert abs(created - time.time() * 1000) < 60_000
    assert written >= created
    with pytest.raises(DiskFailed):
        disk.modified_ms(f"{path}/missing")


def test_rename_replaces_a_file_and_moves_a_directory(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    for name in "ab":
        disk.open(f"{path}/{name}", create=True).append([name.encode()])
    disk.rename(f"{path}/a", f"{path}/b")
    assert disk.read_file(f"{path}/b") == b"a"
    assert not disk.exists(f"{path}/a")
    disk.make_directory(f"{path}/d")
    disk.open(f"{path}/d/f", create=True)
    disk.rename(f"{path}/d", f"{path}/e")
    assert disk.list_directory(path) == ["b", "e"]
    assert disk.exists(f"{path}/e/f")
    with pytest.raises(DiskFailed):
        disk.rename(f"{path}/nothing", f"{path}/x")


def test_replace_file_is_all_or_nothing_to_readers(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    disk.replace_file(f"{path}/f", b"old")
    opened = disk.open(f"{path}/f")
    disk.replace_file(f"{path}/f", b"the new one", sync=False)
    assert opened.read_at(0, 100) == b"old"
    assert disk.read_file(f"{path}/f") == b"the new one"
    assert disk.list_directory(path) == ["f"]


def test_sync_and_sync_directory_return(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/f", create=True)
    file.append([b"x"])
    file.sync()
    disk.sync_directory(path)
    file.close()
    file.close()


def test_what_was_written_is_asked_for_behind_a_sync_of_the_volume(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/f", create=True)
    file.append([b"x"])
    disk.sync_volume(path)
    file.check_written()
    file.close()
    with pytest.raises(DiskFailed):
        file.check_written()


def test_asking_for_what_was_written_flushes_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsDisk().open(f"{tmp_path}/f", create=True)
    file.append([b"x"])
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    file.check_written()
    assert len(synced) == (sys.platform != "linux")
    monkeypatch.setattr("pykbroker.storage.files.disk._sync_file_range", None)
    file.check_written()
    assert synced[-1:] == [file.fileno()], "nothing else would tell"


def test_a_volume_is_synced_or_says_that_it_cannot_be(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    disk.open(f"{path}/f", create=True).append([b"x"])
    assert disk.sync_volume(path) is (sys.platform == "linux" or not isinstance(disk, OsDisk))
    with pytest.raises(DiskFailed):
        disk.sync_volume(f"{path}/missing")


def test_space_is_that_of_a_directorys_volume(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    space = disk.space(path)
    assert 0 < space.usable_bytes <= space.total_bytes
    with pytest.raises(DiskFailed, match=r"cannot look at .*missing: No such file or directory"):
        disk.space(f"{path}/missing")


def test_a_closed_file_fails(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    file = disk.open(f"{path}/f", create=True)
    file.close()
    with pytest.raises(DiskFailed):
        file.append([b"x"])
    with pytest.raises(DiskFailed):
        file.read_at(0, 1)


def test_lock_keeps_a_second_owner_out_until_it_is_released(either_disk: DiskAndPath) -> None:
    disk, path = either_disk
    lock = disk.lock(f"{path}/.lock")
    with pytest.raises(DirectoryLocked, match="in use by another process"):
        disk.lock(f"{path}/.lock")
    lock.release()
    lock.release()
    disk.lock(f"{path}/.lock").release()


# The real disk alone


def test_a_lock_file_that_may_not_be_opened_is_not_told_as_a_lock_of_somebody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may open every file: the system call is made to refuse."""
    path, open_file = str(tmp_path / ".lock"), os.open

    def refuse(name: str, *arguments: int) -> int:
        if name == path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(name, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DiskFailed, match=r"cannot lock .*\.lock: Permission denied"):
        OsDisk().lock(path)
    monkeypatch.undo()
    OsDisk().lock(path).release()


def test_a_file_in_the_place_of_a_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskFailed, match=r"cannot create .*file: a file has that name"):
        OsDisk().make_directory(str(tmp_path / "file"))


PROBE = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(3)
"""


def test_lock_is_one_that_other_processes_see_as_java_does(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")

    def probe() -> int:
        return subprocess.run([sys.executable, "-c", PROBE, path], check=False).returncode

    lock = OsDisk().lock(path)
    assert probe() == 3
    with pytest.raises(DirectoryLocked):
        OsDisk().lock(path)
    assert probe() == 3, "a refused attempt in the same process must not give up the lock"
    lock.release()
    assert probe() == 0


def test_a_write_that_is_cut_short_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsDisk().open(str(tmp_path / "f"), create=True)
    real_writev = os.writev
    monkeypatch.setattr(os, "writev", lambda descriptor, parts: real_writev(descriptor, [bytes(parts[0])[:2]]))
    file.append([b"first", b"second"])
    assert file.read_at(0, 100) == b"firstsecond"


def test_a_write_that_fails_half_way_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsDisk().open(str(tmp_path / "f"), create=True)
    file.append([b"before"])
    monkeypatch.setattr(os, "writev", full_after(os.writev, 2))
    with pytest.raises(NoRoom, match="No space left on device"):
        file.append([b"first", b"second"])
    assert file.read_at(0, 100) == b"before"


def test_a_write_of_many_parts_that_fails_half_way_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsDisk().open(str(tmp_path / "f"), create=True)
    file.append([b"before"])
    preallocated = OsDisk().open(str(tmp_path / "p"), create=True)
    preallocated.preallocate(10)
    preallocated.append([b"before"])
    monkeypatch.setattr(os, "writev", full_after(os.writev, 2000))
    monkeypatch.setattr(os, "pwritev", full_after(os.pwritev, 2000))
    for each in (file, preallocated):
        with pytest.raises(NoRoom, match="No space left on device"):
            each.append([b"x"] * 3000)
    assert OsDisk().read_file(str(tmp_path / "f")) == b"before"
    assert OsDisk().read_file(str(tmp_path / "p")) == b"before" + bytes(4)
    assert preallocated.size() == 6


def test_a_file_stays_open_while_somebody_holds_it(tmp_path: Path) -> None:
    file = OsDisk().open(str(tmp_path / "f"), create=True)
    assert isinstance(file, OsDiskFile)
    descriptor = file.fileno()
    assert descriptor is not None
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


# The simulated disk alone


def test_crash_keeps_what_was_synced() -> None:
    for seed in range(50):
        disk = SimulatedDisk(Random(seed))
        file = disk.open("/f", create=True)
        file.append([b"synced"])
        file.sync()
        disk.sync_directory("/")
        file.append([b"not synced"])
        disk.crash()
        assert disk.read_file("/f").startswith(b"synced")
        with pytest.raises(DiskFailed):
            file.read_at(0, 1)


def test_crash_keeps_all_of_a_volume_that_was_synced() -> None:
    for seed in range(50):
        disk = SimulatedDisk(Random(seed))
        disk.make_directory("/d/e")
        for name in ("/a", "/d/e/b"):
            disk.open(name, create=True).append([b"synced"])
        disk.sync_volume("/")
        disk.open("/a").append([b"not synced"])
        disk.crash()
        assert disk.read_file("/a").startswith(b"synced")
        assert disk.read_file("/d/e/b") == b"synced"


def outcomes(prepare: str) -> set[bytes | None]:
    found: set[bytes | None] = set()
    for seed in range(200):
        disk = SimulatedDisk(Random(seed))
        disk.replace_file("/f", b"old")
        file = disk.open("/f")
        match prepare:
            case "append":
                file.append([b"new"])
            case "replace":
                disk.replace_file("/f", b"new", sync=False)
            case "replace with sync":
                disk.replace_file("/f", b"new")
            case "rename":
                disk.rename("/f", "/g")
            case "remove":
                disk.remove("/f")
        disk.crash()
        if prepare == "rename":
            assert disk.list_directory("/") in (["f"], ["g"]), "a rename has happened or not"
        found.add(disk.read_file("/f") if disk.exists("/f") else None)
    return found


def test_crash_draws_every_outcome_that_a_machine_may_have() -> None:
    appended = outcomes("append")
    assert {b"old", b"oldn", b"oldne", b"oldnew", b"old\0"} <= appended
    assert all(data is not None and data.startswith(b"old") for data in appended)
    replaced = outcomes("replace")
    assert {b"old", b"", b"new"} <= replaced
    assert outcomes("replace with sync") == {b"new"}
    assert outcomes("rename") == {b"old", None}
    assert outcomes("remove") == {b"old", None}


def test_a_full_disk_fails_and_changes_nothing() -> None:
    disk = SimulatedDisk(Random(1), free_bytes=5)
    file = disk.open("/f", create=True)
    file.append([b"abc"])
    with pytest.raises(NoRoom, match="No space left on device"):
        file.append([b"def"])
    assert file.read_at(0, 10) == b"abc"
    assert disk.free_bytes == 2
    disk.free_bytes = 100_000
    preallocated = disk.open("/p", create=True)
    preallocated.preallocate(150_000)
    preallocated.append([b"abc"])
    with pytest.raises(NoRoom, match="No space left on device"):
        preallocated.append([bytes([1]) * 120_000])
    assert (preallocated.size(), preallocated.end_of_data()) == (3, 3)
    assert disk.read_file("/p") == b"abc" + bytes(149_997)
    assert disk.free_bytes == 99_997


def test_a_process_that_dies_between_two_system_calls_leaves_a_part_of_an_append() -> None:
    disk = SimulatedDisk(Random(1))

    def die() -> None:
        process.is_dead = True

    process = ProcessDisk(disk, die)
    file = process.open("/f", create=True)
    process.dies_at = process.changes + 2
    with pytest.raises(ProcessDied):
        file.append([b"x"] * 5000)
    assert disk.read_file("/f") == b"x" * 2048


def test_no_simulated_system_call_takes_more_than_linux(
    either_disk: DiskAndPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = either_disk
    parts = [b"x"] * 1025
    for module in ("pykbroker.sim.disk", "tests.storage.recording_disk"):
        monkeypatch.setattr(f"{module}.write_all", lambda parts, write: write(parts, 0))
    monkeypatch.setattr("pykbroker.storage.files.disk.IOV_MAX", 2000)
    with pytest.raises(DiskFailed, match="Invalid argument"):
        disk.open(f"{path}/a", create=True).append(parts)


def test_a_write_that_writes_nothing_does_not_go_on_for_ever() -> None:
    with pytest.raises(OSError, match="nothing was written"):
        write_all([b"x"], lambda parts, written: 0)


def test_crash_releases_locks() -> None:
    disk = SimulatedDisk(Random(1))
    disk.lock("/.lock")
    disk.crash()
    disk.lock("/.lock")


def test_boot_id_is_that_of_the_machine_not_of_the_process(either_disk: DiskAndPath) -> None:
    disk, _ = either_disk
    assert disk.boot_id() == disk.boot_id()
    if isinstance(disk, SimulatedDisk):
        before = disk.boot_id()
        disk.crash()
        assert disk.boot_id() != before
