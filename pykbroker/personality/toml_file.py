"""A personality read from a TOML file, checked key by key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pykbroker.protocol.schema import Versions

from . import api_names
from .personality import FORMAT, Answer, BadPersonality, Personality, Setting

LARGEST_FILE_BYTES: Final = 1024 * 1024
_RANGE: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)
_TABLES: Final = ("cluster", "versions", "features", "limits", "broker", "topic", "answers")
_OF_CLUSTER: Final = {"software": str, "told": str, "brokers": int, "authorizer": bool}
_OF_FEATURES: Final = ("supported", "finalized")


def read_personality(path: Path) -> Personality:
    """Raises BadPersonality, whose one line names the file, the line and the key."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise BadPersonality(f"{path}: {error.strerror or error}") from None
    if len(data) > LARGEST_FILE_BYTES:
        raise BadPersonality(f"{path} has more than {LARGEST_FILE_BYTES} bytes: that is no personality")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadPersonality(f"{path} is not UTF-8 text: that is no personality") from None
    return parse_personality(text, str(path))


def parse_personality(text: str, name: str) -> Personality:
    """Parse the text of a file. Raises BadPersonality. name: of the file, for errors."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadPersonality(f"{name}: {error}") from None
    except RecursionError:
        raise BadPersonality(f"{name}: lists or tables within each other, too many of them") from None
    return _Reader(text, name).personality(document)


class _Reader:
    """The reader of one file."""

    def __init__(self, text: str, name: str) -> None:
        self._lines = text.splitlines()
        self._name = name

    def personality(self, document: Mapping[str, Any]) -> Personality:
        self._check_format(document)
        for key in document:
            if key not in ("format", *_TABLES):
                raise self._bad("", key, f"is unknown{_suggestion(key, _TABLES)}")
        tables = {title: self._table(document, title) for title in _TABLES}
        features = tables["features"]
        for key in features:
            if key not in _OF_FEATURES:
                raise self._bad("features", key, f"is unknown{_suggestion(key, _OF_FEATURES)}")
        cluster = self._cluster(tables["cluster"])
        if not tables["versions"]:
            raise BadPersonality(f"{self._name}: there is no table [versions], or nothing in it")
        return Personality(
            versions=self._versions(tables["versions"]),
            supported_features=self._ranges(self._table(features, "supported"), "features.supported"),
            finalized_features=self._levels(self._table(features, "finalized")),
            limits=self._settings(tables["limits"], "limits"),
            broker=self._settings(tables["broker"], "broker"),
            topic=self._settings(tables["topic"], "topic"),
            answers=self._answers(tables["answers"]),
            **cluster,
        )

    def _check_format(self, document: Mapping[str, Any]) -> None:
        if "format" not in document:
            raise BadPersonality(f"{self._name} has no key 'format': it is no personality of `pykbroker probe`")
        found = document["format"]
        if type(found) is not int or found < 1:
            raise self._bad("", "format", f"is {found!r}, expected {FORMAT}")
        if found > FORMAT:
            raise self._bad("", "format", f"is {found}: a newer pykbroker wrote the file; this one reads {FORMAT}")

    def _table(self, of: Mapping[str, Any], title: str) -> Mapping[str, Any]:
        table = of.get(title, {})
        if not isinstance(table, dict):
            raise self._bad("", title, f"is {_shown(table)}, expected a table")
        return table

    def _cluster(self, table: Mapping[str, Any]) -> dict[str, Any]:
        for key, value in table.items():
            kind = _OF_CLUSTER.get(key)
            if kind is None:
                raise self._bad("cluster", key, f"is unknown{_suggestion(key, _OF_CLUSTER)}")
            if type(value) is not kind:
                raise self._bad("cluster", key, f"is {_shown(value)}, expected {_KINDS[kind]}")
        return dict(table)

    def _versions(self, table: Mapping[str, Any]) -> dict[int, Versions]:
        found: dict[int, Versions] = {}
        for name, value in table.items():
            key = api_names.key_of(name)
            if key is None:
                raise self._bad("versions", name, f"is no API{_suggestion(name, api_names.known_names())}")
            if key in found:
                raise self._bad("versions", name, f"is the API {api_names.name_of(key)}, which is named before")
            found[key] = self._range(value, "versions", name)
        return found

    def _ranges(self, table: Mapping[str, Any], title: str) -> dict[str, Versions]:
        return {name: self._range(value, title, name) for name, value in table.items()}

    def _range(self, value: Any, title: str, name: str) -> Versions:
        matched = _RANGE.fullmatch(value) if isinstance(value, str) else None
        if matched is None:
            raise self._bad(title, name, f'is {_shown(value)}, expected a text such as "0-9"')
        low, high = int(matched[1]), int(matched[2] or matched[1])
        if not low <= high <= 32767:
            raise self._bad(title, name, f"is {_shown(value)}, expected versions up to 32767 in rising order")
        return Versions(low, high)

    def _levels(self, table: Mapping[str, Any]) -> dict[str, int]:
        for name, value in table.items():
            if type(value) is not int or not 0 <= value <= 32767:
                raise self._bad("features.finalized", name, f"is {_shown(value)}, expected a level from 0 to 32767")
        return dict(table)

    def _settings(self, table: Mapping[str, Any], title: str) -> dict[str, Setting]:
        for name, value in table.items():
            if type(value) not in (bool, int, float, str):
                raise self._bad(title, name, f"is {_shown(value)}, expected a number, a text, true or false")
        return dict(table)

    def _answers(self, table: Mapping[str, Any]) -> dict[str, Answer]:
        for name, value in table.items():
            if type(value) is not str:
                raise self._bad("answers", name, f"is {_shown(value)}, expected a text")
        return {name: Answer(value) for name, value in table.items()}

    def _bad(self, title: str, key: str, reason: str) -> BadPersonality:
        line = self._line_of(title, key)
        where = self._name if line is None else f"{self._name}, line {line}"
        table = f" in [{title}]" if title else ""
        return BadPersonality(f"{where}: '{key}'{table} {reason}")

    def _line_of(self, title: str, key: str) -> int | None:
        """The line on which the key of a table stands; None where it is written in another way than by `toml_text`."""
        table = ""
        for number, line in enumerate(self._lines, 1):
            text = line.strip()
            if text.startswith("["):
                table = text.split("#")[0].strip(" []")
                if not title and table == key:
                    return number
            elif table == title and text.split("=")[0].strip().strip("\"'") == key:
                return number
        return None


_KINDS: Final = {str: "a text", int: "a whole number", bool: "true or false"}


def _shown(value: Any) -> str:
    """Show what stands in the file, cut to what fits into an error."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _suggestion(name: str, known: Any) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
