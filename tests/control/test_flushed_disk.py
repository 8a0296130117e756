"""A power cut takes what was not flushed, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykbroker.control.nodes.flushed_disk import FlushedDisk
from pykbroker.storage.files.errors import DiskFailed
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk


@pytest.fixture
def disk() -> FlushedDisk:
    return FlushedDisk(UnsyncedDisk())


def test_bytes_behind_the_last_sync_go(disk: FlushedDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"flushed ", b"too "])
    file.sync()
    file.append([b"lost"])
    assert disk.unflushed_bytes == 4
    assert disk.cut_power() == 4
    assert disk.read_file(f"{tmp_path}/f") == b"flushed too "
    assert disk.unflushed_bytes == 0


def test_a_file_of_before_keeps_what_it_had(disk: FlushedDisk, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old ")
    disk.open(f"{tmp_path}/f").append([b"new"])
    disk.cut_power()
    assert (tmp_path / "f").read_bytes() == b"old "


def test_names_stay_and_files_keep_their_flushes_under_new_ones(disk: FlushedDisk, tmp_path: Path) -> None:
    disk.make_directory(f"{tmp_path}/d")
    one, other = disk.open(f"{tmp_path}/d/1", create=True), disk.open(f"{tmp_path}/d/2", create=True)
    for file in (one, other):
        file.append([b"kept"])
        file.sync()
        file.append([b"lost"])
    disk.rename(f"{tmp_path}/d/1", f"{tmp_path}/d/3")
    disk.rename(f"{tmp_path}/d", f"{tmp_path}/e")
    other.append([b"lost, too"])
    one.sync()
    disk.cut_power()
    assert (tmp_path / "e" / "3").read_bytes() == b"keptlost"
    assert (tmp_path / "e" / "2").read_bytes() == b"kept"


def test_what_is_gone_does_not_come_back(disk: FlushedDisk, tmp_path: Path) -> None:
    disk.make_directory(f"{tmp_path}/d")
    for name in ("f", "d/f", "d/g"):
        disk.open(f"{tmp_path}/{name}", create=True).append([b"bytes"])
    disk.remove(f"{tmp_path}/f")
    disk.remove_directory(f"{tmp_path}/d")
    assert disk.unflushed_bytes == 0
    disk.cut_power()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_replaced_without_a_sync_is_empty(disk: FlushedDisk, tmp_path: Path) -> None:
    disk.replace_file(f"{tmp_path}/careful", b"bytes")
    disk.replace_file(f"{tmp_path}/careless", b"bytes", sync=False)
    disk.cut_power()
    assert disk.read_file(f"{tmp_path}/careful") == b"bytes"
    assert disk.read_file(f"{tmp_path}/careless") == b""


def test_a_preallocated_file_has_zeros_again(disk: FlushedDisk, tmp_path: Path) -> None:
    file = disk.open(f"{tmp_path}/f", create=True)
    file.preallocate(10)
    file.append([b"abc"])
    file.sync()
    file.append([b"def"])
    disk.cut_power()
    assert disk.read_file(f"{tmp_path}/f") == b"abc" + bytes(7)


def test_the_whole_volume_is_flushed_at_once(disk: FlushedDisk, tmp_path: Path) -> None:
    disk.open(f"{tmp_path}/f", create=True).append([b"bytes"])
    assert disk.sync_volume(str(tmp_path))
    disk.cut_power()
    assert disk.read_file(f"{tmp_path}/f") == b"bytes"


def test_open_files_end_with_the_power_and_the_machine_starts_anew(disk: FlushedDisk, tmp_path: Path) -> None:
    file, before = disk.open(f"{tmp_path}/f", create=True), disk.boot_id()
    disk.cut_power()
    with pytest.raises(DiskFailed, match="the power was cut"):
        file.append([b"bytes"])
    with pytest.raises(DiskFailed, match="the power was cut"):
        file.sync()
    assert (tmp_path / "f").read_bytes() == b""
    once = disk.boot_id()
    disk.cut_power()
    assert len({before, once, disk.boot_id()}) == 3
    assert disk.boot_id() == disk.boot_id()


STEPS = st.lists(st.tuples(st.sampled_from(["append", "sync", "truncate", "reopen"]), st.integers(0, 20)), max_size=12)


@given(STEPS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_leaves_what_was_flushed(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    path = f"{tmp_path}/f"
    (tmp_path / "f").unlink(missing_ok=True)
    disk = FlushedDisk(UnsyncedDisk())
    file, data, flushed = disk.open(path, create=True), b"", 0
    numbers: Iterator[int] = iter(range(1, 1000))
    for step, size in steps:
        match step:
            case "append":
                bytes_ = bytes([next(numbers) % 256]) * size
                file.append([bytes_])
                data += bytes_
            case "sync":
                file.sync()
                flushed = len(data)
            case "truncate":
                data = data[: min(size, len(data))]
                file.truncate(len(data))
                flushed = min(flushed, len(data))
            case _:
                file.close()
                file = disk.open(path)
    disk.cut_power()
    assert (tmp_path / "f").read_bytes() == data[:flushed]


def test_a_sync_beside_appends_flushes_no_more_than_was_there_when_it_began(
    disk: FlushedDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"1234"])
    begun, go_on = threading.Event(), threading.Event()
    inner_sync = file._file.sync

    def slow_sync() -> None:
        begun.set()
        assert go_on.wait(10)
        inner_sync()

    monkeypatch.setattr(type(file._file), "sync", lambda _: slow_sync())
    thread = threading.Thread(target=file.sync)
    thread.start()
    assert begun.wait(10)
    file.append([b"5678"])
    go_on.set()
    thread.join()
    assert disk.unflushed_bytes == 4
