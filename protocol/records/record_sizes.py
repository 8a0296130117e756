"""The sizes of single records, as their length prefixes say."""

from collections.abc import Generator
from typing import NamedTuple

from .checking import CheckBudget
from .varints import IndexedBytes, decode_varint


class LargeRecord(NamedTuple):
    """A record's number in its batch, from 0 on, and its size without the length prefix, as Kafka counts it."""

    number: int
    size_bytes: int


def first_larger_record(
    data: IndexedBytes, size: int, limit_bytes: int, budget: CheckBudget
) -> Generator[None, object, LargeRecord | None]:
    """Return the first record of more than `limit_bytes`, None where there is none; yields at the end of each turn.

    The first `size` bytes of `data` are records that have been checked (`checking`).
    """
    position = index = 0
    while position < size:
        if budget.left <= 0:
            yield
        length, start = decode_varint(data, position)
        if length > limit_bytes:
            return LargeRecord(index, length)
        position = start + length
        index += 1
        budget.left -= 1
    return None
