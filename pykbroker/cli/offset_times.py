"""Places in logs that `pykbroker offsets --time` names: Kafka's words and numbers, or a moment."""

from __future__ import annotations

import re
from typing import Final

from pykbroker.client.moments import moment_ms
from pykbroker.client.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)

from .command import CommandFailed

_WORDS: Final = {
    "latest": LATEST_TIMESTAMP,
    "earliest": EARLIEST_TIMESTAMP,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL_TIMESTAMP,
    "latest-tiered": LATEST_TIERED_TIMESTAMP,
    "earliest-pending-upload": EARLIEST_PENDING_UPLOAD_TIMESTAMP,
}
_LARGEST: Final = 2**63 - 1


def parse_time(text: str, now_ms: int) -> int:
    """Return a timestamp in milliseconds, or the negative number of a place. Raises CommandFailed."""
    wanted = text.strip().lower()
    if wanted in _WORDS:
        return _WORDS[wanted]
    if re.fullmatch(r"-?[0-9]{1,19}", wanted):
        number = int(wanted)
        if min(_WORDS.values()) <= number <= _LARGEST:
            return number
    timestamp_ms = moment_ms(wanted, now_ms)
    if timestamp_ms is None or not 0 <= timestamp_ms <= _LARGEST:
        raise CommandFailed(
            f"Malformed time argument {text[:80]}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / "
            "-4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, milliseconds since 1970, "
            "a time like 2026-11-29T10:00:00Z, '5m ago', now, today or yesterday"
        )
    return timestamp_ms
