r"""Texts of variables as values of properties, and secrets in files that variables name.

The images write each variable into `server.properties`, so its text is read as a line of that file: blanks before it
go, and `\n`, `\\` and a backslash before a line end mean there what they mean here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pykbroker.config import ConfigurationError

MOST_BYTES: Final = 1 << 20
_CONTINUATION = re.compile(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*")
_ENDS_OF_LINES = ("\n", "\r")
_OF_SEVERAL_LINES = (
    "sasl.jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
)
"""Keys, or their ends for one listener, whose values have line ends of their own."""


def value_of(variable: str, key: str, text: str) -> str:
    """The value of a property. Raises ConfigurationError for a text that would be several lines of the file."""
    value = _CONTINUATION.sub(r"\1", text.strip("\r\n")).lstrip(" \t\f")
    if any(end in value for end in _ENDS_OF_LINES) and not key.endswith(_OF_SEVERAL_LINES):
        raise ConfigurationError(f"{variable} has a line break in its value; {key} is one line")
    if "\0" in value:
        raise ConfigurationError(f"{variable} has a zero byte in its value")
    if "\\" not in value:
        return value
    import javaproperties

    try:
        return javaproperties.unescape(value)
    except ValueError as error:
        raise ConfigurationError(f"{variable}: {error}") from None


def file_text(variable: str, path: Path) -> str:
    """The text of a file that a variable names, without the line ends at its end. Raises ConfigurationError."""
    if path.is_fifo():
        raise ConfigurationError(f"{variable}: {path} is a pipe, and no start waits for its writer; give a file")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{variable}: {path} cannot be read: {error.strerror or error}") from None
    if len(content) > MOST_BYTES:
        raise ConfigurationError(f"{variable}: {path} has more than {MOST_BYTES} bytes")
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{variable}: {path} is no text in UTF-8") from None


def existing_file(variable: str, path: Path) -> str:
    """The path of a file that must be there. Raises ConfigurationError."""
    if not path.is_file():
        raise ConfigurationError(f"{variable}: there is no file {path}")
    return str(path)


def one_of(variable: str, variables: Mapping[str, str], default: str, allowed: tuple[str, ...]) -> str:
    """The value of a variable that allows a few. Raises ConfigurationError."""
    text = variables.get(variable, "").strip() or default
    if text not in allowed:
        raise ConfigurationError(f"{variable}={text!r}: {', '.join(allowed)} are allowed")
    return text
