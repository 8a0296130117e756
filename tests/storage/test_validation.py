"""What a leader refuses, by which error code, and what it repairs."""

import struct
from collections.abc import Callable, Generator
from random import Random

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import (
    Record,
    TimestampType,
    decode_batch_header,
    encode_batch,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.compression import Compression, compress
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import encode_record
from pykbroker.protocol.records.record_sizes import first_larger_record
from pykbroker.protocol.records.varints import encode_zigzag
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import LogConfig
from pykbroker.storage.segments.validation import (
    MAX_HEADERS,
    CheckBudget,
    CheckedBatch,
    Job,
    budget_of_request,
    check_at_once,
    check_client_batch,
    client_batch_steps,
)
from tests.examples import examples
from tests.storage.batches import NOW_MS, batch, config, open_log

DAY_MS = 24 * 60 * 60 * 1000
RECORDS = [Record(b"a", b"1", (), NOW_MS), Record(b"b", b"2", (), NOW_MS + 5), Record(b"c", b"3", (), NOW_MS + 1)]
GOOD = encode_batch(RECORDS)
FIELDS = {
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "records_count": (57, ">i"),
}


def altered(data: bytes = GOOD, *, keep_crc: bool = False, **fields: int) -> bytes:
    """The batch with other header fields and, unless told otherwise, the checksum that goes with them."""
    changed = bytearray(data)
    for name, value in fields.items():
        position, form = FIELDS[name]
        struct.pack_into(form, changed, position, value)
    if not keep_crc:
        struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


def with_payload(payload: bytes, count: int = 1, codec: int = 0) -> bytes:
    head = encode_batch([Record(None, None, (), NOW_MS)] * count)[:61]
    return altered(head + payload, batch_length=len(head) + len(payload) - 12, attributes=codec)


def raw_record(*parts: bytes) -> bytes:
    body = b"\x00\x00\x00" + b"".join(parts)
    return encode_zigzag(len(body)) + body


NULL = b"\x01"
GZIPPED = compress(Compression.GZIP, encode_record(Record(None, b"v" * 100), 0, 0))
CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD

HOSTILE: list[tuple[str, bytes | None, ErrorCode]] = [
    ("wrong checksum", altered(crc=1, keep_crc=True), CORRUPT),
    ("magic 3", altered(magic=3), CORRUPT),
    ("magic -1", altered(magic=-1), CORRUPT),
    ("batch length 3", altered(batch_length=3), CORRUPT),
    ("batch length -5", altered(batch_length=-5), CORRUPT),
    ("batch length below a header", altered(batch_length=40), CORRUPT),
    ("magic 1", altered(magic=1), INVALID),
    ("magic 0", altered(magic=0), INVALID),
    ("length beyond the buffer", altered(batch_length=len(GOOD) - 11), INVALID),
    ("two batches", GOOD + GOOD, INVALID),
    ("empty records", b"", INVALID),
    ("only a part of a header", GOOD[:16], INVALID),
    ("three bytes behind the batch", GOOD + b"abc", INVALID),
    ("no records field", None, INVALID),
    ("count 2 of 3", altered(records_count=2, last_offset_delta=1), INVALID),
    ("count 4 of 3", altered(records_count=4, last_offset_delta=3), INVALID),
    ("count 0", altered(records_count=0, last_offset_delta=0), INVALID),
    ("count 0, no offsets", altered(records_count=0, last_offset_delta=-1), INVALID),
    ("count -1", altered(records_count=-1, last_offset_delta=-2), INVALID),
    ("count 2^31-1", altered(records_count=2**31 - 1, last_offset_delta=2**31 - 2), INVALID),
    ("count that is not that of the offsets", altered(last_offset_delta=5), INVALID),
    ("base offset 9", altered(base_offset=9), INVALID),
    ("control batch", altered(attributes=0x20), INVALID),
    ("codec 5", altered(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ("codec 7", altered(attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ("corrupt gzip", with_payload(b"garbage", codec=1), CORRUPT),
    ("truncated gzip", with_payload(GZIPPED[:-9], codec=1), CORRUPT),
    ("garbage for snappy", with_payload(b"\xff" * 30, codec=2), CORRUPT),
    ("garbage for lz4", with_payload(b"\xff" * 30, codec=3), CORRUPT),
    ("garbage for zstd", with_payload(b"\xff" * 30, codec=4), CORRUPT),
    ("varint of six bytes", with_payload(b"\xff\xff\xff\xff\xff\xff"), INVALID),
    ("bomb", with_payload(compress(Compression.ZSTD, bytes(70 << 20)), codec=4), ErrorCode.MESSAGE_TOO_LARGE),
    ("negative record length", with_payload(encode_zigzag(-1) + bytes(9)), INVALID),
    ("over-long record", with_payload(encode_zigzag(1000) + bytes(9)), INVALID),
    ("2^31-1 headers", with_payload(raw_record(NULL, NULL, encode_zigzag(2**31 - 1))), INVALID),
    ("-1 headers", with_payload(raw_record(NULL, NULL, encode_zigzag(-1))), INVALID),
    ("null header key", with_payload(raw_record(NULL, NULL, encode_zigzag(1), NULL, NULL)), INVALID),
    ("offset delta 7", with_payload(encode_record(Record(None, b"v"), 7, 0)), INVALID),
    ("2 MB", batch(value=bytes(2_000_000)), ErrorCode.MESSAGE_TOO_LARGE),
    ("producer id with sequence -1", altered(producer_id=5, producer_epoch=0), INVALID),
    ("producer id with epoch -1", altered(producer_id=5, base_sequence=0), INVALID),
    ("timestamp type of the broker", altered(attributes=8), ErrorCode.INVALID_TIMESTAMP),
    ("transaction without a producer", altered(attributes=0x10), INVALID),
]


@pytest.mark.parametrize(("data", "error"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_hostile_batch_is_refused(disk: SimulatedDisk, data: bytes | None, error: ErrorCode) -> None:
    log = open_log(disk, "/data/t-0")
    with pytest.raises(ApiError) as refused:
        log.append_as_leader(data, 0, NOW_MS)
    assert refused.value.code is error
    assert refused.value.message
    assert log.log_end_offset == 0
    assert log.size_bytes == 0


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("change", [{"records_count": 2, "last_offset_delta": 1}, {"records_count": 4}])
def test_compressed_batches_are_looked_into(codec: Compression, change: dict[str, int]) -> None:
    data = altered(encode_batch(RECORDS, compression=codec), **change)
    with pytest.raises(ApiError) as refused:
        check_client_batch(data, LogConfig(), NOW_MS)
    assert refused.value.code is INVALID


def stored(data: bytes, settings: LogConfig, now_ms: int = NOW_MS) -> bytes:
    """What a log makes of a batch, checked to be sound."""
    log = open_log(SimulatedDisk(Random(1)), "/t-0", settings)
    log.append_as_leader(data, 0, now_ms)
    [found] = iter_batches(log.read(0, 1 << 20).read())
    found.ensure_valid()
    return bytes(found.data)


def test_attribute_bits_without_a_meaning_are_stored_as_zero() -> None:
    header = decode_batch_header(stored(altered(attributes=0x0F40), LogConfig()))
    assert header.attributes == 0


def test_a_lying_largest_timestamp_is_put_right() -> None:
    for lie in (0, -1, 2**62):
        header = decode_batch_header(stored(altered(max_timestamp=lie), LogConfig()))
        assert header.max_timestamp == NOW_MS + 5


@pytest.mark.parametrize("timestamp", [0, -1, -5, NOW_MS - 365 * DAY_MS, NOW_MS + DAY_MS // 24])
def test_old_timestamps_and_none_are_accepted(timestamp: int) -> None:
    header = decode_batch_header(stored(batch(2, timestamp=timestamp), LogConfig()))
    assert header.max_timestamp == timestamp


@pytest.mark.parametrize("timestamp", [NOW_MS + 10 * DAY_MS, NOW_MS + DAY_MS // 24 + 1, 2**63 - 1])
def test_timestamps_in_the_future_are_refused_record_by_record(timestamp: int) -> None:
    records = [Record(None, b"v", (), NOW_MS), Record(None, b"v", (), timestamp), Record(None, b"v", (), NOW_MS)]
    with pytest.raises(ApiError) as refused:
        check_client_batch(encode_batch(records), LogConfig(), NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in refused.value.record_errors] == [1]
    assert refused.value.message == "One or more records have been rejected due to invalid timestamp"
    assert refused.value.record_errors[0].message == (
        f"Timestamp {timestamp} of message with offset 1 is out of range. The timestamp should be within "
        f"[{NOW_MS - (2**63 - 1)}, {NOW_MS + DAY_MS // 24}]"
    )


def test_timestamps_in_the_past_are_refused_where_the_topic_says_so() -> None:
    settings = config(message_timestamp_before_max_ms=1000)
    records = [Record(None, b"v", (), NOW_MS - age) for age in (1001, 1000, 5000)]
    with pytest.raises(ApiError) as refused:
        check_client_batch(encode_batch(records), settings, NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in refused.value.record_errors] == [0, 2]
    check_client_batch(encode_batch([Record(None, b"v", (), -1)]), settings, NOW_MS)


def test_append_time_does_not_ask_for_the_producers_timestamps() -> None:
    settings = config(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1000)
    header = decode_batch_header(stored(batch(2, timestamp=NOW_MS + 10 * DAY_MS), settings))
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == NOW_MS


def test_null_keys_on_a_compacted_topic_are_refused_record_by_record() -> None:
    records = [Record(None if index in (1, 2, 5) else b"k", b"v", (), NOW_MS) for index in range(7)]
    for codec in Compression:
        data = encode_batch(records, compression=codec)
        check_client_batch(data, LogConfig(), NOW_MS)
        with pytest.raises(ApiError) as refused:
            check_client_batch(data, config(cleanup_policy="compact"), NOW_MS)
        assert refused.value.code is INVALID
        assert refused.value.message.startswith("One or more records have been rejected due to 3 record errors")
        assert [error.batch_index for error in refused.value.record_errors] == [1, 2, 5]


def test_max_message_bytes_of_the_topic_counts() -> None:
    data = batch(value=bytes(2_000_000))
    assert check_client_batch(data, config(max_message_bytes=len(data)), NOW_MS).is_unchanged
    with pytest.raises(ApiError) as refused:
        check_client_batch(data, config(max_message_bytes=len(data) - 1), NOW_MS)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
@pytest.mark.parametrize("codec", list(Compression))
def test_compression_type_of_the_topic_is_applied(codec: Compression, target: str) -> None:
    records = [Record(b"k", b"value" * 20, (("h", b"x"),), NOW_MS + index) for index in range(20)]
    data = encode_batch(records, compression=codec, producer_id=4, producer_epoch=1, base_sequence=8)
    kept = stored(data, config(compression_type=target))
    header = decode_batch_header(kept)
    names = {"uncompressed": Compression.NONE, "producer": codec}
    assert header.compression is (names[target] if target in names else Compression[target.upper()])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 1, 8)
    assert list(iter_records(kept)) == [record._replace(offset=index) for index, record in enumerate(records)]


@examples(200)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255), st.sampled_from([Compression.NONE, Compression.LZ4]))
def test_a_changed_byte_is_refused_or_leaves_a_readable_batch(position: int, byte: int, codec: Compression) -> None:
    good = encode_batch(RECORDS, compression=codec)
    data = bytearray(good)
    data[position % len(data)] = byte
    for candidate in (bytes(data), altered(bytes(data))):
        try:
            checked = check_client_batch(candidate, LogConfig(), NOW_MS)
        except ApiError:
            continue
        header = checked.header
        assert len(list(iter_records(candidate))) == header.records_count
        kept = stored(candidate, LogConfig())
        assert [record.offset for record in iter_records(kept)] == list(range(header.records_count))


class Checked:
    """A check that was driven in turns: what it found, its turns and its jobs."""

    def __init__(self, data: bytes, settings: LogConfig | None = None, budget: CheckBudget | None = None) -> None:
        self.turns: list[int] = []
        self.jobs: list[Job] = []
        self.batch: CheckedBatch | None = None
        self.refusal: ApiError | None = None
        budget = budget or budget_of_request(len(data))
        steps = client_batch_steps(data, settings or config(max_message_bytes=len(data)), NOW_MS, budget)
        units = budget.left
        try:
            step = next(steps)
            while True:
                if step is None:
                    self.turns.append(units - budget.left)
                    budget.left = units
                    step = next(steps)
                    continue
                self.jobs.append(step)
                try:
                    result = step.run()
                except InvalidRecords as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            self.batch = end.value
        except ApiError as refusal:
            self.refusal = refusal
        self.turns.append(units - budget.left)


def verdict(check: Callable[[], CheckedBatch]) -> CheckedBatch | tuple[ErrorCode, str]:
    try:
        return check()
    except ApiError as refusal:
        return refusal.code, refusal.message


@examples(200)
@given(
    st.integers(0, len(GOOD) - 1),
    st.integers(0, 255),
    st.booleans(),
    st.sampled_from([LogConfig(), config(message_timestamp_type="LogAppendTime"), config(cleanup_policy="compact")]),
)
def test_the_check_at_once_says_what_all_steps_say(position: int, byte: int, is_summed: bool, topic: LogConfig) -> None:
    data = bytearray(GOOD)
    data[position] = byte
    candidate = altered(bytes(data)) if is_summed else bytes(data)

    def at_once() -> CheckedBatch:
        found = check_at_once(candidate, topic, NOW_MS, budget_of_request(len(candidate)))
        return found if isinstance(found, CheckedBatch) else check_client_batch(candidate, topic, NOW_MS)

    assert verdict(at_once) == verdict(lambda: check_client_batch(candidate, topic, NOW_MS))


def test_a_check_at_once_leaves_records_without_keys_to_the_steps_that_name_them() -> None:
    """Compaction has nothing to go by where there is no key (KAFKA-4808)."""
    data = encode_batch([Record(b"a", b"1", (), NOW_MS), Record(None, b"2", (), NOW_MS)])
    budget = budget_of_request(len(data))
    assert check_at_once(data, config(cleanup_policy="compact"), NOW_MS, budget) is None
    assert isinstance(check_at_once(data, config(), NOW_MS, budget), CheckedBatch)


def test_a_check_at_once_ends_with_its_turn_and_goes_on_from_there() -> None:
    rng = Random(1)
    records = [Record(b"key", rng.randbytes(rng.randrange(100)), (), NOW_MS) for _ in range(20_000)]
    data, budget = encode_batch(records), budget_of_request(0)
    units, turns = budget.left, 1
    topic = config(max_message_bytes=len(data))
    steps = check_at_once(data, topic, NOW_MS, budget)
    assert isinstance(steps, Generator)
    assert budget.left == 0
    found = None
    while found is None:
        budget.left = units
        turns += 1
        try:
            next(steps)
        except StopIteration as end:
            found = end.value
    assert found == check_client_batch(data, topic, NOW_MS)
    assert turns <= 20_000 * 1.1 // units + 2


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_of_an_ordinary_size_is_checked_in_place_and_in_one_turn(codec: Compression) -> None:
    records = [Record(b"key", b"value %d" % index * 10, (("h", b"x"),), NOW_MS) for index in range(200)]
    checked = Checked(encode_batch(records, compression=codec))
    assert checked.batch is not None
    assert (len(checked.turns), checked.jobs) == (1, [])


@pytest.mark.parametrize("codec", list(Compression))
def test_a_large_compressed_batch_is_decompressed_in_a_thread_and_walked_in_turns(codec: Compression) -> None:
    rng = Random(1)
    records = [Record(b"key", rng.randbytes(rng.randrange(100)), (), NOW_MS) for _ in range(20_000)]
    checked = Checked(encode_batch(records, compression=codec))
    assert checked.batch is not None
    assert [each.is_large for each in checked.jobs] == [False] * (codec is not Compression.NONE)
    assert len(checked.turns) >= 10
    assert max(checked.turns) < 2 * min(checked.turns[:-1])


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec is not Compression.NONE])
def test_a_batch_that_decompresses_to_a_hundred_megabytes_is_for_a_thread_that_has_no_other_such(
    codec: Compression,
) -> None:
    record = encode_record(Record(None, bytes(20 << 20)), 0, 0)
    checked = Checked(with_payload(compress(codec, record), codec=codec))
    assert checked.batch is not None
    assert [each.is_large for each in checked.jobs] == [False, True]


def test_a_large_batch_without_compression_is_copied_in_turns() -> None:
    checked = Checked(batch(value=bytes(30 << 20)))
    assert checked.batch is not None
    assert len(checked.turns) > 3
    assert checked.jobs == []


def one_record_of_headers(count: int) -> bytes:
    return raw_record(NULL, NULL, encode_zigzag(count), b"\x00\x01" * count)


def test_millions_of_headers_in_five_kilobytes_are_refused_before_they_are_walked() -> None:
    bomb = with_payload(compress(Compression.ZSTD, one_record_of_headers(20_000_000), 19), codec=4)
    assert len(bomb) < 5000
    checked = Checked(bomb)
    assert checked.refusal is not None
    assert checked.refusal.code is INVALID
    assert "headers" in checked.refusal.message
    assert len(checked.turns) <= 2


def test_as_many_headers_as_are_allowed_take_turns() -> None:
    checked = Checked(with_payload(compress(Compression.ZSTD, one_record_of_headers(MAX_HEADERS)), codec=4))
    assert checked.batch is not None
    assert len(checked.turns) > 50


def test_half_a_million_tiny_records_take_turns() -> None:
    records = [encode_record(Record(None, b"v" * (index % 2)), index, 0) for index in range(500_000)]
    head = encode_batch([Record(None, None, (), NOW_MS)])[:61]
    payload = compress(Compression.ZSTD, b"".join(records))
    data = altered(
        head + payload,
        batch_length=len(head) + len(payload) - 12,
        attributes=4,
        records_count=len(records),
        last_offset_delta=len(records) - 1,
    )
    checked = Checked(data)
    assert checked.batch is not None
    assert len(checked.turns) > 100


def test_gzip_members_without_end_are_refused_in_a_thread() -> None:
    checked = Checked(with_payload(compress(Compression.GZIP, b"") * 400_000, codec=1))
    assert checked.refusal is not None
    assert checked.refusal.code is ErrorCode.MESSAGE_TOO_LARGE
    assert len(checked.turns) == 1
    assert checked.jobs


def test_the_batches_of_a_request_share_what_they_may_decompress_to() -> None:
    """Two thousand of them would keep a broker busy for minutes."""
    bomb = with_payload(compress(Compression.ZSTD, encode_record(Record(None, bytes(60 << 20)), 0, 0), 19), codec=4)
    budget = budget_of_request(2_000 * len(bomb))
    found = [Checked(bomb, budget=budget) for _ in range(20)]
    fitting = sum(each.batch is not None for each in found)
    assert 2 <= fitting < 10
    refused = [each.refusal for each in found[fitting:]]
    assert {each.code for each in refused if each is not None} == {ErrorCode.MESSAGE_TOO_LARGE}
    assert None not in refused
    assert sum(len(each.jobs) for each in found[fitting + 1 :]) == 0


@pytest.mark.parametrize("target", ["gzip", "snappy", "lz4", "zstd"])
def test_what_the_topic_compresses_anew_is_compressed_in_a_thread(target: str) -> None:
    settings = config(max_message_bytes=1 << 20, compression_type=target)
    checked = Checked(batch(value=bytes(500_000)), settings)
    assert checked.batch is not None
    assert checked.batch.payload is not None
    assert len(checked.jobs) == 1


def test_a_batch_must_not_be_too_large_after_the_topic_compressed_it() -> None:
    bomb = encode_batch([Record(None, bytes(2 << 20), (), NOW_MS)], compression=Compression.ZSTD)
    for target in ("uncompressed", "snappy"):
        checked = Checked(bomb, config(max_message_bytes=60_000, compression_type=target))
        assert checked.refusal is not None
        assert checked.refusal.code is ErrorCode.MESSAGE_TOO_LARGE


def test_an_answer_names_a_thousand_records_at_most() -> None:
    late = [Record(b"k", b"v", (), NOW_MS + 10 * DAY_MS)] * 3_000
    without_keys = [Record(None, b"v", (), NOW_MS)] * 3_000
    for records, topic in ((late, LogConfig()), (without_keys, config(cleanup_policy="compact"))):
        checked = Checked(encode_batch(records), topic)
        assert checked.refusal is not None
        assert [each.batch_index for each in checked.refusal.record_errors] == list(range(1000))


def test_timestamps_are_compared_in_turns() -> None:
    records = [Record(b"k", b"v", (), NOW_MS)] * 20_000
    checked = Checked(encode_batch(records), config(message_timestamp_before_max_ms=1000))
    assert checked.batch is not None
    assert len(checked.turns) > 10


def test_the_time_of_the_append_counts_where_a_check_has_taken_its_time() -> None:
    settings = config(message_timestamp_type="LogAppendTime")
    log = open_log(SimulatedDisk(Random(1)), "/t-0", settings)
    data = batch(2, timestamp=NOW_MS)
    checked = check_client_batch(data, settings, NOW_MS)
    log.append_as_leader(data, 0, NOW_MS + 700, checked=checked)
    [found] = iter_batches(log.read(0, 1 << 20).read())
    assert found.header.max_timestamp == NOW_MS + 700


def refusal(data: bytes, topic: LogConfig) -> ApiError:
    with pytest.raises(ApiError) as raised:
        check_client_batch(data, topic, NOW_MS)
    return raised.value


@pytest.mark.parametrize("codec", [each for each in Compression if each is not Compression.NONE])
def test_a_record_of_a_compressed_batch_may_be_as_large_as_the_topic_says(codec: Compression) -> None:
    """Kafka 4.4 counts a record without the varint before it: 7 bytes here beside the value, and not the batch."""
    topic = config(max_decompressed_message_bytes=100)
    for size, is_taken in ((93, True), (94, False)):
        records = [Record(None, b"x", (), NOW_MS), *(Record(None, b"v" * size, (), NOW_MS) for _ in range(20))]
        data = encode_batch(records, compression=codec)
        if is_taken:
            assert check_client_batch(data, topic, NOW_MS).is_unchanged
        else:
            error = refusal(data, topic)
            assert error.code is ErrorCode.INVALID_RECORD
            assert "record 1 has 101 bytes, more than the topic's max.decompressed.message.bytes of 100" in str(error)
        assert check_client_batch(encode_batch(records), topic, NOW_MS).is_unchanged, "none is compressed"


@given(
    st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 3)), min_size=1, max_size=30),
    st.integers(1, 400),
)
def test_the_first_larger_record_is_the_one_at_fault(values: list[tuple[bytes, int]], limit: int) -> None:
    records = [Record(None, value, (("h", b""),) * headers, NOW_MS) for value, headers in values]
    sizes = [len(encode_record(each, index, 0)) for index, each in enumerate(records)]
    without_prefix = [size - (1 if size <= 64 else 2) for size in sizes]
    at_fault = next((index for index, size in enumerate(without_prefix) if size > limit), None)
    data = encode_batch(records, compression=Compression.ZSTD)
    topic = config(max_decompressed_message_bytes=limit)
    if at_fault is None:
        assert check_client_batch(data, topic, NOW_MS).is_unchanged
    else:
        assert f"record {at_fault} has {without_prefix[at_fault]} bytes" in str(refusal(data, topic))


def test_the_sizes_of_many_records_are_looked_at_in_turns() -> None:
    records = [Record(None, None, (), NOW_MS)] * 100_000
    budget = CheckBudget(2000)
    walk = first_larger_record(b"".join(encode_record(each, 0, 0) for each in records), 700_000, 6, budget)
    turns = 1
    for _ in walk:
        turns += 1
        budget.left = 2000
    assert turns == 50
    data = encode_batch(records, compression=Compression.ZSTD)
    assert check_client_batch(data, config(max_decompressed_message_bytes=100), NOW_MS).is_unchanged
