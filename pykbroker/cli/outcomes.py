"""Changes that a command has made: a line for people as soon as one is made, or with `--json` one array for programs.

Where a command fails midway, the changes until then are told, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from .entries import Value, print_json

Row = dict[str, Value]


class Outcomes:
    """The changes so far, each an object."""

    def __init__(self, *, as_json: bool) -> None:
        self.rows: list[Row] = []
        self._as_json = as_json

    def add(self, row: Row, text: str | None = None) -> None:
        """Note a change. text: the line for people, where there is one."""
        self.rows.append(row)
        self.say(text)

    def say(self, text: str | None) -> None:
        """Print a line for people."""
        if text is not None and not self._as_json:
            click.echo(text)

    def print(self) -> None:
        """Print all of them for programs."""
        if self._as_json:
            print_json(self.rows)


@contextmanager
def outcomes(*, as_json: bool) -> Iterator[Outcomes]:
    """The changes of a command, printed at its end; where it failed before the first one, nothing is."""
    found = Outcomes(as_json=as_json)
    try:
        yield found
    except BaseException:
        if found.rows:
            found.print()
        raise
    found.print()
