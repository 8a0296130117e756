"""Regions of files are read where `sendfile` cannot take them: small ones, and those that are to be encrypted."""

from __future__ import annotations

import os

import trio

from pykbroker.storage.files.errors import DiskFailed

from ..runtime.threads import Threads
from .page_cache import read_cached
from .transport import FileRegion


async def read_region(region: FileRegion, threads: Threads) -> bytes | bytearray:
    """The region's bytes; what is not in the page cache is read in a thread.

    Raises `trio.BrokenResourceError` where the file is too short: the answer's header has promised these bytes.
    """
    descriptor = region.file.fileno()
    if descriptor is None:
        return region.read()
    data: bytes | bytearray | None = read_cached(descriptor, region.position, region.size)
    if data is None:
        data = await threads.run(region.read)
    if len(data) < region.size:
        raise _ends_before(region.position + region.size)
    return data


async def read_part(region: FileRegion, position: int, size: int, threads: Threads) -> bytes | bytearray:
    """`size` bytes at `position` of the region's file, which must have a descriptor.

    Raises DiskFailed, and `trio.BrokenResourceError` where the file is too short.
    """
    descriptor = region.file.fileno()
    assert descriptor is not None
    data: bytes | bytearray | None = read_cached(descriptor, position, size)
    if data is None:
        try:
            data = await threads.run(os.pread, descriptor, size, position)
        except OSError as error:
            raise DiskFailed("read", region.file.path, error) from error
    if len(data) < size:
        raise _ends_before(position + size)
    return data


def _ends_before(position: int) -> trio.BrokenResourceError:
    return trio.BrokenResourceError(f"the log file ends before {position}")
