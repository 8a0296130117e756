"""Log lines as objects of JSON, one a line, for programs that collect them.

A line has `time` (UTC, ISO 8601), `level` (Kafka's name), `logger` and `message`, and `fields` and `exception` where
the record has them. Whatever a record holds, the line is valid JSON of printable ASCII.
"""

from __future__ import annotations

import json
import logging
import math
from datetime import UTC, datetime
from typing import Final

from .loggers import level_name

_OWN: Final = frozenset((*logging.makeLogRecord({}).__dict__, "message", "asctime"))
"""What each record has; all else was given as a field (`extra`)."""


class JsonFormatter(logging.Formatter):
    """The formatter of one handler."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record.created),
            "level": level_name(record.levelno),
            "logger": _text(record.name),
            "message": _message(record),
        }
        fields = {_text(name): _value(value) for name, value in record.__dict__.items() if name not in _OWN}
        if fields:
            line["fields"] = fields
        exception = self._exception(record)
        if exception:
            line["exception"] = _text(exception)
        return json.dumps(line, allow_nan=False)

    def _exception(self, record: logging.LogRecord) -> str:
        text = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        return "\n".join(part for part in (text, record.stack_info) if part)


def json_line(level: str, logger: str, message: str, **fields: object) -> str:
    """A line of a program that has no record for it. level: Kafka's name."""
    now = datetime.now(UTC).timestamp()
    line: dict[str, object] = {"time": _time(now), "level": level, "logger": logger, "message": _text(message)}
    if fields:
        line["fields"] = {name: _value(value) for name, value in fields.items()}
    return json.dumps(line, allow_nan=False)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    """The message; where its arguments do not fit, what was to be filled in."""
    try:
        return _text(record.getMessage())
    except (TypeError, ValueError, KeyError):
        return _text(f"{record.msg} {record.args!r}")


def _value(value: object) -> object:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return _text(str(value))


def _text(text: str) -> str:
    """The text without lone surrogates, which JSON could not give to everybody."""
    return text.encode("utf-8", "backslashreplace").decode()
