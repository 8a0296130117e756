"""The error of record bytes that cannot be taken."""

from pykbroker.protocol.errors import ApiError, ErrorCode


class InvalidRecords(ApiError):
    """Record bytes break Kafka's format or a limit; Kafka's `InvalidRecordException` and `CorruptRecordException`.

    Whoever reads a log or a snapshot catches it as damage. A producer whose batch is checked gets `code` as its answer.
    """

    message: str

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(code, message)
