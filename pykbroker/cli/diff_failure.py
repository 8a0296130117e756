"""The failures of `pykbroker diff`, which end with 2, bad flags included."""

from __future__ import annotations

from typing import Any

import click

from .command import CommandFailed

COULD_NOT_RUN = 2


class Failed(CommandFailed):
    """Ends with 2, since 1 says that there are differences."""

    exit_code = COULD_NOT_RUN


class DiffCommand(click.Command):
    """A command whose bad flags are one line and exit code 2."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise Failed(error.format_message()) from None
