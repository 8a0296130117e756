"""The one exception for record bytes that cannot be taken: which error code a client gets, and why."""

from pykbroker.protocol.errors import ErrorCode


class InvalidRecords(Exception):
    """Record bytes that break Kafka's format or a limit; `error_code` is what the broker answers."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
