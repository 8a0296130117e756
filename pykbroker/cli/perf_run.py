"""One measurement: results so far are printed however it ends, and a terminal shows how far it is.

A measurement ends with 0, with 1 after a failure of the cluster, and with 130 or 143 after a signal.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click
import trio

from pykbroker.client.background import background
from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, UnknownTopic
from pykbroker.error_groups import first_of

from .command import CommandFailed, one_line
from .interrupt import run_until_signal
from .output import is_terminal, stdout_is_terminal
from .progress import started_bar

if TYPE_CHECKING:
    from rich.progress import Progress

_REDRAW_S: Final = 0.25
_BESIDE: Final = "{task.percentage:>3.0f} %  {task.fields[state]}"


@dataclass(frozen=True, slots=True)
class Ending:
    """The way a measurement ended. exit_code: of a signal, else 0."""

    exit_code: int = 0
    failure: ClientError | None = None

    @property
    def error(self) -> str | None:
        return None if self.failure is None else one_line(self.failure)

    def print_timed_out(self, timeout_ms: int) -> None:
        """Print Kafka's line for a consumer that had too few records in time, unless something else ended it."""
        if not self.exit_code and self.failure is None:
            click.echo(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
            )

    def exit(self) -> None:
        """Raise CommandFailed for a failure, SystemExit for a signal."""
        if self.failure is not None:
            raise CommandFailed(one_line(self.failure))
        if self.exit_code:
            raise SystemExit(self.exit_code)


async def run_measurement(measure: Callable[[], Awaitable[None]]) -> Ending:
    """Run to the end, to a failure or to a signal, whatever the brokers do meanwhile."""
    failure: ClientError | None = None

    async def guarded() -> None:
        nonlocal failure
        try:
            await measure()
        except* ClientError as group:
            failure = first_of(group)

    exit_code = await run_until_signal(guarded)
    return Ending(exit_code, failure)


async def existing_topic(cluster: Cluster, name: str) -> None:
    """Raise CommandFailed where there is no such topic: a measurement makes none by a slip of the pen."""
    try:
        await cluster.topic(name)
    except UnknownTopic as error:
        raise CommandFailed(f"{error}; create it with: pykbroker topics --create --topic {name}") from None


@asynccontextmanager
async def reporting(
    *,
    total: int,
    done: Callable[[], int],
    state: Callable[[], str],
    line: Callable[[], str] | None,
    interval_ms: int,
) -> AsyncIterator[None]:
    """Print a line at each interval while the block runs, and draw a bar where standard error is a terminal.

    state: the text beside the bar. line: None for no lines.
    """
    bar = started_bar("", total, _BESIDE, draws_itself=False) if is_terminal(sys.stderr) else None

    async def lines() -> None:
        while line is not None:
            await trio.sleep(interval_ms / 1000)
            _print(line(), bar)

    async def redraw() -> None:
        while bar is not None:
            bar.update(bar.task_ids[0], completed=done(), state=state(), refresh=True)
            await trio.sleep(_REDRAW_S)

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lines)
            nursery.start_soon(redraw)

    try:
        async with background(both):
            yield
    finally:
        if bar is not None:
            bar.stop()


def _print(line: str, bar: Progress | None) -> None:
    """Print a line, above the bar where both are on one terminal."""
    if bar is not None and stdout_is_terminal():
        bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        click.echo(line)
