"""Goes through crash states of lives that nobody has seen yet, as many as it is asked for.

    python -m tests.storage.search_crash_states --states N [--seed S]

Life after life is drawn (`crash_lives`), and a part of its crash states is checked; the lives of a base seed are always
the same ones. Each line says how far the search is. A state that breaks a promise is named with the command that plays
it again, and the search goes on; the exit code is 1 then. Memory is that of one life.
"""

import argparse
import itertools
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field

import click

from tests.storage.crash_lives import DRAWN
from tests.storage.crash_search import Crash, crashes, life_of

MOST_PER_CUT = 15
CRASHES_TWICE = 10
"""Of so many states one goes through a second crash."""
MOST_FAILURES = 20
REPORT_S = 60.0


@dataclass(slots=True)
class Progress:
    """states: what a disk holds, each counted once. The bytes of two lives differ, since the ids of a directory do."""

    lives: int = 0
    states: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.states} crash states of {self.lives} lives, {len(self.failures)} of them bad"


def go_through(seed: str, states: int, *, most_per_cut: int = MOST_PER_CUT) -> Iterator[Progress]:
    """Check so many states; the progress after each life. It ends early where too many states are bad."""
    progress = Progress()
    for number in itertools.count():
        run = f"{DRAWN}{seed}.{number}"
        seen: set[int] = set()
        for count, crash in enumerate(crashes(run, life_of(run), most_per_cut=most_per_cut)):
            failure = _check(crash, again=count % CRASHES_TWICE == 0)
            if failure is not None:
                progress.failures.append(failure)
            seen.add(crash.state.key)
            if progress.states + len(seen) >= states or len(progress.failures) >= MOST_FAILURES:
                break
        progress.lives += 1
        progress.states += len(seen)
        yield progress
        if progress.states >= states or len(progress.failures) >= MOST_FAILURES:
            return


def _check(crash: Crash, *, again: bool) -> str | None:
    try:
        crash.check(again=again)
    except Exception as failure:
        return "".join(traceback.format_exception(failure, limit=-3))
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.search_crash_states")
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--seed", default=str(time.time_ns() // 1_000_000_000))
    parser.add_argument("--most-per-cut", type=int, default=MOST_PER_CUT)
    options = parser.parse_args()
    logging.getLogger("pykbroker").setLevel(logging.CRITICAL)  # every second state has something to warn of
    click.echo(f"crash states of base seed {options.seed}")
    told, reported_s = 0, time.monotonic()
    progress = Progress()
    for progress in go_through(options.seed, options.states, most_per_cut=options.most_per_cut):
        for failure in progress.failures[told:]:
            click.echo(failure)
        told = len(progress.failures)
        if time.monotonic() - reported_s > REPORT_S:
            reported_s = time.monotonic()
            click.echo(progress)
    click.echo(progress)
    return 1 if progress.failures else 0


if __name__ == "__main__":
    sys.exit(main())
