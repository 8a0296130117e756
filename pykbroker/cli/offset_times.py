"""Places in logs that `pykbroker offsets --time` names: Kafka's words and numbers, or a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

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
_AGO: Final = re.compile(r"((?:[0-9]{1,12}\s*(?:ms|s|m|h|d|w)\s*)+)ago")
_PART: Final = re.compile(r"([0-9]+)\s*(ms|s|m|h|d|w)")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_time(text: str, now_ms: int) -> int:
    """Return a timestamp in milliseconds, or the negative number of a place. Raises CommandFailed."""
    wanted = text.strip().lower()
    if wanted in _WORDS:
        return _WORDS[wanted]
    if re.fullmatch(r"-?[0-9]{1,19}", wanted):
        number = int(wanted)
        if min(_WORDS.values()) <= number <= _LARGEST:
            return number
    timestamp_ms = _moment_ms(wanted, now_ms)
    if timestamp_ms is None or not 0 <= timestamp_ms <= _LARGEST:
        raise CommandFailed(
            f"Malformed time argument {text[:80]}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / "
            "-4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, milliseconds since 1970, "
            "a time like 2026-11-29T10:00:00Z, or '5m ago'"
        )
    return timestamp_ms


def _moment_ms(text: str, now_ms: int) -> int | None:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now_ms - sum(int(amount) * _UNITS_MS[unit] for amount, unit in _PART.findall(ago[1]))
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
