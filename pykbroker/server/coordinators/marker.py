"""A marker is the end of a transaction as it is written into one partition: what a coordinator decided, and its control
batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The marker says how a producer's transaction ended. transaction_version: 2 where a producer has a new epoch after
    each transaction, which is the marker's then.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int

    def encode(self, timestamp_ms: int) -> bytes:
        control_type = ControlRecordType.COMMIT if self.is_commit else ControlRecordType.ABORT
        return encode_end_transaction_batch(
            EndTransactionMarker(control_type, self.coordinator_epoch),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            timestamp=timestamp_ms,
        )
