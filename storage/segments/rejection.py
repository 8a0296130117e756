"""The refusal of records that a producer sent: expected, and answered with an error code."""

from collections.abc import Sequence
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode


class RecordError(NamedTuple):
    """Which record of the batch, counted from 0, and why (KIP-467)."""

    batch_index: int
    message: str


class RecordsRejected(Exception):
    """Nothing was appended. `record_errors` names the records at fault, where single ones are."""

    def __init__(self, error_code: ErrorCode, message: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
        self.record_errors = tuple(record_errors)
