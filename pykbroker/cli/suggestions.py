"""Groups of commands that know what a misspelled command was meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

import click

_MOST_SUGGESTIONS: Final = 3
_LONGEST_NAME: Final = 60
_ELSEWHERE: Final = {
    "add": "create",
    "consumer": "consume",
    "drop": "delete",
    "edit": "alter",
    "get": "describe",
    "info": "describe",
    "lag": "describe",
    "ls": "list",
    "metadata": "brokers",
    "new": "create",
    "producer": "produce",
    "remove": "delete",
    "reset": "reset-offsets",
    "rm": "delete",
    "set": "alter",
    "show": "describe",
    "update": "alter",
}
"""What other tools call it."""
_MOST_NAMES: Final = 20_000
"""Names that are compared: so many take half a second."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error: ` Did you mean 'topics'?`; empty where nothing known is like the name."""
    from difflib import get_close_matches

    names = {each.lower(): each for each in islice(known, _MOST_NAMES)}
    name = name[:_LONGEST_NAME].lower()
    parts = [each for each in names if len(each) > 2 and name and (each in name or name in each)]
    similar = get_close_matches(name, names, _MOST_SUGGESTIONS) or parts[:_MOST_SUGGESTIONS]
    if not similar:
        return ""
    return f" Did you mean {' or '.join(repr(names[each]) for each in similar)}?"


class SuggestingGroup(click.Group):
    """A group whose unknown commands are answered with those that are spelled alike.

    other_names: by those that Kafka's tools have, where the commands have others.
    """

    def __init__(self, *args: Any, other_names: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._other_names = other_names or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = self._other_names.get(args[0], args[0])
        args = [name, *args[1:]]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command '{name[:_LONGEST_NAME]}'.{self._meant(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> str:
        """Return what is spelled alike, is called so elsewhere, or is an option here."""
        commands = self.list_commands(ctx)
        if _ELSEWHERE.get(name) in commands:
            return f" Did you mean '{_ELSEWHERE[name]}'?"
        if any(f"--{name}" in each.opts for each in self.get_params(ctx)):
            return f" Did you mean '--{name}'?"
        return did_you_mean(name, commands)
