"""The exact check of every record that a producer sent, without making objects of them.

It costs most of what Python does for a produce request, so it has two forms that accept the same bytes. The plain
form walks a record at a time. Where neighbours have the same layout (same lengths, no headers), which is what most
producers send, a whole run of them is compared by columns: the bytes at one place of each record are a strided slice
of the batch, and the first byte that differs from its expectation ends the run.
"""

from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .errors import InvalidRecords
from .varints import decode_varint, decode_varlong


class CheckedRecords(NamedTuple):
    """`null_keys`: the indexes of records without a key, as ranges; empty where nobody asked."""

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
_UNUSUAL_BITS = ~((1 << 14) - 2)
"""Of zigzag values read as one or two bytes: negative ones, and those where a third byte follows."""
_UNUSUAL_SIZE_BITS = ~((1 << 21) - 2)
"""The same of those read as up to three bytes."""


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)


def check_records(data: bytes | bytearray, count: int, *, find_null_keys: bool = False) -> CheckedRecords:
    """`data` must be exactly `count` well-formed records with the offset deltas 0…count-1.

    Raises `InvalidRecords` (INVALID_RECORD) otherwise.
    """
    position = index = 0
    # Zigzag values: the even ones are not negative and in order, the odd ones are negative and in reverse order.
    largest = nearest_negative = _NOTHING
    null_keys: list[range] = []
    last_length = _NOTHING
    next_attempt = 1
    wait = 1
    # Read before they are written only where a record ends the data, and then not looked at.
    length = timestamp = key_length = timestamp_at = offset_at = key_at = value_at = headers_at = _NOTHING
    try:
        while index < count:
            # A record as most are: varints of one or two bytes, and of three for its length and that of its value.
            # Whatever is not, goes to `_check_record`.
            start = position
            try:
                length = data[start]
                if length < 128:
                    timestamp_at = start + 2
                else:
                    length = length & 127 | data[start + 1] << 7
                    timestamp_at = start + 3
                    if length > 16383:
                        length = length & 16383 | data[timestamp_at - 1] << 14
                        timestamp_at += 1
                timestamp = data[timestamp_at]
                offset_at = timestamp_at + 1
                if timestamp > 127:
                    timestamp = timestamp & 127 | data[offset_at] << 7
                    offset_at += 1
                delta = data[offset_at]
                key_at = offset_at + 1
                if delta > 127:
                    delta = delta & 127 | data[key_at] << 7
                    key_at += 1
                key_length = data[key_at]
                value_at = key_at + 1
                if key_length > 127:
                    key_length = key_length & 127 | data[value_at] << 7
                    value_at += 1
                bits = timestamp | delta
                if key_length != _NULL_LENGTH:
                    bits |= key_length
                    value_at += key_length >> 1
                value_length = data[value_at]
                headers_at = value_at + 1
                if value_length > 127:
                    value_length = value_length & 127 | data[headers_at] << 7
                    headers_at += 1
                    if value_length > 16383:
                        value_length = value_length & 16383 | data[headers_at] << 14
                        headers_at += 1
                sizes = length
                if value_length != _NULL_LENGTH:
                    sizes |= value_length
                    headers_at += value_length >> 1
                if bits & _UNUSUAL_BITS or sizes & _UNUSUAL_SIZE_BITS or delta != index << 1:
                    is_usual = False
                else:
                    if data[headers_at] == 0:
                        position = headers_at + 1
                    else:
                        position = _skip_headers(data, headers_at, index)
                        last_length = _NOTHING
                    is_usual = timestamp_at - 1 + (length >> 1) == position
            except IndexError:
                is_usual = False
            if is_usual:
                if timestamp > largest:
                    largest = timestamp
            else:
                length = _NOTHING
                position, timestamp, key_length = _check_record(data, start, index)
                if not timestamp & 1:
                    largest = max(largest, timestamp)
                elif nearest_negative == _NOTHING or timestamp < nearest_negative:
                    nearest_negative = timestamp
            if find_null_keys and key_length == _NULL_LENGTH:
                _add(null_keys, index, index + 1)
            index += 1

            if length != last_length:
                last_length = length
                continue
            if index < next_attempt or not is_usual:
                continue
            record_size = position - start
            layout = (start, timestamp_at, offset_at, key_at, value_at, headers_at)
            run, run_largest = _match_run(data, position, record_size, index, count - index, layout)
            if run_largest > largest:
                largest = run_largest
            if find_null_keys and key_length == _NULL_LENGTH:
                _add(null_keys, index, index + run)
            index += run
            position += run * record_size
            wait = 1 if run > _SHORT_RUN else min(2 * wait, _LONGEST_WAIT)
            next_attempt = index + wait
    except IndexError as error:
        raise _invalid(f"record {index} ends beyond the batch") from error
    if position != len(data):
        raise _invalid("the batch holds more bytes than its records")
    if largest == _NOTHING and nearest_negative != _NOTHING:
        return CheckedRecords(-((nearest_negative + 1) >> 1), null_keys)
    return CheckedRecords(max(largest, 0) >> 1, null_keys)


def _add(ranges: list[range], start: int, stop: int) -> None:
    if ranges and ranges[-1].stop == start:
        ranges[-1] = range(ranges[-1].start, stop)
    else:
        ranges.append(range(start, stop))


def _check_record(data: bytes | bytearray, position: int, index: int) -> tuple[int, int, int]:
    """Any record, a step at a time. Gives where it ends, and timestamp delta and key length as zigzag values.

    Raises `InvalidRecords`, or `IndexError` where it goes on behind the data.
    """
    length, position = decode_varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise _invalid(f"record {index} has a length that is negative or beyond the batch")
    timestamp, position = decode_varlong(data, position + 1)
    delta, position = decode_varint(data, position)
    if delta != index:
        raise _invalid(f"record {index} has the offset delta {delta}")
    key_length, position = decode_varint(data, position)
    position += max(key_length, 0)
    value_length, position = decode_varint(data, position)
    position += max(value_length, 0)
    if key_length < -1 or value_length < -1:
        raise _invalid(f"record {index} has a key or a value of negative length")
    position = _skip_headers(data, position, index)
    if position != end:
        raise _invalid(f"record {index} has a length that is not that of its parts")
    return position, _zigzag(timestamp), _zigzag(key_length)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _skip_headers(data: bytes | bytearray, position: int, index: int) -> int:
    count = data[position]
    if count < 128:
        position += 1
    else:
        count, position = _decode_zigzag(data, position)
    # Each header takes at least the two bytes of its lengths.
    if count & 1 or count > len(data) - position:
        raise _invalid(f"record {index} claims an impossible number of headers")
    for _ in range(count >> 1):
        length = data[position]
        if length < 128:
            position += 1
        else:
            length, position = _decode_zigzag(data, position)
        if length & 1:
            raise _invalid(f"record {index} has a header without a key")
        position += length >> 1
        length = data[position]
        if length < 128:
            position += 1
        else:
            length, position = _decode_zigzag(data, position)
        if not length & 1:
            position += length >> 1
        elif length != _NULL_LENGTH:
            raise _invalid(f"record {index} has a header value of negative length")
    return position


def _decode_zigzag(data: bytes | bytearray, position: int) -> tuple[int, int]:
    value, position = decode_varint(data, position)
    return _zigzag(value), position


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
