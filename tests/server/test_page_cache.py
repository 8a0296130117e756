"""What lies on the disk only is noticed without a wait, and a thread brings it into memory."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykbroker.server.network.page_cache import read_cached, uncached_extent, warm

SIZE = 3 << 20


@pytest.fixture
def evicted(tmp_path: Path) -> Iterator[int]:
    """The descriptor of a file that is on the disk and not in memory: tmpfs has none, and is skipped."""
    path = tmp_path / "segment"
    path.write_bytes(bytes(SIZE))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if uncached_extent(descriptor, 0, SIZE) is None:
            pytest.skip("the file system of the temporary directory drops no pages, or does not say so")
        yield descriptor
    finally:
        os.close(descriptor)


def test_a_region_is_in_memory_once_it_was_warmed(evicted: int) -> None:
    warm(evicted, 1_000_000, 2_000_000)
    assert uncached_extent(evicted, 1_000_000, 2_000_000) is None
    assert read_cached(evicted, 1_000_000, 1_000_000) == bytes(1_000_000)


def test_warming_ends_where_the_file_does(evicted: int) -> None:
    warm(evicted, SIZE - 10, SIZE + 10)
    assert uncached_extent(evicted, SIZE - 10, SIZE) is None
