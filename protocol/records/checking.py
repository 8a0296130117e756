"""The exact check of every record that a producer sent, without making objects of them.

It costs most of what Python does for a produce request, so it has two forms that accept the same bytes. The plain
form walks a record at a time. Where neighbours have the same layout (same lengths, no headers), which is what most
producers send, a whole run of them is compared by columns: the bytes at one place of each record are a strided slice
of the batch, and the first byte that differs from its expectation ends the run.
"""

from collections.abc import Callable
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .errors import InvalidRecords
from .varints import decode_varint, decode_varlong


class CheckedRecords(NamedTuple):
    """`null_keys`: the indexes of records without a key, as ranges."""

    max_timestamp_delta: int
    null_keys: list[range]


_ASCII = bytes(range(128))
_CONTINUED = bytes(range(128, 256))
_ODD = bytes(range(1, 256, 2))

# Zigzag varints of the offset deltas 0…63 (one byte) and 64…8191 (two bytes: low, then high).
_ONE_BYTE_DELTAS = bytes(range(0, 128, 2))
_TWO_BYTES_FROM = 64
_TWO_BYTES_TO = 8192
_TWO_BYTE_DELTAS_LOW = bytes(range(128, 256, 2)) * 127
_TWO_BYTE_DELTAS_HIGH = b"".join(bytes((high,)) * 64 for high in range(1, 128))

_SHORT_RUN = 8
_LONGEST_WAIT = 64

_NOTHING = -1
_NULL_LENGTH = 1
"""-1 as a zigzag varint."""


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)


def check_records(data: bytes | bytearray, count: int) -> CheckedRecords:
    """`data` must be exactly `count` well-formed records with the offset deltas 0…count-1.

    Raises `InvalidRecords` (INVALID_RECORD) otherwise.
    """
    size = len(data)
    position = index = 0
    # Zigzag values: the even ones are not negative and in order, the odd ones are negative and in reverse order.
    largest = _NOTHING
    nearest_negative = _NOTHING
    null_keys: list[range] = []
    last_size = 0
    next_attempt = 1
    wait = 1
    try:
        while index < count:
            start = position
            length = data[position]
            position += 1
            if length > 127:
                if (byte := data[position]) < 128:
                    length = length & 127 | byte << 7
                    position += 1
                else:
                    length, position = _zigzag(decode_varint, data, start)
            end = position + (length >> 1)
            if length & 1 or end > size:
                raise _invalid(f"record {index} has a length that is negative or beyond the batch")

            timestamp_at = position = position + 1
            timestamp = data[position]
            position += 1
            if timestamp > 127:
                if (byte := data[position]) < 128:
                    timestamp = timestamp & 127 | byte << 7
                    position += 1
                else:
                    timestamp, position = _zigzag(decode_varlong, data, timestamp_at)
            if timestamp & 1:
                if nearest_negative == _NOTHING or timestamp < nearest_negative:
                    nearest_negative = timestamp
            elif timestamp > largest:
                largest = timestamp

            offset_at = position
            delta = data[position]
            position += 1
            if delta > 127:
                if (byte := data[position]) < 128:
                    delta = delta & 127 | byte << 7
                    position += 1
                else:
                    delta, position = _zigzag(decode_varint, data, offset_at)
            if delta != index << 1:
                raise _invalid(f"record {index} has another offset delta")

            key_at = position
            length = data[position]
            position += 1
            if length > 127:
                if (byte := data[position]) < 128:
                    length = length & 127 | byte << 7
                    position += 1
                else:
                    length, position = _zigzag(decode_varint, data, key_at)
            if length & 1:
                if length != _NULL_LENGTH:
                    raise _invalid(f"record {index} has a key of negative length")
                if null_keys and null_keys[-1].stop == index:
                    null_keys[-1] = range(null_keys[-1].start, index + 1)
                else:
                    null_keys.append(range(index, index + 1))
                value_at = position
            else:
                value_at = position = position + (length >> 1)

            length = data[position]
            position += 1
            if length > 127:
                if (byte := data[position]) < 128:
                    length = length & 127 | byte << 7
                    position += 1
                else:
                    length, position = _zigzag(decode_varint, data, value_at)
            if length & 1:
                if length != _NULL_LENGTH:
                    raise _invalid(f"record {index} has a value of negative length")
            else:
                position += length >> 1

            headers_at = position
            has_headers = data[position]
            position = position + 1 if not has_headers else _skip_headers(data, position, end, index)
            if position != end:
                raise _invalid(f"record {index} has a length that is not that of its parts")
            index += 1

            if index < next_attempt:
                continue
            record_size = position - start
            if has_headers or record_size != last_size:
                last_size = record_size
                continue
            layout = (start, timestamp_at, offset_at, key_at, value_at, headers_at)
            run, run_largest = _match_run(data, position, record_size, index, count - index, layout)
            if run_largest > largest:
                largest = run_largest
            if run and null_keys and null_keys[-1].stop == index:
                null_keys[-1] = range(null_keys[-1].start, index + run)
            index += run
            position += run * record_size
            wait = 1 if run > _SHORT_RUN else min(2 * wait, _LONGEST_WAIT)
            next_attempt = index + wait
    except IndexError as error:
        raise _invalid(f"record {index} ends beyond the batch") from error
    if position != size:
        raise _invalid("the batch holds more bytes than its records")
    if largest == _NOTHING and nearest_negative != _NOTHING:
        return CheckedRecords(-((nearest_negative + 1) >> 1), null_keys)
    return CheckedRecords(max(largest, 0) >> 1, null_keys)


def _zigzag(
    decode: Callable[[bytes | bytearray, int], tuple[int, int]], data: bytes | bytearray, position: int
) -> tuple[int, int]:
    """A varint of any length, left as the zigzag value it is on the wire."""
    value, position = decode(data, position)
    return (value << 1 if value >= 0 else (-value << 1) - 1), position


def _skip_headers(data: bytes | bytearray, position: int, end: int, index: int) -> int:
    count, position = decode_varint(data, position)
    # Each header takes at least the two bytes of its lengths.
    if count < 0 or count * 2 > end - position:
        raise _invalid(f"record {index} claims {count} headers")
    for _ in range(count):
        length, position = decode_varint(data, position)
        if length < 0:
            raise _invalid(f"record {index} has a header without a key")
        position += length
        length, position = decode_varint(data, position)
        if length < -1:
            raise _invalid(f"record {index} has a header value of negative length")
        position += max(length, 0)
    return position


def _match_run(
    data: bytes | bytearray,
    first: int,
    size: int,
    index: int,
    remaining: int,
    layout: tuple[int, int, int, int, int, int],
) -> tuple[int, int]:
    """How many records from position `first` (number `index`) on have the layout of the one before them.

    `layout` says where that record and its parts start: length, timestamp, offset delta, key length, value length,
    header count. Also gives the run's largest timestamp delta as a zigzag value; a run has no negative ones.
    """
    start, timestamp_at, offset_at, key_at, value_at, headers_at = layout
    timestamp_bytes = offset_at - timestamp_at
    offset_bytes = key_at - offset_at
    if timestamp_bytes > 2 or offset_bytes > 2:
        return 0, _NOTHING
    zone_end = _TWO_BYTES_FROM if offset_bytes == 1 else _TWO_BYTES_TO
    run = min(remaining, zone_end - index, (len(data) - first) // size)

    # The offset deltas first: they also end a run where records only look alike by chance.
    run = _match_offsets(data, first + offset_at - start, size, index, run, offset_bytes)
    key_length_end = _varint_end(data, key_at)
    value_length_end = _varint_end(data, value_at)
    same = (
        *range(start, timestamp_at - 1),
        *range(key_at, key_length_end),
        *range(value_at, value_length_end),
        headers_at,
    )
    for place in same:
        if run < 1:
            return 0, _NOTHING
        column = data[first + place - start : first + place - start + run * size : size]
        run = _same_prefix(column, data[place : place + 1] * run)
    if run < 1:
        return 0, _NOTHING
    return _match_timestamps(data, first + timestamp_at - start, size, run, timestamp_bytes)


def _varint_end(data: bytes | bytearray, position: int) -> int:
    while data[position] > 127:
        position += 1
    return position + 1


def _match_offsets(data: bytes | bytearray, at: int, size: int, index: int, run: int, offset_bytes: int) -> int:
    if run < 1:
        return 0
    if offset_bytes == 1:
        return _same_prefix(data[at : at + run * size : size], _ONE_BYTE_DELTAS[index : index + run])
    table_at = index - _TWO_BYTES_FROM
    low = _same_prefix(data[at : at + run * size : size], _TWO_BYTE_DELTAS_LOW[table_at : table_at + run])
    at += 1
    return _same_prefix(data[at : at + low * size : size], _TWO_BYTE_DELTAS_HIGH[table_at : table_at + low])


def _same_prefix(column: bytes | bytearray, expected: bytes | bytearray) -> int:
    """How many leading bytes are equal; both have the same length."""
    if column == expected:
        return len(column)
    difference = int.from_bytes(column, "little") ^ int.from_bytes(expected, "little")
    return ((difference & -difference).bit_length() - 1) >> 3


def _match_timestamps(data: bytes | bytearray, at: int, size: int, run: int, width: int) -> tuple[int, int]:
    column = data[at : at + run * size : size]
    if width == 1:
        run = _prefix_of(column, _ASCII)
        column = column[:run]
        if not run or column.translate(None, _ODD) != column:
            return 0, _NOTHING
        return run, max(column)
    run = _prefix_of(column, _CONTINUED)
    high = data[at + 1 : at + 1 + run * size : size]
    run = _prefix_of(high, _ASCII)
    low, high = column[:run], high[:run]
    if not run or low.translate(None, _ODD) != low:
        return 0, _NOTHING
    largest_high = max(high)
    candidates = low[high.find(largest_high) :]
    if high.count(largest_high) != len(candidates):
        # Time went backwards inside of the run: compare the pairs.
        largest_low = max(pair[1] for pair in zip(high, low, strict=True) if pair[0] == largest_high)
    else:
        largest_low = max(candidates)
    return run, largest_low & 127 | largest_high << 7


def _prefix_of(column: bytes | bytearray, allowed: bytes) -> int:
    """How many leading bytes are among the allowed ones."""
    if not column.translate(None, allowed):
        return len(column)
    return len(column) - len(column.lstrip(allowed))
