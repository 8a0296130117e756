"""Records of the metadata log are bytes here, before it is known where in the log they will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.long_work import LongWork
from pykbroker.metadata.records import encode_record
from pykbroker.protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    assemble_batch,
)
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.records.record import encode_record as encode_batch_record
from pykbroker.protocol.schema import Message

_STEPS_PER_RECORD: Final = 8


@dataclass(frozen=True, slots=True)
class EncodedRecords:
    """The encoded records are one atomic batch. payload: its records' bytes."""

    messages: Sequence[Message]
    payload: bytes
    timestamp_ms: int

    def batch(self, base_offset: int, epoch: int) -> bytes:
        return assemble_batch(
            self.payload,
            base_offset=base_offset,
            partition_leader_epoch=epoch,
            attributes=0,
            last_offset_delta=len(self.messages) - 1,
            base_timestamp=self.timestamp_ms,
            max_timestamp=self.timestamp_ms,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            records_count=len(self.messages),
        )


def encode_records(messages: Sequence[Message], now_ms: int) -> LongWork[EncodedRecords]:
    encoded = []
    for delta, message in enumerate(messages):
        record = Record(key=None, value=encode_record(message), timestamp=now_ms)
        encoded.append(encode_batch_record(record, delta, 0))
        yield _STEPS_PER_RECORD
    return EncodedRecords(messages, b"".join(encoded), now_ms)
