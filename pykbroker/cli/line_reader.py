"""Lines of text to records, with the settings of Kafka's `LineMessageReader`.

A line is `[headers<delimiter>][key<separator>]value`. Bytes are not decoded: what is not UTF-8 stays as it is, apart
from header names, which the protocol defines as text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pykbroker.protocol.records.batch import Header

_MOST_SHOWN_CHARACTERS = 80


class InvalidLine(Exception):
    """A line, a key or a value does not have the form that is asked for, or the settings contradict each other."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class LineReader:
    parse_key: bool = False
    parse_headers: bool = False
    key_separator: bytes = b"\t"
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None
    ignore_error: bool = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Kafka's names; unknown ones are ignored, as Kafka does. Raises InvalidLine."""
        reader = cls(
            parse_key=boolean(properties, "parse.key"),
            parse_headers=boolean(properties, "parse.headers"),
            key_separator=os.fsencode(properties.get("key.separator", "\t")),
            headers_delimiter=os.fsencode(properties.get("headers.delimiter", "\t")),
            headers_separator=os.fsencode(properties.get("headers.separator", ",")),
            headers_key_separator=os.fsencode(properties.get("headers.key.separator", ":")),
            null_marker=os.fsencode(properties["null.marker"]) if "null.marker" in properties else None,
            ignore_error=boolean(properties, "ignore.error"),
        )
        reader._check_separators()
        return reader

    def _check_separators(self) -> None:
        names = {
            "key.separator": self.key_separator,
            "headers.delimiter": self.headers_delimiter,
            "headers.separator": self.headers_separator,
            "headers.key.separator": self.headers_key_separator,
        }
        for name, separator in names.items():
            if not separator:
                raise InvalidLine(f"{name} may not be empty")
            if separator == self.null_marker:
                raise InvalidLine(f"null.marker and {name} may not be equal")
        for one, other in (
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ):
            if names[one] == names[other]:
                raise InvalidLine(f"{one} and {other} may not be equal")

    def parse(self, line: bytes, number: int) -> ParsedLine:
        """`line` without its line end; `number` counts from 1. Raises InvalidLine."""
        headers: tuple[Header, ...] = ()
        key = None
        if self.parse_headers:
            text, line = self._split(line, self.headers_delimiter, "headers delimiter", number)
            if text is not None and text != self.null_marker:
                headers = tuple(self._header(pair, number) for pair in text.split(self.headers_separator))
        if self.parse_key:
            key, line = self._split(line, self.key_separator, "key separator", number)
        return ParsedLine(self._unless_null(key), self._unless_null(line), headers)

    def _split(self, line: bytes, separator: bytes, name: str, number: int) -> tuple[bytes | None, bytes]:
        head, found, tail = line.partition(separator)
        if found:
            return head, tail
        if self.ignore_error:
            return None, line
        raise InvalidLine(f"No {name} found on line number {number}: '{_text(line)}'")

    def _header(self, pair: bytes, number: int) -> Header:
        name, found, value = pair.partition(self.headers_key_separator)
        if name == self.null_marker:
            raise InvalidLine(f"A header's name may not be the null marker '{_text(name)}' on line number {number}")
        if found:
            return name.decode("utf-8", "surrogateescape"), self._unless_null(value)
        if self.ignore_error:
            return name.decode("utf-8", "surrogateescape"), None
        raise InvalidLine(f"No header key separator found in pair '{_text(pair)}' on line number {number}")

    def _unless_null(self, data: bytes | None) -> bytes | None:
        return None if data == self.null_marker else data


def boolean(properties: Mapping[str, str], name: str) -> bool:
    text = properties.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidLine(f"{name} must be true or false, not '{properties[name]}'")
    return text == "true"


def _text(data: bytes) -> str:
    """Return text for a message: a line may be long, and may hold what would steer a terminal."""
    text = data[: 4 * _MOST_SHOWN_CHARACTERS].decode("utf-8", "replace")
    shown = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:_MOST_SHOWN_CHARACTERS]
    )
    return shown if len(text) <= _MOST_SHOWN_CHARACTERS else f"{shown}…"
