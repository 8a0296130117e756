"""Neighbouring records of one length, looked at by columns: the bytes at one place of each record are a strided slice.

A column of a thousand records costs as much as a few records that are walked.
"""

from .varints import IndexedBytes

NOTHING = -1

_ASCII = bytes(range(128))
_CONTINUED = bytes(range(128, 256))
_ODD = bytes(range(1, 256, 2))


def same_prefix(column: bytes | bytearray, expected: bytes | bytearray) -> int:
    """Return how many leading bytes are equal; both have the same length."""
    if column == expected:
        return len(column)
    difference = int.from_bytes(column, "little") ^ int.from_bytes(expected, "little")
    return ((difference & -difference).bit_length() - 1) >> 3


def match_timestamps(data: IndexedBytes, at: int, size: int, run: int, width: int) -> tuple[int, int]:
    """Match varints that all have this width and are not negative."""
    if width == 1:
        column = data[at : at + run * size : size]
        run = _prefix_of(column, _ASCII)
        column = column[:run]
        if not run or column.translate(None, _ODD) != column:
            return 0, NOTHING
        return run, max(column)
    columns = []
    for place in range(width):
        column = data[at + place : at + place + run * size : size]
        run = _prefix_of(column, _CONTINUED if place < width - 1 else _ASCII)
        columns.append(column)
    columns = [column[:run] for column in columns]
    low = columns[0]
    if not run or low.translate(None, _ODD) != low:
        return 0, NOTHING
    found = run
    largest = 0
    while columns:
        column = columns.pop()
        high = max(column)
        begin = column.find(high)
        if column.count(high) != run - begin:
            # Time went backwards inside of the run: compare the records.
            for byte in max(zip(column, *reversed(columns), strict=True)):
                largest = largest << 7 | byte & 127
            return found, largest
        # Only the last ones, which all have this byte, may have the largest timestamp.
        largest = largest << 7 | high & 127
        columns = [lower[begin:] for lower in columns]
        run -= begin
    return found, largest


def _prefix_of(column: bytes | bytearray, allowed: bytes) -> int:
    """Return how many leading bytes are among the allowed ones."""
    if not column.translate(None, allowed):
        return len(column)
    return len(column) - len(column.lstrip(allowed))
