"""The first record of a batch with a timestamp or a later one, without looking at anything else in the records.

A record is walked in half a microsecond. Where neighbours have one length, which is what most producers send, a run of
them is passed by columns. A batch of a few kilobytes may hold millions of records, so that this is a generator as the
check of a batch is (`checking`): it yields whenever the work of a turn is used up.
"""

from collections.abc import Generator
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .checking import CheckBudget
from .columns import NOTHING, match_timestamps, same_prefix
from .errors import InvalidRecords
from .varints import IndexedBytes, decode_varint, decode_varlong

_MIN_LENGTH = 6
"""Attributes, two deltas, the lengths of key and value, and the count of headers take at least so many bytes."""
_FIRST_REACH = 1024
_LONGEST_REACH = 8192
_SHORT_RUN = 8
_LONGEST_WAIT = 64

# Costs in units.
_SLOW_RECORD = 4
_ATTEMPT = 6
_MATCHED_RECORDS = 4  # as a shift


class Deltas(NamedTuple):
    """The deltas of one record against the base of its batch."""

    timestamp_delta: int
    offset_delta: int


def first_record_in_turns(
    data: IndexedBytes, start: int, end: int, count: int, least: Deltas, budget: CheckBudget
) -> Generator[None, object, Deltas | None]:
    """Find the first of the `count` records between two positions of `data` that is below `least` in neither.

    Raises `InvalidRecords` where the bytes are not those of records; keys, values and headers are not looked at.
    """
    position = start
    index = 0
    left = budget.left
    last_length = NOTHING
    next_attempt = wait = 1
    reach = _FIRST_REACH
    try:
        while index < count:
            if left <= 0:
                budget.left = 0
                yield
                left = budget.left
            length = data[position]
            body = position + 1
            if length > 127:
                more = data[body]
                if more < 128:
                    length = length & 127 | more << 7
                    body += 1
                else:
                    value, body = decode_varint(data, position)
                    length = max(value, 0) << 1
                    left -= _SLOW_RECORD
            next_position = body + (length >> 1)
            if length & 1 or length < 2 * _MIN_LENGTH or next_position > end:
                raise _invalid(f"record {index} has a length that is impossible, or beyond the batch")
            timestamp_at = body + 1
            timestamp = data[timestamp_at]
            if timestamp < 128:
                offset_at = timestamp_at + 1
                delta = timestamp >> 1 ^ -(timestamp & 1)
            elif (more := data[timestamp_at + 1]) < 128:
                offset_at = timestamp_at + 2
                timestamp = timestamp & 127 | more << 7
                delta = timestamp >> 1 ^ -(timestamp & 1)
            else:
                delta, offset_at = decode_varlong(data, timestamp_at)
                left -= _SLOW_RECORD
            if delta >= least.timestamp_delta:
                offset_delta, _ = decode_varint(data, offset_at)
                left -= _SLOW_RECORD
                if offset_delta >= least.offset_delta:
                    budget.left = left
                    return Deltas(delta, offset_delta)
            size = next_position - position
            previous, position = position, next_position
            index += 1
            left -= 1
            if length != last_length:
                last_length = length
            elif index >= next_attempt and delta >= 0:
                most = min(count - index, reach, (end - position) // size)
                layout = (timestamp_at - 1 - previous, timestamp_at - previous, offset_at - previous)
                run = _run_below(data, previous, size, most, layout, least.timestamp_delta)
                position += run * size
                index += run
                left -= _ATTEMPT + (run >> _MATCHED_RECORDS)
                reach = _LONGEST_REACH if run == most else _FIRST_REACH
                wait = 1 if run > _SHORT_RUN else min(2 * wait, _LONGEST_WAIT)
                next_attempt = index + wait
    except IndexError as error:
        raise _invalid(f"record {index} ends beyond the batch") from error
    budget.left = left
    if position != end:
        raise _invalid("the batch holds more bytes than its records")
    return None


def _run_below(
    data: IndexedBytes, previous: int, size: int, most: int, layout: tuple[int, int, int], least_delta: int
) -> int:
    """Return how many records behind the one at `previous`, `most` at most, have its length and are surely older.

    layout: where in a record its length ends, its timestamp begins, and its offset delta does. Where one record ends
    tells where the next begins, so that lengths which are equal one by one are those of records.
    """
    length_end, timestamp_at, offset_at = layout
    first = previous + size
    run = most
    for place in range(length_end):
        if run < 1:
            return 0
        column = data[first + place : first + place + run * size : size]
        run = same_prefix(column, data[previous + place : previous + place + 1] * run)
    while run > 0:
        matched, largest = match_timestamps(data, first + timestamp_at, size, run, offset_at - timestamp_at)
        if matched and largest >> 1 < least_delta:
            return matched
        run = matched >> 1  # those in front of it may still be too old, all of them
    return 0


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)
