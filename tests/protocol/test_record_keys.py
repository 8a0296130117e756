"""Keys read without values are those that reading everything gives, and damage is told, not stepped over."""

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.records.batch import (
    Record,
    RecordBatch,
    encode_batch,
    iter_batches,
    iter_records,
    record_keys,
    records_payload,
)
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import decode_records
from pykbroker.protocol.records.record_parts import (
    TOMBSTONE,
    WITH_VALUE,
    WITHOUT_KEY,
    decode_keys,
    join_records,
    slice_records,
)

TEXT = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.builds(
        Record,
        key=TEXT,
        value=TEXT,
        headers=st.lists(st.tuples(st.text(max_size=5), TEXT), max_size=2),
        timestamp=st.integers(0, 200) | st.integers(0, 2**40),
    ),
    min_size=1,
    max_size=100,
)


@given(records=RECORDS, codec=st.sampled_from([Compression.NONE, Compression.LZ4]), base_offset=st.integers(0, 2**40))
def test_keys_are_those_of_the_records(records: list[Record], codec: Compression, base_offset: int) -> None:
    (batch,) = iter_batches(encode_batch(records, compression=codec, base_offset=base_offset))
    assert isinstance(batch, RecordBatch)
    found = record_keys(batch)
    expected = list(iter_records(batch))
    assert found.keys == [record.key for record in expected]
    assert [base_offset + delta for delta in found.offset_deltas] == [record.offset for record in expected]
    assert list(found.kinds) == [
        WITHOUT_KEY if record.key is None else TOMBSTONE if record.value is None else WITH_VALUE for record in expected
    ]


@given(data=st.binary(max_size=300), count=st.integers(0, 20))
def test_any_bytes_are_keys_or_an_error(data: bytes, count: int) -> None:
    try:
        found = decode_keys(data, count)
    except InvalidRecords:
        return
    assert len(found.keys) == len(found.offset_deltas) == len(found.kinds) == count


@given(records=RECORDS, shift=st.integers(-(2**40), 2**40), data=st.data())
def test_records_that_are_copied_differ_in_their_timestamps_alone(
    records: list[Record], shift: int, data: st.DataObject
) -> None:
    (batch,) = iter_batches(encode_batch(records))
    payload = records_payload(batch.header, batch.data)
    slices = slice_records(payload, len(records), range(len(records)))
    assert join_records(payload, ((each, each.timestamp_delta) for each in slices)) == payload
    chosen = data.draw(st.lists(st.sampled_from(range(len(records))), unique=True).map(sorted))
    chosen_slices = slice_records(payload, len(records), set(chosen))
    assert chosen_slices == [slices[index] for index in chosen]
    copied = join_records(payload, ((each, each.timestamp_delta + shift) for each in chosen_slices))
    found = list(decode_records(copied, len(chosen), 0, batch.header.base_timestamp - shift))
    assert found == [list(iter_records(batch))[index] for index in chosen]


@given(data=st.binary(max_size=300), count=st.integers(0, 20))
def test_any_bytes_are_slices_or_an_error(data: bytes, count: int) -> None:
    try:
        found = slice_records(data, count, range(-(2**31), 2**31))
    except InvalidRecords:
        return
    assert b"".join(data[each.start : each.end] for each in found) == data
