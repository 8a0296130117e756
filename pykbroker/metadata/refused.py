"""A part of a request that the controller does not carry out: an error code and Kafka's words for it."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode


class Refused(Exception):
    """Raised by a rule, caught where the row of the answer is written."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
