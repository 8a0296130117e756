"""Finding the end of a transaction in a control batch of the log."""

from pykbroker.protocol.records.batch import iter_records
from pykbroker.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    decode_control_key,
    decode_end_transaction_marker,
)

from ..files.disk import Buffer

_ENDS = (ControlRecordType.COMMIT, ControlRecordType.ABORT)


def find_marker(control_batch: Buffer) -> EndTransactionMarker | None:
    """Return None for other control records. Raises `InvalidRecords` where the batch holds none."""
    for record in iter_records(control_batch):
        if decode_control_key(record.key) in _ENDS:
            return decode_end_transaction_marker(record)
    return None
