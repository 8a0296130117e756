"""A group of commands, each a module of its own that is imported only when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from .suggestions import SuggestingGroup


class LazyGroup(SuggestingGroup):
    """A group. modules: the beginning of their names. summaries: by command, so that a list of them imports nothing."""

    def __init__(self, *args: Any, modules: str, summaries: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._modules = modules
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            return None
        command = import_module(f"{self._modules}{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
