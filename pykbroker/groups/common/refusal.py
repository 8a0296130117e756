"""Why a request is not carried out: the code, and for those who read the words what exactly is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Refusal:
    error_code: ErrorCode
    message: str
