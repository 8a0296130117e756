"""The error of an append that names the records at fault (KIP-467). Every other refusal is a plain `ApiError`."""

from collections.abc import Sequence
from typing import NamedTuple

from pykbroker.protocol.errors import ApiError, ErrorCode


class RecordError(NamedTuple):
    """The error of one record: its index in the batch, from 0, and the reason (Kafka's `RecordError`)."""

    batch_index: int
    message: str


class FrameError(ApiError):
    """A Produce's records are not one whole batch of format 2; Kafka's `ProduceRequest.validateRecords`."""


class RecordValidationError(ApiError):
    """A batch is refused because of single records, and nothing was appended; Kafka's `RecordValidationException`."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)
