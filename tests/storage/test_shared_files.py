"""Files with two names: whoever changes one has bytes of its own, and the other name keeps what it had."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from pykbroker.storage.files import shared_files
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import DiskFailed, NoRoom
from pykbroker.storage.files.shared_files import clones, copy_front, share
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk

DISKS = pytest.mark.parametrize("disk", [OsDisk(), UnsyncedDisk()], ids=["synced", "unsynced"])


def shared(tmp_path: Path, data: bytes = b"both") -> tuple[Path, Path]:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(data)
    assert share(str(one), str(other))
    assert os.path.samefile(one, other)
    return one, other


@DISKS
def test_an_append_leaves_the_other_name_alone(disk: OsDisk, tmp_path: Path) -> None:
    one, other = shared(tmp_path)
    file = disk.open(str(one))
    file.append([b"!"])
    file.append([b"?"])
    assert (one.read_bytes(), other.read_bytes()) == (b"both!?", b"both")
    assert file.read_at(0, 10) == b"both!?"
    assert os.path.samestat(os.fstat(file.fileno() or 0), one.stat())
    assert [each.name for each in tmp_path.iterdir() if each not in (one, other)] == []


@DISKS
@pytest.mark.parametrize("size", [0, 2, 4, 6])
def test_a_truncation_leaves_the_other_name_alone(disk: OsDisk, tmp_path: Path, size: int) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    file = disk.open(str(one), create=True)
    file.append([b"both"])
    share(str(one), str(other))  # behind the opening of the file
    file.truncate(size)
    file.append([b"!"])
    assert (one.read_bytes(), other.read_bytes()) == (b"both\0\0"[:size] + b"!", b"both")


def test_who_reads_the_file_meanwhile_goes_on(tmp_path: Path) -> None:
    one, _ = shared(tmp_path)
    disk = OsDisk()
    file, reader = disk.open(str(one)), os.open(one, os.O_RDONLY)
    descriptor = file.fileno()
    file.append([b"!"])
    assert file.fileno() == descriptor
    assert os.pread(reader, 10, 0) == b"both"
    os.close(reader)


def test_the_last_name_is_not_copied(tmp_path: Path) -> None:
    one, other = shared(tmp_path)
    file = OsDisk().open(str(one))
    other.unlink()
    inode = one.stat().st_ino
    file.append([b"!"])
    assert one.stat().st_ino == inode


def test_a_file_that_was_renamed_since_it_was_opened_is_copied_where_it_is(tmp_path: Path) -> None:
    one, other = shared(tmp_path)
    file = OsDisk().open(str(one))
    moved = one.rename(tmp_path / "moved")
    file.append([b"!"])
    assert (moved.read_bytes(), other.read_bytes(), one.exists()) == (b"both!", b"both", False)


def test_a_file_without_a_name_that_is_shared_is_not_changed(tmp_path: Path) -> None:
    one, other = shared(tmp_path)
    share(str(other), str(tmp_path / "third"))
    file = OsDisk().open(str(one))
    one.unlink()
    with pytest.raises(DiskFailed, match="cannot copy"):
        file.append([b"!"])
    assert other.read_bytes() == b"both"


def test_a_copy_that_finds_no_room_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = shared(tmp_path)
    file = OsDisk().open(str(one))

    def refuse(read: int, write: int, size: int | None) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shared_files, "_copy", refuse)
    with pytest.raises(NoRoom):
        file.append([b"!"])
    monkeypatch.undo()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one", "other"]
    file.append([b"!"])
    assert (one.read_bytes(), other.read_bytes()) == (b"both!", b"both")


def test_a_copy_for_which_there_is_no_descriptor_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended then must not go to the bytes that the other name has."""
    one, other = shared(tmp_path)
    file = OsDisk().open(str(one))
    open_file = os.open

    def refuse(path: str, flags: int, mode: int = 0o777) -> int:
        if path == str(tmp_path):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NoRoom):
        file.append([b"!"])
    monkeypatch.undo()
    file.append([b"?"])
    assert (one.read_bytes(), other.read_bytes()) == (b"both?", b"both")


def test_a_copy_whose_name_may_be_lost_is_a_broken_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for want of room: to try again would change what the other name has."""
    one, other = shared(tmp_path)
    file = OsDisk().open(str(one))

    def sync(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), tmp_path.stat()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", sync)
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(DiskFailed, match="cannot copy"):
        file.append([b"!"])
    assert len(os.listdir("/proc/self/fd")) == opened
    assert (one.read_bytes(), other.read_bytes()) == (b"both", b"both")


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EMLINK, errno.EPERM])
def test_what_cannot_be_shared_is_copied_with_its_times(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"both")
    os.utime(one, (1000, 2000))
    assert not share(str(one), str(other))
    assert not os.path.samefile(one, other)
    assert (other.read_bytes(), other.stat().st_mtime) == (b"both", 2000)


def test_a_failure_that_is_none_of_sharing_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        share(str(tmp_path / "none"), str(tmp_path / "other"))


def test_the_front_of_a_file_is_copied(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_bytes(b"both")
    copy_front(str(one), str(tmp_path / "two"), 2)
    assert (tmp_path / "two").read_bytes() == b"bo"
    with pytest.raises(OSError, match="ends at 4"):
        copy_front(str(one), str(tmp_path / "five"), 5)


def test_a_clone_is_no_longer_than_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def clone(write: int, request: int, read: int) -> None:
        os.write(write, os.pread(read, 100, 0))

    monkeypatch.setattr(fcntl, "ioctl", clone)
    one = tmp_path / "one"
    one.write_bytes(b"both")
    copy_front(str(one), str(tmp_path / "two"), 2)
    assert (tmp_path / "two").read_bytes() == b"bo"
    with pytest.raises(OSError, match="ends at 4"):
        copy_front(str(one), str(tmp_path / "five"), 5)


def test_whether_bytes_are_shared_leaves_nothing(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_bytes(b"both")
    assert clones(str(one), str(tmp_path)) in (True, False)
    assert [each.name for each in tmp_path.iterdir()] == ["one"]
