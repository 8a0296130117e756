"""A reader of Java's `.properties` files, in the dialect of `java.util.Properties`.

The grammar itself (escapes, continuation lines, three separators) is the library's; it is imported only when a file
is given, to keep the start of a broker without one quick.
"""

from __future__ import annotations

from pathlib import Path

from .keys import ConfigurationError


def read_properties(path: str | Path) -> dict[str, str]:
    """The file's keys and values; a key that stands twice has its last value. Raises ConfigurationError."""
    import javaproperties

    try:
        with open(path, "rb") as file:
            return dict(javaproperties.load(file))
    except OSError as error:
        raise ConfigurationError(f"Cannot read the properties file {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"Malformed properties file {path}: {error}") from None
