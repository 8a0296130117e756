"""Faults as a TOML file: `seed`, and tables `[[fault]]` and `[[disk]]` with the options that Python has.

    seed = 7

    [[fault]]
    api = "Produce"
    topic = "orders"
    nth = 3
    error = "NOT_LEADER_OR_FOLLOWER"

A mistake is told with its line and its table, and then nothing of the file is done.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .disk_faults import DiskFaultOptions, read_disk_fault
from .errors import BadFault, suggestion
from .options import FaultOptions, count_of, read_fault

LARGEST_BYTES: Final = 1024 * 1024
_TABLES: Final = ("fault", "disk")
_KEYS: Final = ("seed", *_TABLES)


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a script. line: of its header."""

    kind: str
    number: int
    line: int
    options: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"[[{self.kind}]] {self.number}"


class FaultScript:
    """A script that was read, to be loaded once. Raises BadFault. name: of the file, for errors.

    To read a long one takes a while, and wants no event loop.
    """

    def __init__(self, text: str, name: str = "script") -> None:
        self._lines = text.splitlines()
        self._name = name
        document = self._document(text)
        for key in document:
            if key not in _KEYS:
                hint = suggestion(key, _KEYS) or " (there is seed, [[fault]] and [[disk]])"
                raise BadFault(f"{name}, line {self._line_of_key(key)}: a script has no '{key}'{hint}")
        self.seed: int | None = None
        if "seed" in document:
            try:
                self.seed = count_of(document, "seed", 0)
            except BadFault as error:
                raise BadFault(f"{name}, line {self._line_of_key('seed')}: {error}", "seed") from None
        tables = [table for kind in _TABLES for table in self._tables(kind, document.get(kind, []))]
        tables.sort(key=lambda table: table.line)
        self.faults: list[tuple[Table, FaultOptions | DiskFaultOptions]] = [
            (table, self._fault(table)) for table in tables
        ]

    def mistake(self, table: Table, error: BadFault) -> BadFault:
        """Return the error of a table with the place where it stands."""
        line = self._line_of_key(error.option, table.line) if error.option else table.line
        return BadFault(f"{self._name}, line {line}, {table.title}: {error}", error.option)

    def _fault(self, table: Table) -> FaultOptions | DiskFaultOptions:
        try:
            return read_disk_fault(table.options) if table.kind == "disk" else read_fault(table.options)
        except BadFault as error:
            raise self.mistake(table, error) from None

    def _document(self, text: str) -> dict[str, Any]:
        if len(text) > LARGEST_BYTES:
            raise BadFault(f"{self._name} has more than {LARGEST_BYTES} characters: that is no script of faults")
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BadFault(f"{self._name}: {error}") from None
        except (RecursionError, ValueError) as error:
            raise BadFault(f"{self._name}: it cannot be read: {type(error).__name__}") from None

    def _tables(self, kind: str, found: object) -> list[Table]:
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            where = f"{self._name}, line {self._line_of_key(kind)}"
            raise BadFault(f"{where}: '{kind}' is a table in double brackets, [[{kind}]]")
        header = re.compile(rf"\s*\[\[\s*[\"']?{kind}[\"']?\s*\]\]")
        lines = [number for number, line in enumerate(self._lines, 1) if header.match(line)]
        if len(lines) != len(found):
            lines = [self._line_of_key(kind)] * len(found)
        return [Table(kind, index + 1, lines[index], options) for index, options in enumerate(found)]

    def _line_of_key(self, key: str, after: int = 0) -> int:
        """The line where a key stands, behind the header of its table; else that of the header."""
        wanted = re.compile(rf"\s*(?:\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*[.=\]]")
        for number, line in enumerate(self._lines[after:], after + 1):
            if wanted.match(line):
                return number
            if after and line.lstrip().startswith("[["):
                break
        return max(after, 1)


def script_text(script: str | Path) -> tuple[str, str]:
    """Return the text of a script and its name. script: a path, or the text itself. Raises BadFault, OSError."""
    if isinstance(script, str) and ("\n" in script or "=" in script or not script.strip()):
        return script, "script"
    path = Path(script)
    if path.stat().st_size > LARGEST_BYTES:
        raise BadFault(f"{path} has more than {LARGEST_BYTES} bytes: that is no script of faults")
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except UnicodeDecodeError:
        raise BadFault(f"{path} is not UTF-8 text: that is no script of faults") from None
