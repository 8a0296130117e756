"""The lines of `pykbroker cluster` on standard error: those of its nodes with their names, and its own.

A line of text has the node's name in front. With `--log-format json` each line is an object; a node's has the member
`node`, and what is no JSON, such as the last words of a Python that cannot start, becomes a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

import click

_COLORS: Final = ("cyan", "green", "magenta", "yellow", "blue", "red")
_COMMAND: Final = "pykbroker.cli.cluster"


class ClusterLines(Protocol):
    """The look of lines."""

    def of_nodes(self, names: Sequence[str]) -> list[Callable[[str], None]]:
        """Return for each node what takes its lines."""
        ...

    def tell(self, text: str) -> None:
        """Say a line of the command itself."""

    def words(self, line: str) -> str:
        """Return what a node's line says."""
        ...


class TextLines:
    """Lines with names in front, in colours on a terminal. command: the one that says lines of its own."""

    def __init__(self, command: str = "pykbroker cluster") -> None:
        self._command = command

    def of_nodes(self, names: Sequence[str]) -> list[Callable[[str], None]]:
        width = max(map(len, names))
        return [partial(self._say, name.ljust(width), number) for number, name in enumerate(names)]

    def tell(self, text: str) -> None:
        click.echo(f"{self._command}: {text}", err=True)

    def words(self, line: str) -> str:
        return line

    def _say(self, name: str, number: int, line: str) -> None:
        click.echo(f"{click.style(f'{name} |', fg=_COLORS[number % len(_COLORS)])} {line}", err=True)


class JsonLines:
    """Objects of JSON, one a line. logger: of the command's own ones."""

    def __init__(self, logger: str = _COMMAND) -> None:
        self._logger = logger

    def of_nodes(self, names: Sequence[str]) -> list[Callable[[str], None]]:
        return [partial(self._say, name) for name in names]

    def tell(self, text: str) -> None:
        from pykbroker.server.runtime.json_lines import json_line

        click.echo(json_line("INFO", self._logger, text), err=True)

    def words(self, line: str) -> str:
        return str(_parsed(line).get("message", line))

    def _say(self, name: str, line: str) -> None:
        click.echo(json.dumps({"node": name, **_parsed(line)}), err=True)


def _parsed(line: str) -> dict[str, object]:
    """The line, or one that has it as its message."""
    from pykbroker.server.runtime.json_lines import json_line

    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    return told if isinstance(told, dict) else dict(json.loads(json_line("INFO", _COMMAND, line)))
