"""What the simulations share: planted bugs, and what counts as having found one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.history.findings import Report
from tests.history.operations import Operation, format_history


@dataclass(frozen=True, slots=True)
class Bug:
    """first_seed: where to begin to look, so that it does not take long. It may be anywhere."""

    planted: Callable[[], AbstractContextManager[None]]
    first_seed: int


class Bugs(dict[str, Bug]):
    """Mistakes by their names. Each is planted while its context lasts, and a simulation must find it."""

    def plant(self, first_seed: int) -> Callable[[Callable[[], Iterator[None]]], None]:
        """For a function that yields while the mistake is in the code."""

        def register(function: Callable[[], Iterator[None]]) -> None:
            self[function.__name__] = Bug(contextmanager(function), first_seed)

        return register


@dataclass(frozen=True, slots=True)
class Outcome:
    """told: what went wrong, in lines for whoever plays it again."""

    report: Report
    operations: list[Operation]
    deaths: int
    told: list[str]


Simulate = Callable[[int], Outcome]


def run_good(package: str, simulate: Simulate, seed: int) -> Outcome:
    """A run that must be good; what it fails with names the command that plays it again."""
    again = f"again: python -m {package} {seed}"
    try:
        outcome = simulate(seed)
    except BaseException as failure:
        failure.add_note(again)
        raise
    assert not outcome.report.bad, f"{again}\n{outcome.report}"
    return outcome


def play_again(arguments: list[str], about: Callable[[int], str], simulate: Simulate) -> int:
    """`[-v] SEED [FILE]`: prints who acts, what went wrong and the verdict, and writes the history. The exit code."""
    if "-v" in arguments:
        arguments.remove("-v")
        logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="         %(name)s %(message)s")
    seed = int(arguments[0])
    sys.stdout.write(f"{about(seed)}\n")
    outcome = simulate(seed)
    if arguments[1:]:
        Path(arguments[1]).write_text("\n".join(format_history(outcome.operations)) + "\n")
    sys.stdout.write("\n".join(outcome.told) + f"\n{outcome.report}\n")
    return 1 if outcome.report.bad else 0


def is_wrong(simulate: Simulate, seed: int) -> bool:
    """By its history, or by what does not end or is not there. Any other error is one in the planted code."""
    found = False
    try:
        found = bool(simulate(seed).report.bad)
    except* (AssertionError, trio.TooSlowError):
        found = True
    return found
