"""Moments in words: a time of ISO 8601 (UTC without a zone), @MILLISECONDS, "5m ago", now, today and yesterday."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH_MS: Final = re.compile(r"@(-?[0-9]{1,19})")
_UNIT: Final = r"(ms|[smhdw](?![a-z])|millisecond|second|sec|minute|min|hour|day|week)s?"
_AGO: Final = re.compile(rf"(?P<parts>(?:[0-9]{{1,12}}(?:\.[0-9]{{1,9}})?\s*{_UNIT}\s*)+)ago")
_PART: Final = re.compile(rf"([0-9.]+)\s*{_UNIT}")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DAYS_BACK: Final = {"today": 0, "yesterday": 1}


def moment_ms(text: str, now_ms: int) -> int | None:
    """Return milliseconds since 1970, which may be too many or too few for a record; None for what is no moment."""
    wanted = text.strip().lower()
    epoch = _EPOCH_MS.fullmatch(wanted)
    if epoch is not None:
        return int(epoch[1])
    ago = _AGO.fullmatch(wanted)
    if ago is not None:
        return now_ms - round(sum(float(amount) * _unit_ms(unit) for amount, unit in _PART.findall(ago["parts"])))
    if wanted == "now":
        return now_ms
    if wanted in _DAYS_BACK:
        midnight = datetime.fromtimestamp(now_ms / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return round((midnight - timedelta(days=_DAYS_BACK[wanted])).timestamp() * 1000)
    try:
        moment = datetime.fromisoformat(wanted.upper())
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _unit_ms(unit: str) -> int:
    """`m`, `min` and `minute` are the same; of milliseconds more than the first letter counts."""
    return _UNITS_MS["ms" if unit.startswith(("ms", "milli")) else unit[0]]
