"""Tables: drawn by `rich` on a terminal, and elsewhere in the padded columns that Kafka's tools print.

Scripts read the second form with `awk`, so it keeps Kafka's titles, order and widths.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

import click

from .printable import printable

if TYPE_CHECKING:
    from rich.table import Table

_WIDEST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Column:
    """`width` is the least number of characters of the plain form."""

    title: str
    width: int = 15
    right: bool = False


def stdout_is_terminal() -> bool:
    """Return whether a person sees standard output."""
    return is_terminal(sys.stdout)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a person is at a standard stream; Python has None for one that was closed."""
    return stream is not None and stream.isatty()


def plain_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with a space between columns; a column is as wide as its longest cell."""
    lines = [[column.title for column in columns], *(list(row) for row in rows)]
    widths = [max(column.width, *(len(line[index]) for line in lines)) for index, column in enumerate(columns)]
    return [" ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, apart: bool = False) -> None:
    """Print a table, its cells escaped. apart: an empty line stands above the plain form, as in Kafka's tool."""
    rows = [[printable(cell) for cell in row] for row in rows]
    if not stdout_is_terminal():
        if apart:
            click.echo()
        for line in plain_table(columns, rows):
            click.echo(line)
        return
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    table = _drawn(columns, rows)
    # A terminal that is too narrow for the table would lose its last columns.
    if Measurement.get(console, console.options.update(width=_WIDEST), table).minimum > console.width:
        for line in _blocks(columns, rows):
            click.echo(line)
    else:
        console.print(table)


def _drawn(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for column in columns:
        # A narrow terminal may wrap a title between its words, never within one.
        words = column.title.replace("-", " ")
        longest = max(len(word) for word in words.split())
        table.add_column(words, justify="right" if column.right else "left", overflow="fold", min_width=longest)
    for row in rows:
        table.add_row(*(_escaped(cell) for cell in row))
    return table


def _blocks(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return each row as lines of title and cell, with an empty line in front; without rows the titles."""
    if not rows:
        yield from (column.title for column in columns)
    for row in rows:
        yield ""
        yield from (f"{column.title}: {cell}" for column, cell in zip(columns, row, strict=True))


def warn(text: str) -> None:
    """One line on stderr that stops nothing."""
    click.echo(f"WARN: {text}", err=True)


def say_at_once(text: str) -> None:
    """Print a line on stderr, unless nobody reads it at the moment: the end by a signal must not wait for that."""
    import select

    if sys.stderr is None:
        return
    _, ready, _ = select.select([], [sys.stderr], [], 0)
    if ready:
        click.echo(text, err=True)


def _escaped(cell: str) -> str:
    from rich.markup import escape

    return escape(cell)
