"""Control records: transaction markers as Kafka wrote them, and the keys of raft's records."""

from pathlib import Path

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import Record, iter_batches, iter_records
from pykbroker.protocol.records.control import (
    ControlRecordType,
    decode_control_key,
    decode_end_transaction_marker,
    encode_control_key,
    encode_end_transaction_batch,
)
from pykbroker.protocol.records.errors import InvalidRecords


def test_markers_that_kafka_wrote_are_read_and_written_alike() -> None:
    data = (Path(__file__).parent / "real_batches" / "transaction-markers.log").read_bytes()
    markers = [batch for batch in iter_batches(data) if batch.header.is_control]
    found = [decode_end_transaction_marker(record) for batch in markers for record in iter_records(batch)]
    assert [marker.control_type for marker in found] == [ControlRecordType.COMMIT, ControlRecordType.ABORT]
    for batch, marker in zip(markers, found, strict=True):
        header = batch.header
        written = encode_end_transaction_batch(
            marker,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            timestamp=header.base_timestamp,
        )
        assert written[21:] == bytes(batch.data[21:])


def test_unknown_control_type_is_passed_over() -> None:
    assert decode_control_key(b"\x00\x00\x00\x63") is None


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_what_is_no_control_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(InvalidRecords):
        decode_control_key(key)


@pytest.mark.parametrize("control_type", list(ControlRecordType))
def test_keys_go_there_and_back(control_type: ControlRecordType) -> None:
    assert decode_control_key(encode_control_key(control_type)) is control_type


def test_marker_without_its_value_is_refused() -> None:
    key = encode_control_key(ControlRecordType.COMMIT)
    for value in (None, b"", b"\x00\x00\x00"):
        with pytest.raises(InvalidRecords) as refused:
            decode_end_transaction_marker(Record(key, value))
        assert refused.value.code is ErrorCode.INVALID_RECORD
    with pytest.raises(InvalidRecords):
        decode_end_transaction_marker(Record(encode_control_key(ControlRecordType.LEADER_CHANGE), bytes(6)))
