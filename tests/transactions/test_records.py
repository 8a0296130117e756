"""The records of `__transaction_state`, and what cannot be one."""

from __future__ import annotations

import pytest

from pykbroker.protocol.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from pykbroker.state_machine import BadRecord, UnknownRecord
from pykbroker.transactions.records import TransactionRecord, decode_record

KEY = TransactionLogKey(transactional_id="payments")
VALUE = TransactionLogValue(
    producer_id=4000,
    producer_epoch=3,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=[PartitionsSchema(topic="orders", partition_ids=[0, 2])],
    transaction_last_update_timestamp_ms=1_700_000_000_500,
    transaction_start_timestamp_ms=1_700_000_000_000,
)


@pytest.mark.parametrize("version", [0, 1])
def test_a_record_comes_back_as_it_was_written(version: int) -> None:
    record = TransactionRecord(KEY, VALUE, version)
    key, value = record.encode()
    assert decode_record(key, value) == record
    assert record.size_bytes == len(key) + len(value or b"")


def test_a_tombstone_has_no_value() -> None:
    key, value = TransactionRecord(KEY, None).encode()
    assert value is None
    assert decode_record(key, None) == TransactionRecord(KEY, None)


def test_version_1_carries_what_the_second_protocol_needs() -> None:
    value = TransactionLogValue(
        producer_id=1, previous_producer_id=2, next_producer_id=3, client_transaction_version=2, transaction_status=0
    )
    decoded = decode_record(*TransactionRecord(KEY, value, 1).encode()).value
    assert decoded is not None
    assert (decoded.previous_producer_id, decoded.next_producer_id, decoded.client_transaction_version) == (2, 3, 2)


def test_records_of_a_later_kafka_are_unknown_not_guessed_at() -> None:
    key, value = TransactionRecord(KEY, VALUE).encode()
    with pytest.raises(UnknownRecord, match="TransactionLogKey of version 1"):
        decode_record(b"\x00\x01" + key[2:], value)
    with pytest.raises(UnknownRecord, match="TransactionLogValue of version 2"):
        decode_record(key, b"\x00\x02" + (value or b"")[2:])


def test_bytes_that_are_no_record_are_refused() -> None:
    key, value = TransactionRecord(KEY, VALUE).encode()
    assert value is not None
    for bad_key, bad_value in [
        (None, value),
        (b"", value),
        (key[:-1], value),
        (key + b"x", value),
        (key, b""),
        (key, value[:-1]),
        (key, value + b"x"),
    ]:
        with pytest.raises(BadRecord):
            decode_record(bad_key, bad_value)
