"""Parsed bytes as lines of text for people: one field a line, nested parts indented.

Whatever came from a peer or a file is escaped: no control character reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pykbroker.protocol.errors import ErrorCode

from .output import stdout_is_terminal
from .printable import printable as printable

if TYPE_CHECKING:
    from rich.console import Console

INDENT = "  "
_PREVIEW_BYTES = 48
_LATEST_MS = 253_402_300_799_999


def field_lines(fields: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """`name: value`, and what is nested below its name."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield f"{INDENT * depth}{name}:"
            yield from field_lines({str(key): inner for key, inner in value.items()}, depth + 1)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield f"{INDENT * depth}{name}:"
            for element in value:
                yield from _element_lines(element, depth + 1)
        else:
            yield f"{INDENT * depth}{name}: {_scalar(name, value)}"


def _element_lines(element: Mapping[str, Any], depth: int) -> Iterator[str]:
    lines = list(field_lines(element, depth + 1)) or [INDENT * (depth + 1) + "(no fields)"]
    yield f"{INDENT * depth}- {lines[0].lstrip()}"
    yield from lines[1:]


def _scalar(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_scalar('', element) for element in value)}]"
    if isinstance(value, bytes):
        return preview(value)
    if isinstance(value, str):
        return printable(value) or '""'
    if name.endswith("error_code") and isinstance(value, int):
        return f"{value} {_error_name(value)}"
    return "null" if value is None else str(value)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return "(unknown)"


def preview(data: bytes | None, limit: int | None = _PREVIEW_BYTES) -> str:
    """Bytes as text where they are text, else in hexadecimal; cut where they are longer than the limit."""
    if data is None:
        return "null"
    limit = len(data) if limit is None else limit
    shown, rest = data[:limit], len(data) - limit
    try:
        text = printable(shown.decode("ascii"))
        text = shown.hex() if "\\" in text else f'"{text}"'
    except UnicodeDecodeError:
        text = shown.hex()
    return f"{text}… {rest} more bytes" if rest > 0 else text


def timestamp_text(timestamp_ms: int) -> str:
    if not 0 <= timestamp_ms <= _LATEST_MS:
        return str(timestamp_ms)
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def print_line(line: str, console: Console | None = None) -> None:
    """Print a line, on a terminal in colours: its place, names of fields, and what is wrong.

    console: the terminal's, where something else is drawn there, too.
    """
    if not stdout_is_terminal():
        click.echo(line)
        return
    from rich.console import Console
    from rich.text import Text

    text = Text(line, overflow="fold")
    text.highlight_regex(r"^@\d+ ", "dim")
    text.highlight_regex(r"^ *(- )?[a-z0-9_]+:", "cyan")
    text.highlight_regex(r"crc WRONG( \(.*?\))?|^ *! .*", "bold red")
    (console or Console()).print(text, soft_wrap=True)
