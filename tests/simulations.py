"""What the simulations share: which seeds they run, planted bugs, and what counts as having found one.

`make test` runs a few seeds, the same in every run. `make simulate` runs others, from a base seed that changes from run
to run and is printed. Three settings in the environment say which:

- PYKBROKER_SIMULATION_SEEDS: how many seeds each simulation runs;
- PYKBROKER_SIMULATION_BASE_SEED: the first of them;
- PYKBROKER_SIMULATION_SECONDS: when no further group of seeds begins.

A planted bug is sought with one seed, which finds it. Where it finds the bug no more, since the code draws other
numbers now, the seeds next to it are tried, and a warning names the one to be pinned: any change of a draw or of an
answer moves some of them. `python -m tests.find_seed` searches further.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from tests.history.check import check
from tests.history.findings import Report
from tests.history.operations import Operation, format_history

TRIES = 8
"""How many seeds a planted bug is sought with: a change that moves the pinned one's run is no mistake."""

BASE_SEED = int(os.environ.get("PYKBROKER_SIMULATION_BASE_SEED", "0"))
_SEEDS = os.environ.get("PYKBROKER_SIMULATION_SEEDS")
_END_S = time.monotonic() + float(os.environ.get("PYKBROKER_SIMULATION_SECONDS", "inf"))


def seed_groups(usual: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test that takes `seeds`, and has to run each of them. usual: how many `make test` runs, in one group.

    More seeds come in further groups of that size; none begins when the time is up.
    """
    count = int(_SEEDS or usual)
    end = BASE_SEED + count
    groups = [range(first, min(first + usual, end)) for first in range(BASE_SEED, end, usual)]

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        for each in (
            pytest.mark.simulation,
            pytest.mark.timeout(300 if _SEEDS is None else 0),
            pytest.mark.parametrize("seeds", groups, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}"),
        ):
            test = each(test)
        return test

    return mark


def skip_when_time_is_up() -> None:
    if time.monotonic() > _END_S:
        pytest.skip("the time for simulations is up")


def are_usual(seeds: range, usual: int) -> bool:
    """Whether it is known how much happens in the runs of these seeds; other seeds may be poorer by chance."""
    return BASE_SEED == 0 and len(seeds) == usual


@dataclass(frozen=True, slots=True)
class Bug:
    """A mistake in the code as long as `planted` lasts. seed: of a run that finds it."""

    planted: Callable[[], AbstractContextManager[None]]
    seed: int


class Bugs(dict[str, Bug]):
    """Mistakes by their names. Each is planted while its context lasts, and a simulation must find it."""

    def plant(self, seed: int) -> Callable[[Callable[[], Iterator[None]]], None]:
        """For a function that yields while the mistake is in the code."""

        def register(function: Callable[[], Iterator[None]]) -> None:
            self[function.__name__] = Bug(contextmanager(function), seed)

        return register

    def hunt(self, name: str, is_wrong: Callable[[int], bool]) -> Hunt:
        def finds(bug: str, seed: int) -> bool:
            with self[bug].planted():
                return is_wrong(seed)

        return Hunt(name, {name: bug.seed for name, bug in self.items()}, finds)


@dataclass(frozen=True, slots=True)
class Hunt:
    """How a simulation finds its planted bugs.

    seeds: by the bugs' names, of a run that finds each. finds: whether the run of a seed finds a bug.
    """

    name: str
    seeds: Mapping[str, int]
    finds: Callable[[str, int], bool]

    def find(self, bug: str, tries: int) -> int | None:
        """Return the first seed that finds the bug, of so many from the pinned one on; None where none of them does."""
        pinned = self.seeds[bug]
        return next((seed for seed in range(pinned, pinned + tries) if self.finds(bug, seed)), None)

    def check(self, bug: str) -> None:
        """The pinned seed finds the bug, or one of the next few does."""
        pinned, found = self.seeds[bug], self.find(bug, TRIES)
        assert found is not None, (
            f"no seed from {pinned} to {pinned + TRIES - 1} finds {bug} any more. Another seed that does, to be pinned "
            f"instead: python -m tests.find_seed {self.name} {bug}"
        )
        if found != pinned:
            warnings.warn(f"seed {found} of {self.name} finds {bug}; {pinned} does no more", stacklevel=2)


@dataclass(frozen=True, slots=True)
class Outcome:
    """told: what went wrong, in lines for whoever plays it again."""

    report: Report
    operations: list[Operation]
    deaths: int
    told: list[str]


@dataclass(frozen=True, slots=True)
class Played:
    """A run that is over. It is judged behind it: the judge would hold its event loop."""

    operations: list[Operation]
    deaths: int
    told: list[str]

    def judged(self) -> Outcome:
        return Outcome(check(self.operations), self.operations, self.deaths, self.told)


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
