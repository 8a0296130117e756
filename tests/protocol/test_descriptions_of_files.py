"""Record batches, control records and index entries: what the codecs write is what `construct` describes."""

from __future__ import annotations

from typing import Any

import construct
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.compile import encode
from pykbroker.protocol.descriptions.index_files import OFFSET_ENTRY, TIME_ENTRY
from pykbroker.protocol.descriptions.internal_topics import parse_coordinator_record, parse_metadata_record
from pykbroker.protocol.descriptions.messages import fields_by_name
from pykbroker.protocol.descriptions.record_batches import BATCH, CONTROL_KEY, CONTROL_VALUES, RECORD
from pykbroker.protocol.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.messages.metadata_records import TopicRecord
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression, decompress
from pykbroker.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    encode_control_key,
    encode_end_transaction_batch,
)
from pykbroker.protocol.schema import Message
from tests.examples import examples

from .maker import make_message

binary = st.none() | st.binary(max_size=200)
records = st.builds(
    Record,
    key=binary,
    value=binary,
    headers=st.lists(st.tuples(st.text(max_size=5), binary), max_size=3).map(tuple),
    timestamp=st.integers(0, 2**45),
)


def parse_records(batch: Any) -> Any:
    codec = Compression(int(batch.attributes.compression))
    return construct.Array(batch.records_count, RECORD).parse(bytes(decompress(codec, batch.records)))


@examples(60)
@given(
    batch_records=st.lists(records, min_size=1, max_size=5),
    codec=st.sampled_from(list(Compression)),
    base_offset=st.integers(0, 2**60),
    producer_id=st.integers(-1, 2**60),
    base_sequence=st.integers(-1, 2**31 - 1),
    is_transactional=st.booleans(),
)
def test_batches_are_described_as_they_are_written(
    batch_records: list[Record],
    codec: Compression,
    base_offset: int,
    producer_id: int,
    base_sequence: int,
    is_transactional: bool,
) -> None:
    written = encode_batch(
        batch_records,
        base_offset=base_offset,
        compression=codec,
        producer_id=producer_id,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )
    batch = BATCH.parse(written)
    assert batch.batch_length == len(written) - 12
    assert (batch.base_offset, batch.magic, batch.last_offset_delta) == (base_offset, 2, len(batch_records) - 1)
    assert (batch.producer_id, batch.base_sequence) == (producer_id, base_sequence)
    assert batch.attributes.is_transactional is is_transactional
    assert str(batch.attributes.compression) == codec.name.lower()
    assert batch.max_timestamp == max(record.timestamp for record in batch_records)
    found = [
        (
            record.offset_delta,
            batch.base_timestamp + record.timestamp_delta,
            record.key,
            record.value,
            tuple((header.key, header.value) for header in record.headers),
        )
        for record in parse_records(batch)
    ]
    assert found == [
        (number, record.timestamp, record.key, record.value, _raw_headers(record))
        for number, record in enumerate(batch_records)
    ]
    assert BATCH.build(batch) == written


def _raw_headers(record: Record) -> tuple[tuple[bytes, bytes | None], ...]:
    return tuple((key.encode(), value) for key, value in record.headers)


def test_transaction_markers_are_described_as_they_are_written() -> None:
    for kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
        marker = EndTransactionMarker(kind, coordinator_epoch=7)
        batch = BATCH.parse(encode_end_transaction_batch(marker, producer_id=3, producer_epoch=1, timestamp=5))
        assert batch.attributes.is_control
        [record] = parse_records(batch)
        name = str(CONTROL_KEY.parse(record.key).type)
        assert name == kind.name.lower()
        assert CONTROL_VALUES[name].parse(record.value).coordinator_epoch == 7


@pytest.mark.parametrize(
    ("kind", "cls"),
    [
        (ControlRecordType.LEADER_CHANGE, LeaderChangeMessage),
        (ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord),
        (ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord),
        (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord),
        (ControlRecordType.KRAFT_VOTERS, VotersRecord),
    ],
)
@examples(10)
@given(seed=st.integers(0, 2**32))
def test_control_records_of_the_quorum_are_described_as_they_are_declared(
    kind: ControlRecordType, cls: type[Message], seed: int
) -> None:
    description = CONTROL_VALUES[str(CONTROL_KEY.parse(encode_control_key(kind)).type)]
    versions = cls.__schema__.versions
    for version in range(versions.low, versions.high + 1):
        message = make_message(cls, version, seed)
        message.version = version  # type: ignore[attr-defined]
        written = encode(message, version)
        parsed = description.parse(written)
        assert description.build(parsed) == written
        for f in cls.__schema__.fields:
            value = getattr(message, f.name)
            assert len(parsed[f.name]) == len(value) if isinstance(value, list) else parsed[f.name] == value


def test_index_entries_have_the_sizes_of_kafkas_files() -> None:
    assert (OFFSET_ENTRY.sizeof(), TIME_ENTRY.sizeof()) == (8, 12)
    entry = OFFSET_ENTRY.parse(b"\x00\x00\x00\x05\x00\x00\x10\x00")
    assert (entry.relative_offset, entry.position) == (5, 4096)
    entry = TIME_ENTRY.parse(b"\x00\x00\x00\x00\x00\x00\x03\xe8\x00\x00\x00\x07")
    assert (entry.timestamp, entry.relative_offset) == (1000, 7)


def test_records_of_internal_topics_are_found_by_their_type() -> None:
    topic = TopicRecord(name="t", topic_id=bytes(range(16)))
    record = parse_metadata_record(b"\x01\x02\x00" + encode(topic, 0))
    assert (record.cls, record.version) == (TopicRecord, 0)
    assert (record.fields.name, record.fields.topic_id) == ("t", bytes(range(16)))
    assert fields_by_name(TopicRecord, record.fields, 0) == {"name": "t", "topic_id": "AAECAwQFBgcICQoLDA0ODw"}

    raw_key = b"\x00\x01" + encode(OffsetCommitKey(group="g", topic="t", partition=3), 0)
    raw_value = b"\x00\x04" + encode(OffsetCommitValue(offset=42), 4)
    key, value = parse_coordinator_record("__consumer_offsets", raw_key, raw_value)
    assert (key.cls, key.fields.group, key.fields.partition) == (OffsetCommitKey, "g", 3)
    assert value is not None
    assert (value.cls, value.version, value.fields.offset) == (OffsetCommitValue, 4, 42)
    assert parse_coordinator_record("__consumer_offsets", raw_key, None)[1] is None
    with pytest.raises(KeyError):
        parse_coordinator_record("__consumer_offsets", b"\x7f\xff", None)
