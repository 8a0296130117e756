"""Completion of replacements of segments that a crash interrupted (`LogLoader`, `LocalLog.replaceSegments`).

A new segment's files are `.cleaned` until all of it is durable, then `.swap`; then the old ones go, and then it has its
final name. `.cleaned` is therefore removed, and `.swap` completed, unless a `.cleaned` shows that not all of the new
files got that name.
"""

import posixpath
from collections.abc import Sequence

from ..files.disk import Disk
from .batch_scan import scan_headers
from .segment import CLEANED_SUFFIX, LOG_SUFFIX, SEGMENT_SUFFIXES, SWAP_SUFFIX


def complete_replacements(disk: Disk, directory: str) -> list[str]:
    """Complete or undo replacements, before the segments are looked for.

    Returns the names that the directory has then. Raises `FileError`.
    """
    names = disk.list_directory(directory)
    swaps = _with_suffix(names, SWAP_SUFFIX)
    if not swaps:
        return names
    _complete(disk, directory, names, swaps)
    return disk.list_directory(directory)


def _complete(disk: Disk, directory: str, names: Sequence[str], swaps: list[str]) -> None:
    unfinished = [_base_offset(name) for name in _with_suffix(names, CLEANED_SUFFIX)]
    for name in list(swaps):
        if unfinished and _base_offset(name) >= min(unfinished):
            disk.remove(posixpath.join(directory, name))
            swaps.remove(name)
    if not swaps:
        return
    for start, end in _replaced(disk, directory, swaps):
        for name in _with_suffix(names, ""):
            if start <= _base_offset(name) < end:
                disk.remove(posixpath.join(directory, name))
    disk.sync_directory(directory)  # none of them must turn up again beside what takes its place
    for name in sorted(swaps, key=_is_index):
        disk.rename(posixpath.join(directory, name), posixpath.join(directory, name.removesuffix(SWAP_SUFFIX)))
    disk.sync_directory(directory)


def _replaced(disk: Disk, directory: str, swaps: Sequence[str]) -> list[tuple[int, int]]:
    """The offsets of the new segments, from the first to the one behind the last."""
    found = []
    for name in swaps:
        if not name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            continue
        file = disk.open(posixpath.join(directory, name))
        start = end = _base_offset(name)
        for _, header in scan_headers(file, 0, file.size()):
            end = header.next_offset
        file.close()
        # One without batches replaces the segment that begins where it does.
        found.append((start, max(end, start + 1)))
    return found


def _with_suffix(names: Sequence[str], last: str) -> list[str]:
    """The files of segments that have this behind their usual names."""
    if last and not any(name.endswith(last) for name in names):
        return []
    suffixes = tuple(suffix + last for suffix in SEGMENT_SUFFIXES)
    return [name for name in names if name.endswith(suffixes) and name.partition(".")[0].isdecimal()]


def _base_offset(name: str) -> int:
    return int(name.partition(".")[0])


def _is_index(name: str) -> bool:
    return not name.endswith(LOG_SUFFIX + SWAP_SUFFIX)
