"""The exact check of every record that a producer sent, without making objects of them.

It costs most of what Python does for a produce request, so it has two forms that accept the same bytes. The plain
form walks a record at a time. Where neighbours have the same layout (same lengths, no headers), which is what most
producers send, a whole run of them is compared by columns: the bytes at one place of each record are a strided slice
of the batch, and the first byte that differs from its expectation ends the run.

A batch of a few kilobytes may hold millions of records or headers once it is decompressed. The check is therefore a
generator: it yields whenever the work of a turn (`CheckBudget`) is used up, and its caller decides who goes on.
"""

from collections.abc import Generator
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .columns import NOTHING, match_timestamps, same_prefix
from .errors import InvalidRecords
from .varints import IndexedBytes, decode_varint, decode_varlong


class CheckedRecords(NamedTuple):
    """`null_keys`: the indexes of records without a key, as ranges; empty where nobody asked."""

    max_timestamp_delta: int
    null_keys: list[range]


TURN_UNITS = 2000
"""What is done at once, a bit more than a millisecond. A unit is a record that is walked; the rest is counted in it."""
_UNLIMITED = 1 << 62


class CheckBudget:
    """The budget of a check. left: units of this turn. room_bytes: what all batches of a request may decompress to."""

    __slots__ = ("left", "room_bytes")

    def __init__(self, left: int = _UNLIMITED, room_bytes: int = _UNLIMITED) -> None:
        self.left = left
        self.room_bytes = room_bytes


# Zigzag varints of the offset deltas 0…63 (one byte), 64…8191 (two bytes: low, then high) and 8192…1048575 (three). The
# low byte repeats after 64 records and the middle one after 8192, so that two periods have any part of them.
_ONE_BYTE_DELTAS = bytes(range(0, 128, 2))
_DELTA_ZONE_ENDS = (0, 64, 8192, 1 << 20)
_PERIOD = 8192
_DELTAS_LOW = bytes(range(128, 256, 2)) * (2 * _PERIOD // 64)
_TWO_BYTE_DELTAS_HIGH = b"".join(bytes((high,)) * 64 for high in range(128))
_THREE_BYTE_DELTAS_MIDDLE = b"".join(bytes((middle,)) * 64 for middle in range(128, 256)) * 2

_SHORT_RUN = 8
_LONGEST_WAIT = 64
_FIRST_REACH = 1024
"""So many records are compared at first, because a column costs by its length; more where all of them match."""

_NULL_LENGTH = 1
"""-1 as a zigzag varint."""
_UNUSUAL_BITS = ~((1 << 14) - 2)
"""Of zigzag values read as one or two bytes: negative ones, and those where a third byte follows."""
_UNUSUAL_SIZE_BITS = ~((1 << 21) - 2)
"""The same of those read as up to three bytes."""
_UNUSUAL_TIME_BITS = ~((1 << 28) - 1)
"""Of a timestamp delta read as up to four bytes (37 hours); a negative one is usual."""

# Costs in units.
_SLOW_RECORD = 4
_ATTEMPT = 6
_MATCHED_RECORDS = 4  # as a shift
_HEADERS = 2  # as a shift
_FEW_HEADERS = 64
"""As a zigzag value: so many are skipped without a pause."""

MAX_NULL_KEYS = 1000
"""More ranges of records without a key are not listed."""


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)


def check_records(data: IndexedBytes, count: int, *, find_null_keys: bool = False) -> CheckedRecords:
    """`data` must be exactly `count` well-formed records with the offset deltas 0…count-1, all in one turn.

    Raises `InvalidRecords` (INVALID_RECORD) otherwise.
    """
    steps = check_records_in_turns(data, len(data), count, CheckBudget(), find_null_keys=find_null_keys)
    try:
        next(steps)
    except StopIteration as end:
        checked: CheckedRecords = end.value
        return checked
    raise AssertionError("a turn without a limit came to its end")


def check_records_in_turns(
    data: IndexedBytes,
    size: int,
    count: int,
    budget: CheckBudget,
    *,
    find_null_keys: bool = False,
    max_headers: int = _UNLIMITED,
) -> Generator[None, object, CheckedRecords]:
    """The first `size` bytes of `data`, as `check_records` does it; yields at the end of each turn.

    max_headers: of all records together.
    """
    position = index = 0
    # Zigzag values: the even ones are not negative and in order, the odd ones are negative and in reverse order.
    largest = nearest_negative = NOTHING
    null_keys: list[range] = []
    last_length = NOTHING
    next_attempt = 1
    wait = 1
    reach = _FIRST_REACH
    headers = 0
    pause_at = budget.left
    stop = pause_at if pause_at < count else count
    # Read before they are written only where a record ends the data, and then not looked at.
    length = timestamp = key_length = end = number = NOTHING
    timestamp_at = offset_at = key_at = value_at = headers_at = NOTHING
    try:
        while True:
            if index >= stop:
                if index == count:
                    break
                budget.left = 0
                yield
                pause_at = index + budget.left
                stop = min(count, pause_at)
            # A record as most are: varints of one or two bytes, of three for its length, that of its value and the
            # offset delta, and of four for the timestamp delta. Whatever is not, goes to `_check_record`.
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
                    if timestamp > 16383:
                        timestamp = timestamp & 16383 | data[offset_at] << 14
                        offset_at += 1
                        if timestamp > 2097151:
                            timestamp = timestamp & 2097151 | data[offset_at] << 21
                            offset_at += 1
                delta = data[offset_at]
                key_at = offset_at + 1
                if delta > 127:
                    delta = delta & 127 | data[key_at] << 7
                    key_at += 1
                    if delta > 16383:
                        delta = delta & 16383 | data[key_at] << 14
                        key_at += 1
                bits = key_length = data[key_at]
                value_at = key_at + 1
                if key_length > 127:
                    bits = key_length = key_length & 127 | data[value_at] << 7
                    value_at += 1
                if key_length == _NULL_LENGTH:
                    bits = 0
                else:
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
                is_usual = not (
                    bits & _UNUSUAL_BITS
                    or sizes & _UNUSUAL_SIZE_BITS
                    or timestamp & _UNUSUAL_TIME_BITS
                    or delta != index << 1
                )
                end = timestamp_at - 1 + (length >> 1)
                number = data[headers_at]
            except IndexError:
                is_usual = False
            if not is_usual:
                length = NOTHING
                headers_at, end, timestamp, key_length = _check_record(data, start, size, index)
                number = data[headers_at]
                pause_at -= _SLOW_RECORD
                stop = min(stop, pause_at)
            if not timestamp & 1:
                if timestamp > largest:
                    largest = timestamp
            elif nearest_negative == NOTHING or timestamp < nearest_negative:
                nearest_negative = timestamp
            if number == 0:
                position = headers_at + 1
            else:
                last_length = length = NOTHING
                if number <= _FEW_HEADERS and not number & 1:
                    position = _skip_headers(data, headers_at + 1, number >> 1, index)
                    pause_at -= number >> 1 + _HEADERS
                else:
                    number, position = _count_headers(data, headers_at, size, index)
                    if headers + (number >> 1) <= max_headers:
                        budget.left = pause_at - index
                        position = yield from _skip_many_headers(data, position, number >> 1, index, budget)
                        pause_at = index + budget.left
                headers += number >> 1
                if headers > max_headers:
                    raise _invalid(f"the records have more than {max_headers} headers")
                stop = pause_at if pause_at < count else count
            if position != end:
                raise _invalid(f"record {index} has a length that is not that of its parts")
            if find_null_keys and key_length == _NULL_LENGTH:
                _add(null_keys, index, index + 1)
            index += 1

            if length != last_length:
                last_length = length
                continue
            if index < next_attempt or length == NOTHING:
                continue
            record_size = position - start
            layout = (start, timestamp_at, offset_at, key_at, value_at, headers_at)
            most = min(count - index, reach)
            run, run_largest = _match_run(data, size, position, record_size, index, most, layout)
            if run_largest > largest:
                largest = run_largest
            if find_null_keys and key_length == _NULL_LENGTH:
                _add(null_keys, index, index + run)
            index += run
            pause_at += run - (run >> _MATCHED_RECORDS) - _ATTEMPT
            stop = pause_at if pause_at < count else count
            position += run * record_size
            reach = _PERIOD if run == most else _FIRST_REACH
            wait = 1 if run > _SHORT_RUN else min(2 * wait, _LONGEST_WAIT)
            next_attempt = index + wait
    except IndexError as error:
        raise _invalid(f"record {index} ends beyond the batch") from error
    if position != size:
        raise _invalid("the batch holds more bytes than its records, or fewer")
    budget.left = pause_at - index
    if largest == NOTHING and nearest_negative != NOTHING:
        return CheckedRecords(-((nearest_negative + 1) >> 1), null_keys)
    return CheckedRecords(largest >> 1 if largest > 0 else 0, null_keys)


def _add(ranges: list[range], start: int, stop: int) -> None:
    if ranges and ranges[-1].stop == start:
        ranges[-1] = range(ranges[-1].start, stop)
    elif len(ranges) < MAX_NULL_KEYS:
        ranges.append(range(start, stop))


def _check_record(data: IndexedBytes, position: int, size: int, index: int) -> tuple[int, int, int, int]:
    """Any record up to its headers, a step at a time.

    Gives where the headers begin and where the record must end, and timestamp delta and key length as zigzag values.
    Raises `InvalidRecords`, or `IndexError` where it goes on behind the data.
    """
    length, position = decode_varint(data, position)
    end = position + length
    if length < 0 or end > size:
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
    return position, end, _zigzag(timestamp), _zigzag(key_length)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _count_headers(data: IndexedBytes, position: int, size: int, index: int) -> tuple[int, int]:
    """The number of headers as a zigzag value, and where the first one is."""
    count = data[position]
    if count < 128:
        position += 1
    else:
        count, position = _decode_zigzag(data, position)
    # Each header takes at least the two bytes of its lengths.
    if count & 1 or count > size - position:
        raise _invalid(f"record {index} claims an impossible number of headers")
    return count, position


def _skip_headers(data: IndexedBytes, position: int, count: int, index: int) -> int:
    for _ in range(count):
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


def _skip_many_headers(
    data: IndexedBytes, position: int, count: int, index: int, budget: CheckBudget
) -> Generator[None, object, int]:
    while count > 0:
        if budget.left <= 0:
            yield
        part = min(count, max(budget.left << _HEADERS, _FEW_HEADERS))
        position = _skip_headers(data, position, part, index)
        count -= part
        budget.left -= 1 + (part >> _HEADERS)
    return position


def _decode_zigzag(data: IndexedBytes, position: int) -> tuple[int, int]:
    value, position = decode_varint(data, position)
    return _zigzag(value), position


def _match_run(
    data: IndexedBytes,
    data_size: int,
    first: int,
    size: int,
    index: int,
    most: int,
    layout: tuple[int, int, int, int, int, int],
) -> tuple[int, int]:
    """Count the records, up to `most`, from `first` (number `index`) on that have the layout of the one before.

    `layout` says where that record and its parts start: length, timestamp, offset delta, key length, value length,
    header count. Also gives the run's largest timestamp delta as a zigzag value; a run has no negative ones.
    """
    start, timestamp_at, offset_at, key_at, value_at, headers_at = layout
    run = min(most, _DELTA_ZONE_ENDS[key_at - offset_at] - index, (data_size - first) // size)

    # The offset deltas first: they also end a run where records only look alike by chance.
    run = _match_offsets(data, first + offset_at - start, size, index, run, key_at - offset_at)
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
            return 0, NOTHING
        column = data[first + place - start : first + place - start + run * size : size]
        expected = data[place : place + 1] * run
        if column != expected:
            run = same_prefix(column, expected)
    if run < 1:
        return 0, NOTHING
    return match_timestamps(data, first + timestamp_at - start, size, run, offset_at - timestamp_at)


def _varint_end(data: IndexedBytes, position: int) -> int:
    while data[position] > 127:
        position += 1
    return position + 1


def _match_offsets(data: IndexedBytes, at: int, size: int, index: int, run: int, width: int) -> int:
    if run < 1:
        return 0
    if width == 1:
        return same_prefix(data[at : at + run * size : size], _ONE_BYTE_DELTAS[index : index + run])
    low_at = index % 64
    run = same_prefix(data[at : at + run * size : size], _DELTAS_LOW[low_at : low_at + run])
    if width == 2:
        return same_prefix(data[at + 1 : at + 1 + run * size : size], _TWO_BYTE_DELTAS_HIGH[index : index + run])
    middle_at = index % _PERIOD
    run = min(run, _PERIOD - middle_at)
    run = same_prefix(data[at + 1 : at + 1 + run * size : size], _THREE_BYTE_DELTAS_MIDDLE[middle_at : middle_at + run])
    return same_prefix(data[at + 2 : at + 2 + run * size : size], bytes((index // _PERIOD,)) * run)
