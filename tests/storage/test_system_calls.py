"""What the real disk asks of the kernel: the same, in the same order, as what the recording disk writes down, and all
that was promised is durable in what a power cut would leave of it.
"""

import ast
import errno
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

import pytest

from pykbroker.storage.files.disk import OsDisk, OsDiskFile
from pykbroker.storage.files.errors import DiskFailed
from tests.storage.batches import NOW_MS, batch, open_log
from tests.storage.crash_life import Life
from tests.storage.crash_lives import draw
from tests.storage.crash_runs import RUNS
from tests.storage.crash_search import crashes
from tests.storage.os_calls import _CALLS, OsCalls, TracedDisk
from tests.storage.recording_disk import NameChange, Operation, Resize, Sync, SyncNames, Write

DRAWN_LIVES = 12

Calls = Iterator[OsCalls]


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    with OsCalls(str(tmp_path)).recorded() as calls:
        yield calls


def described(journal: Sequence[Operation]) -> list[object]:
    """The operations in words. The order within a group of syncs, or of removals, is nobody's business."""
    found: list[object] = []
    for kind, group in itertools.groupby(map(_described, journal), key=lambda each: each[0]):
        together = list(group)
        found += sorted(together) if kind in ("sync", "remove") else together
    return found


def _described(operation: Operation) -> tuple[str, str]:
    match operation:
        case Write(inode, position, data):
            return "write", f"{inode.number} at {position}: {data.hex()}"
        case Resize(inode, size):
            return "resize", f"{inode.number} to {size}"
        case Sync(inode):
            return "sync", f"file {inode.number}"
        case SyncNames(directory):
            return "sync", f"names of {directory.number}"
        case NameChange(changes):
            is_removal = len(changes) == 1 and changes[0][2] is None
            names = [(directory.number, name, node and node.number) for directory, name, node in changes]
            return "remove" if is_removal else "name", str(names)


Begin = Callable[..., Life]
LIVES: dict[str, Begin] = dict(RUNS) | {
    f"drawn {seed}": lambda seed=seed, **place: draw(f"a real disk {seed}", steps=40, **place)
    for seed in range(DRAWN_LIVES)
}


@pytest.mark.parametrize("name", LIVES)
def test_the_real_disk_does_what_the_recording_disk_writes_down(name: str, calls: OsCalls) -> None:
    real = LIVES[name](disk=TracedDisk(calls), path=f"{calls.trace.root}/var/data")
    in_memory = LIVES[name]()
    assert described(real.disk.journal) == described(in_memory.disk.journal)
    assert not calls.trace.violations
    for number, (at, promises) in enumerate(in_memory.promises):
        assert (at, promises.keys()) == (real.promises[number][0], real.promises[number][1].keys())


def test_nothing_changes_files_but_what_is_recorded() -> None:
    """A function of `os` that storage begins to use has to be recorded as well."""
    reading = {
        *("fstat", "stat", "pread", "preadv", "read", "lseek", "listdir", "statvfs", "strerror", "fspath", "cpu_count"),
        *("path", "makedirs", "environ", "sep", "getpid", "lstat", "readlink"),
        "utime",  # nobody promises times
    }
    used = set()
    for package in ("storage", "raft", "pykbroker/server/quorum"):
        for file in (Path(__file__).parents[2] / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                    used.add(node.attr)
    functions = {each for each in used if each.islower()}
    assert functions - reading <= _CALLS.keys()


# What the operations promise


def test_bytes_are_durable_after_a_sync_and_names_after_a_sync_of_their_directory(calls: OsCalls) -> None:
    disk, path = OsDisk(), calls.trace.root
    file = disk.open(f"{path}/f", create=True)
    file.append([b"one"])
    file.sync()
    assert calls.trace.durable_file(f"{path}/f") is None
    disk.sync_directory(path)
    file.append([b"two"])
    assert calls.trace.durable_file(f"{path}/f") == b"one"
    file.sync()
    disk.rename(f"{path}/f", f"{path}/g")
    assert calls.trace.durable_file(f"{path}/f") == b"onetwo"
    disk.sync_directory(path)
    assert calls.trace.durable_files() == {"g": b"onetwo"}
    file.truncate(3)
    assert calls.trace.durable_files() == {"g": b"onetwo"}
    file.sync()
    assert calls.trace.durable_files() == {"g": b"one"}


def test_a_replaced_file_is_durable_at_return_and_never_anything_but_old_or_new(calls: OsCalls) -> None:
    disk, path = OsDisk(), f"{calls.trace.root}/f"
    disk.replace_file(path, b"old")
    assert calls.trace.durable_file(path) == b"old"
    disk.replace_file(path, b"new")
    assert calls.trace.durable_files() == {"f": b"new"}
    disk.replace_file(path, b"lost", sync=False)
    assert calls.trace.durable_file(path) == b"new"
    assert calls.trace.violations == [f"{path}.tmp is renamed to f before its bytes are synced"]


def test_a_file_with_two_names_is_copied_durably_before_it_changes(calls: OsCalls, tmp_path: Path) -> None:
    disk, path = OsDisk(), f"{calls.trace.root}/f"
    file = disk.open(path, create=True)
    file.append([b"both"])
    file.sync()
    disk.sync_directory(calls.trace.root)
    other = tmp_path.parent / f"{tmp_path.name} other"
    with mock.patch.object(calls, "_is_traced", return_value=False):
        os.link(path, other)
    file.truncate(2)
    assert calls.trace.durable_files() == {"f": b"bo"}
    assert not calls.trace.violations
    file.append([b"th!"])
    file.sync()
    assert calls.trace.durable_files() == {"f": b"both!"}
    assert other.read_bytes() == b"both"


def test_a_synced_volume_has_all_files_and_names(calls: OsCalls) -> None:
    disk, path = OsDisk(), calls.trace.root
    disk.make_directory(f"{path}/d/e")
    for name in ("a", "d/e/b"):
        disk.open(f"{path}/{name}", create=True).append([name.encode()])
    if disk.sync_volume(path):
        assert calls.trace.durable_files() == {"a": b"a", "d/e/b": b"d/e/b"}


def test_a_preallocated_file_is_traced_as_it_is(calls: OsCalls) -> None:
    disk, path = OsDisk(), f"{calls.trace.root}/f"
    file = disk.open(path, create=True)
    file.preallocate(10)
    file.append([b"one"])
    file.append([b"two"])
    file.sync()
    disk.sync_directory(calls.trace.root)
    assert calls.trace.durable_file(path) == b"onetwo" + bytes(4) == disk.read_file(path)
    file.truncate(6)
    file.append([b"!"])
    file.sync()
    assert calls.trace.durable_file(path) == b"onetwo!" == disk.read_file(path)


# Syncs that fail


def test_nothing_is_synced_or_written_again_where_a_sync_has_failed(calls: OsCalls) -> None:
    root = calls.trace.root
    log = open_log(TracedDisk(calls), f"{root}/t-0")
    log.append_as_leader(batch(), 0, NOW_MS)
    log.flush()
    log.append_as_leader(batch(), 0, NOW_MS)
    calls.fail = lambda path: OSError(errno.EIO, "Input/output error") if path.endswith(".log") else None
    with pytest.raises(DiskFailed, match=r"cannot sync .*Input/output error"):
        log.flush()
    calls.fail = lambda path: None
    for _ in range(2):
        with pytest.raises(DiskFailed):
            log.flush()
    log.abandon()
    log.flush()
    assert not calls.trace.violations


def test_who_syncs_again_after_a_failure_is_found(calls: OsCalls) -> None:
    file = OsDisk().open(f"{calls.trace.root}/f", create=True)
    calls.fail = lambda path: OSError(errno.EIO, "Input/output error")
    for _ in range(2):
        with pytest.raises(DiskFailed):
            file.sync()
    assert calls.trace.violations == [f"{calls.trace.root}/f is synced, and a sync of it has failed"]


# Planted bugs


def _forgets_sync(self: OsDiskFile) -> None:
    pass


def _syncs_something_else(self: OsDiskFile) -> None:
    descriptor = os.open(os.path.dirname(self.path), os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _syncs_a_new_descriptor(self: OsDiskFile) -> None:
    os.close(self._descriptor)
    self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    os.fsync(self._descriptor)


def _writes_once_more_after_sync(self: OsDiskFile) -> None:
    size = max(os.fstat(self._descriptor).st_size, 1)
    last = os.pread(self._descriptor, 1, size - 1)
    os.ftruncate(self._descriptor, size - 1)
    os.fdatasync(self._descriptor)
    os.writev(self._descriptor, [last])


def _replaces(*, syncs_data: bool = True, syncs_names: str = "after") -> Callable[..., None]:
    def replace_file(self: OsDisk, path: str, data: bytes, *, sync: bool = True) -> None:
        file = self.open(path + ".tmp", create=True)
        file.truncate(0)
        file.append([data])
        if sync and syncs_data:
            file.sync()
        if sync and syncs_names == "before":
            self.sync_directory(os.path.dirname(path))
        self.rename(path + ".tmp", path)
        if sync and syncs_names == "after":
            self.sync_directory(os.path.dirname(path))
        file.close()

    return replace_file


def _forgets_directory(self: OsDisk, path: str) -> None:
    pass


def _forgets_volume(self: OsDisk, path: str) -> bool:
    return True


BUGS: dict[str, tuple[type, str, Callable[..., object], str]] = {
    "a sync does nothing": (OsDiskFile, "sync", _forgets_sync, "appends"),
    "a sync is of the directory": (OsDiskFile, "sync", _syncs_something_else, "appends"),
    "a sync goes through a new descriptor": (OsDiskFile, "sync", _syncs_a_new_descriptor, "appends"),
    "a sync comes before the last write": (OsDiskFile, "sync", _writes_once_more_after_sync, "appends"),
    "a replaced file is not synced": (OsDisk, "replace_file", _replaces(syncs_data=False), "appends"),
    "a directory is synced before the rename": (OsDisk, "replace_file", _replaces(syncs_names="before"), "deletions"),
    "a replaced file's name is not synced": (OsDisk, "replace_file", _replaces(syncs_names="never"), "deletions"),
    "a directory is not synced": (OsDisk, "sync_directory", _forgets_directory, "appends"),
    "a volume is not synced": (OsDisk, "sync_volume", _forgets_volume, "restarts"),
}


def _findings(calls: OsCalls, name: str, most_per_cut: int) -> Iterator[str]:
    closes_together = {"closes_together": True} if name == "restarts" else {}
    life = RUNS[name](disk=TracedDisk(calls), path=f"{calls.trace.root}/var/data", **closes_together)
    yield from calls.trace.violations
    for crash in crashes(name, life, most_per_cut=most_per_cut):
        try:
            crash.check(again=False)
        except Exception as failure:
            yield f"{failure!r}"


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_of_the_real_disk_is_found(bug: str, calls: OsCalls) -> None:
    kind, name, wrong, run = BUGS[bug]
    with mock.patch.object(kind, name, wrong):
        assert next(_findings(calls, run, 3), None) is not None


@pytest.mark.parametrize("name", ["appends", "deletions", "restarts"])
def test_every_crash_of_the_real_disk_leaves_what_was_promised(name: str, calls: OsCalls) -> None:
    assert list(_findings(calls, name, 1)) == []
