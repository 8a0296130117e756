"""The settings of one node in layers, each with its origin: a line of the file, a flag, a table of defaults.

What is known of a setting only once the cluster runs, such as a change at run time, is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from .properties import PropertiesFile, read_properties_file
from .topic_keys import BROKER_SYNONYMS

_ORIGIN: Final = " Set by "


class GivenSettings:
    """Values and origins by key. A layer that is added later wins, unless it is added below the others."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.origins: dict[str, str] = {}
        self.repeated: dict[str, list[int]] = {}
        """Lines of the file, where it has a key more than once."""

    def add_file(self, path: str | Path) -> None:
        """Raises ConfigurationError."""
        file: PropertiesFile = read_properties_file(path)
        self._put(file.values, lambda key: f"{path}:{file.lines[key][-1]}")
        self.repeated |= {key: lines for key, lines in file.lines.items() if len(lines) > 1}

    def add(self, values: Mapping[str, str], origin: str) -> None:
        self._put(values, lambda _: origin)

    def add_below(self, values: Mapping[str, str], origin: str) -> None:
        """Add those for which neither the key is given, nor another one for the same thing."""
        self.add(absent(values, self.values), origin)

    def _put(self, values: Mapping[str, str], origin: Callable[[str], str]) -> None:
        self.values |= values
        self.origins |= {key: origin(key) for key in values}


def absent(values: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Those of the values that count beside what is given: `log.retention.hours` takes `log.retention.ms` away."""
    same = {each for names in BROKER_SYNONYMS.values() if not given.keys().isdisjoint(names) for each in names}
    return {name: text for name, text in values.items() if name not in same and name not in given}


def with_origin(text: str | None, origin: str | None) -> str | None:
    """The explanation of a key, with the origin of its value: the place for it that every client shows."""
    return text if origin is None else f"{text or 'Nobody knows this key.'}{_ORIGIN}{origin}."


def origin_in(text: str | None) -> str | None:
    """The origin in an explanation that `with_origin` has made."""
    _, mark, origin = (text or "").rpartition(_ORIGIN)
    return origin.removesuffix(".") if mark else None
