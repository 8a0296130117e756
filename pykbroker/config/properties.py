"""A reader of Java's `.properties` files, in the dialect of `java.util.Properties`.

The grammar itself (escapes, continuation lines, three separators) is the library's; it is imported only when a file
is given, to keep the start of a broker without one quick.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .keys import ConfigurationError

_LARGEST_BYTES: Final = 16 << 20
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class PropertiesFile:
    """The contents of one file. lines: where each key stands, from 1, once or several times; the last value counts."""

    values: dict[str, str]
    lines: dict[str, list[int]]


def read_properties_file(path: str | Path) -> PropertiesFile:
    """The file's keys and values with their lines. Raises ConfigurationError."""
    import javaproperties

    file = PropertiesFile({}, {})
    line = 1
    try:
        for element in javaproperties.parse(_read(path)):
            if isinstance(element, javaproperties.KeyValue):
                check_text(element.key + element.value)
                file.values[element.key] = element.value
                file.lines.setdefault(element.key, []).append(line)
            line += len(_LINE_END.findall(element.source))
    except ValueError as error:
        raise ConfigurationError(f"Malformed properties file {path}, line {line}: {error}") from None
    return file


def check_text(text: str) -> None:
    """Raise ValueError for what UTF-8 cannot carry to another node, or to a client that asks for the settings."""
    if any("\ud800" <= each <= "\udfff" for each in text if each > "\x7f"):
        raise ValueError("half of a surrogate pair, or a byte outside of UTF-8, is no text")


def _read(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"Cannot read the properties file {path}: {error.strerror}") from None
    if len(data) > _LARGEST_BYTES:
        raise ConfigurationError(f"The properties file {path} has more than {_LARGEST_BYTES >> 20} MiB")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigurationError(f"The properties file {path} is in UTF-16; save it as UTF-8")
    return data.removeprefix(codecs.BOM_UTF8)  # of Windows' editors; Java would take it for a part of the first key


def read_properties(path: str | Path) -> dict[str, str]:
    """The file's keys and values; a key that stands twice has its last value. Raises ConfigurationError."""
    return read_properties_file(path).values
