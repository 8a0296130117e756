"""Times, names and counts, as sentences have them."""

from __future__ import annotations

from datetime import UTC, datetime

from pykbroker.server.runtime.log_lines import printable


def duration(ms: int) -> str:
    """Return a duration such as "350 ms", "2.1 s", "5 min"."""
    if ms < 1_000:
        return f"{max(ms, 0)} ms"
    if ms < 120_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000} min" if ms < 7_200_000 else f"{ms // 3_600_000} h"


def moment(timestamp_ms: int) -> str:
    """Return a time in UTC; the number itself of one that no calendar has, as records may have it."""
    try:
        found = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return f"{found:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03d}Z"


def capital(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[:1].upper() + text[1:]


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def client(client_id: str, host: str) -> str:
    """Return whose a request was: "client app at 10.0.0.1"."""
    named = f"client {printable(client_id)}" if client_id else "a client without an id"
    return f"{named} at {host.lstrip('/')}" if host else named
