"""Faults of the disk: which operations on which files fail, on a real directory."""

from __future__ import annotations

import errno
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykbroker.control.faults.disk_faults import DiskRule
from pykbroker.control.faults.faults import Faults
from pykbroker.control.faults.plan import Taken
from pykbroker.storage.files.disk import OsDisk, OsDiskFile
from pykbroker.storage.files.errors import DiskFailed, NoRoom
from pykbroker.storage.files.faulty_disk import FaultyDisk


@pytest.mark.parametrize(
    ("options", "meant", "others"),
    [
        ({}, ["/d/a-0/0.log", "/d/x"], []),
        (
            {"topic": "a"},
            ["/d/a-0/0.log", "/d/a-12/x", f"/d/a-0.{'0' * 32}-delete/x"],
            ["/d/aa-0/x", "/d/a/x", "/d/a-b/x", "/tmp/a-0/data/b-0/x", "/tmp/a-0/data/meta.properties"],
        ),
        ({"topic": "a-*"}, ["/d/a-b-0/x"], ["/d/a-0/x"]),
        ({"path": "a-*"}, ["/d/a-0/0.log", "/d/a-b-0/x", "/d/a-x"], ["/d/b-0/a.log"]),
        ({"path": "*.log"}, ["/d/a-0/0.log"], ["/d/a-0/0.index"]),
        ({"path": "a-0/*.log"}, ["/d/a-0/0.log", "/a-0/1.log"], ["/d/a-0/0.index", "/d/aa-0/0.log"]),
        ({"path": "/d/one/"}, ["/d/one", "/d/one/a-0/0.log"], ["/d/onetwo"]),
        ({"path": "a-0/"}, ["/d/a-0", "/d/a-0/0.log"], ["/d/aa-0/0.log"]),
        ({"path": "/"}, ["/d/a-0", "/x"], []),
        ({"path": "/d/one"}, ["/d/one", "/d/one/a-0/0.log"], ["/d/onetwo", "/x/d/one/a"]),
        ({"path": "*.index", "topic": "a"}, ["/d/a-0/0.index"], ["/d/b-0/0.index", "/d/a-0/0.log"]),
    ],
)
def test_files_are_meant_by_pattern_and_by_topic(options: dict[str, Any], meant: list[str], others: list[str]) -> None:
    rule = Faults().add_disk({"error": "EIO", **options})
    assert [path for path in (*meant, *others) if rule.strikes("read", path)] == meant


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def disk(faults: Faults) -> FaultyDisk:
    return FaultyDisk(OsDisk(), Random(0), faults._disk_rules)


def test_a_full_disk_refuses_writes_alone_and_takes_them_again(
    tmp_path: Path, faults: Faults, disk: FaultyDisk
) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append([b"before"])
    rule = faults.add_disk({"error": "ENOSPC"})
    for write in (lambda: file.append([b"x"]), lambda: disk.replace_file(f"{tmp_path}/b", b"x")):
        with pytest.raises(NoRoom) as raised:
            write()
        assert raised.value.error.errno == errno.ENOSPC
    assert file.read_at(0, 10) == b"before"
    file.sync()
    disk.remove(f"{tmp_path}/none")
    faults.remove(rule)
    file.append([b" after"])
    assert file.read_at(0, 20) == b"before after"


@pytest.mark.parametrize(("error", "is_partial"), [("EIO", True), ("EROFS", False), ("EDQUOT", False)])
def test_a_write_leaves_a_part_of_itself_where_the_device_failed_and_nowhere_else(
    tmp_path: Path, faults: Faults, disk: FaultyDisk, error: str, is_partial: bool
) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    faults.add_disk({"error": error})
    with pytest.raises((DiskFailed, NoRoom)):
        file.append([b"x" * 1000])
    assert (file.size() > 0) == is_partial


def test_a_read_of_what_is_not_in_memory_counts_when_the_device_reads_it(
    tmp_path: Path, faults: Faults, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append([b"data"])
    rule = faults.add_disk({"error": "EIO", "op": "read", "nth": 3})
    assert file.read_cached(0, 4) == b"data"
    monkeypatch.setattr(OsDiskFile, "read_cached", lambda *_: None)
    assert file.read_cached(0, 4) is None
    assert file.read_at(0, 4) == b"data"
    assert rule.fitted == 2
    monkeypatch.undo()
    with pytest.raises(DiskFailed):
        file.read_cached(0, 4)


OPERATIONS: dict[str, Callable[[FaultyDisk, str], object]] = {
    "read": lambda disk, path: disk.read_file(path),
    "sync": lambda disk, path: disk.sync_directory(path.rpartition("/")[0]),
    "write": lambda disk, path: disk.rename(path, path),
    "delete": lambda disk, path: disk.remove(path),
}


@pytest.mark.parametrize("op", OPERATIONS)
def test_an_operation_fails_with_eio_and_others_do_not(
    tmp_path: Path, faults: Faults, disk: FaultyDisk, op: str
) -> None:
    path = f"{tmp_path}/a"
    (tmp_path / "a").write_bytes(b"data")
    rule = faults.add_disk({"error": "EIO", "op": op, "times": 1})
    for other, operation in OPERATIONS.items():
        if other != op:
            operation(disk, path)
            (tmp_path / "a").write_bytes(b"data")
    assert rule.fitted == 0
    with pytest.raises(DiskFailed):
        OPERATIONS[op](disk, path)
    assert rule.taken == 1
    assert rule.is_over
    OPERATIONS[op](disk, path)


def test_a_file_whose_reads_may_fail_is_not_sent_past_the_disk(
    tmp_path: Path, faults: Faults, disk: FaultyDisk
) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    assert file.fileno() is not None
    rule = faults.add_disk({"error": "EIO", "op": "read", "times": 1})
    assert file.fileno() is None
    with pytest.raises(DiskFailed):
        file.read_at(0, 1)
    assert file.fileno() is not None
    assert rule.taken == 1
    faults.add_disk({"error": "EIO", "op": "write"})
    assert file.fileno() is not None


def test_what_came_about_is_the_same_in_another_directory() -> None:
    def run(directory: str) -> list[Taken]:
        faults = Faults()
        rule = faults.add_disk({"error": "ENOSPC", "topic": "a"})
        for name in ("a-0/0.log", "b-0/0.log", "a-1/0.index"):
            rule.strikes("append", f"{directory}/{name}")
        return list(faults.plan.taken)

    first = run("/tmp/one")
    assert first == run("/data/other")
    assert [each.does for each in first] == ["ENOSPC: append a-0/0.log", "ENOSPC: append a-1/0.index"]


def test_threads_count_together() -> None:
    faults = Faults()
    rule = faults.add_disk({"error": "EIO", "every": 3})

    def strike(rule: DiskRule) -> int:
        return sum(rule.strikes("read", "/x") for _ in range(3000))

    with ThreadPoolExecutor(4) as threads:
        struck = sum(threads.map(strike, [rule] * 4))
    assert (rule.fitted, rule.taken, struck) == (12_000, 4_000, 4_000)


def test_chance_is_of_the_seed() -> None:
    def run(seed: int) -> list[bool]:
        faults = Faults()
        faults.set_seed(seed)
        rule = faults.add_disk({"error": "EIO", "chance": 0.5})
        return [rule.strikes("read", "/x") for _ in range(100)]

    assert run(1) == run(1) != run(2)
