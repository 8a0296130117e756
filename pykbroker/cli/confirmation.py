"""Questions before something is destroyed: asked at a terminal; elsewhere `--yes` answers.

A script that names what goes, and by nothing but its exact name, is not asked: Kafka's tools delete so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

import click

from .command import CommandFailed
from .listing import printable

MOST_SHOWN: Final = 20
_LONGEST_ANSWER: Final = 1_000

yes_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--yes", is_flag=True, help="Do not ask; needed for patterns where nobody can be asked."
)


def can_ask() -> bool:
    """Return whether a person sees standard error and types into standard input."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def confirm(action: str, going: Sequence[str], *, yes: bool, named: bool) -> None:
    """Return when what goes may go. Raises CommandFailed where it may not, and nothing was done.

    action: `Delete 3 topics`. going: what goes, a line each. named: each was given by its exact name.
    """
    if yes or not going:
        return
    if can_ask():
        for line in _shown(going):
            click.echo(f"  {line}", err=True)
        if not await _asked(action):
            raise CommandFailed("Nothing was done")
    elif not named:
        names = ", ".join(_shown(going))
        raise CommandFailed(f"{action}? Nobody can be asked here, and --yes was not given. It would be {names}")


def _shown(going: Sequence[str]) -> list[str]:
    lines = [printable(each) for each in going[:MOST_SHOWN]]
    rest = len(going) - len(lines)
    return [*lines, f"… and {rest} more"] if rest else lines


async def _asked(question: str) -> bool:
    """Wait for a line of the terminal in the loop, which hears Ctrl-C meanwhile, and keeps connections."""
    import trio

    click.echo(f"{question}? [y/N] ", err=True, nl=False)
    await trio.lowlevel.wait_readable(sys.stdin)
    answer = os.read(sys.stdin.fileno(), _LONGEST_ANSWER)
    return answer.strip().lower() in (b"y", b"yes")
