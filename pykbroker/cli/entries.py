"""Lists that commands print: a table for people, or with `--json` an array with an object a line, for programs.

Values are JSON's; their texts in a table are escaped, since they come from a broker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import click

from .listing import printable
from .output import Column, print_table

Value: TypeAlias = "str | int | float | bool | Sequence[Value] | dict[str, Value] | None"

json_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs."
)


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a key of the objects. title: that of the column, where it is not the name; empty: only in JSON."""

    name: str
    title: str | None = None
    right: bool = False

    @property
    def column(self) -> Column:
        title = self.name.upper().replace("_", "-") if self.title is None else self.title
        return Column(title, width=len(title), right=self.right)


def print_entries(fields: Sequence[Field], entries: Iterable[Sequence[Value]], *, as_json: bool) -> None:
    """Print entries, each with a value a field."""
    if as_json:
        print_json([{field.name: value for field, value in zip(fields, each, strict=True)} for each in entries])
        return
    shown = [index for index, field in enumerate(fields) if field.title != ""]
    rows = [[text_of(each[index]) for index in shown] for each in entries]
    print_table([fields[index].column for index in shown], rows)


def print_json(objects: Sequence[Value]) -> None:
    """Print a JSON array with an object a line."""
    if not objects:
        click.echo("[]")
        return
    for index, each in enumerate(objects):
        click.echo(f"{'[' if index == 0 else ' '}{json.dumps(each)}{']' if index == len(objects) - 1 else ','}")


def text_of(value: Value) -> str:
    """Return a value as a cell: nothing is `-`, and a list has commas."""
    match value:
        case None | "" | [] | ():
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            return printable(value)
        case dict():
            return ",".join(f"{printable(key)}={text_of(each)}" for key, each in value.items()) or "-"
        case int() | float():
            return str(value)
        case _:
            return ",".join(text_of(each) for each in value)
