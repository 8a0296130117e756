"""A place in the log that is not in memory is named, and nobody waits for the disk on the event loop."""

import os
from pathlib import Path

import pytest

from pykbroker.storage.files.disk import OsDisk, OsDiskFile
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.verification import NotVerified, PageRead
from tests.storage.batches import NOW_MS, batch, config, open_log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = open_log(OsDisk(), str(tmp_path / "t-0"), config(segment_bytes=1000, index_interval_bytes=0))
    for number in range(1000):
        log.append_as_leader(batch(value=b"%d" % number), 0, NOW_MS)
    return log


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No file is in memory; the paths of those that were asked for."""
    paths: list[str] = []

    def nothing(file: OsDiskFile, _position: int, _size: int) -> None:
        paths.append(file.path)

    monkeypatch.setattr(OsDiskFile, "read_cached", nothing)
    return paths


def test_what_is_in_memory_is_read_at_once(log: Log) -> None:
    assert log.read(10, 1, defer_checks=True).size


def test_a_place_on_the_disk_is_read_elsewhere_and_then_found(log: Log, uncached: list[str]) -> None:
    """Also where the system never admits that it has it: once is enough."""
    with pytest.raises(NotVerified) as deferred:
        log.read(10, 1, defer_checks=True)
    check = deferred.value.check
    assert isinstance(check, PageRead)
    check.run()
    check.accept()
    found = log.read(10, 1, defer_checks=True)
    assert found.read() == log.read(10, 1).read()
    with pytest.raises(NotVerified):
        log.read(10, 1, defer_checks=True)
    assert uncached


def test_the_latest_batches_need_no_look_at_a_file(log: Log, uncached: list[str]) -> None:
    assert log.read(999, 1, defer_checks=True).size
    assert not uncached


def test_bytes_behind_the_end_are_not_waited_for(tmp_path: Path) -> None:
    file = OsDisk().open(str(tmp_path / "file"), create=True)
    file.append([b"abc"])
    assert file.read_cached(1, 100) == b"bc"
    assert file.read_cached(3, 100) == b""


def test_a_file_that_was_put_out_of_the_page_cache(tmp_path: Path, tells_what_is_cached: bool) -> None:
    file = put_out(tmp_path / "file")
    if tells_what_is_cached:
        assert file.read_cached(500_000, 10) is None
    assert file.read_at(500_000, 10) == bytes(10)
    assert file.read_cached(500_000, 10) == bytes(10)


def put_out(path: Path) -> OsDiskFile:
    """A file of zeros that the page cache was asked to drop. The next look at it may have it read, without a wait."""
    file = OsDisk().open(str(path), create=True)
    file.append([bytes(1 << 20)])
    assert file.read_cached(500_000, 10) == bytes(10)
    file.sync()
    os.posix_fadvise(file.fileno() or -1, 0, 0, os.POSIX_FADV_DONTNEED)
    return file


@pytest.fixture
def tells_what_is_cached(tmp_path: Path) -> bool:
    """Whether the file system of the test's directory drops pages and says so: tmpfs does neither."""
    try:
        os.preadv(put_out(tmp_path / "probe").fileno() or -1, [bytearray(1)], 500_000, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
