"""Goes through the crash states of a run: `crashes` finds them, `Crash.check` starts on one.

`crash_states_by_seed` goes through those of new lives; `python -m tests.storage.crash_search RUN CUT CHOICE` makes a
state again that a test or a search named, and checks it.
"""

import sys
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from tests.storage.crash_checks import check, check_again, start
from tests.storage.crash_life import Life, Promises
from tests.storage.crash_lives import DRAWN, draw
from tests.storage.crash_runs import RUNS
from tests.storage.crash_states import Choice, CrashState, Survivors

RANDOM_CHOICES = 8


class Crash(NamedTuple):
    """Of a run, when `cut` operations were done. `number` is that of its promises."""

    run: str
    life: Life
    cut: int
    state: CrashState
    promises: Promises
    number: int

    def __str__(self) -> str:
        return f"python -m tests.storage.crash_search {self.run} {self.cut} '{self.state.choice.label}'"

    def check(self, *, again: bool, is_thorough: bool = False) -> None:
        """again: with another crash, in the recovery or after it; is_thorough: with all of them. Raises an exception
        that names the state.
        """
        try:
            disk, base = self.state.disk(self.life.disk)
            directory = start(disk, self.life.path, self.promises)
            found = check(directory, self.promises, is_killed=self.state.choice.is_killed)
            if again:
                check_again(disk, base, self.life.path, self.promises, found, seed=str(self), is_thorough=is_thorough)
        except Exception as failure:
            failure.add_note(f"a crash state; again: {self}")
            raise


def crashes(run: str, life: Life, *, most_per_cut: int | None = None) -> Iterator[Crash]:
    """Each state once, as long as the promises are the same. most_per_cut: a part of the new ones, chosen by chance."""
    seen: set[tuple[int, bool, int]] = set()
    for cut, survivors in _cuts(life):
        plain, others = survivors.choices(f"{run}/{cut}", RANDOM_CHOICES)
        if most_per_cut is not None:
            Random(f"{run}/{cut}").shuffle(others)
        left = most_per_cut
        for choice in plain + others:
            if left == 0:
                break
            crash = _crash(run, life, cut, survivors, choice)
            key = crash.state.key, choice.is_killed, crash.number
            if key not in seen:
                seen.add(key)
                yield crash
                left = None if left is None else left - 1


def _cuts(life: Life) -> Iterator[tuple[int, Survivors]]:
    survivors = Survivors(life.disk.base)
    for cut, operation in enumerate(life.disk.journal, 1):
        survivors.apply(operation)
        if cut >= life.first_cut:
            yield cut, survivors


def _crash(run: str, life: Life, cut: int, survivors: Survivors, choice: Choice) -> Crash:
    # What was promised once the last operation was done was not when it was torn.
    number, promises = life.promises_at(cut - 1 if choice.is_torn else cut)
    return Crash(run, life, cut, survivors.state(choice), promises, number)


def life_of(run: str) -> Life:
    """run: a name, or the seed of a drawn life behind `drawn:`."""
    return draw(run.removeprefix(DRAWN)) if run.startswith(DRAWN) else RUNS[run]()


def find(run: str, cut: int, label: str) -> Crash:
    life = life_of(run)
    for at, survivors in _cuts(life):
        if at == cut:
            plain, others = survivors.choices(f"{run}/{cut}", RANDOM_CHOICES)
            choice = next(each for each in plain + others if each.label == label)
            return _crash(run, life, cut, survivors, choice)
    raise LookupError(f"{run} has no operation {cut}")


if __name__ == "__main__":
    find(sys.argv[1], int(sys.argv[2]), sys.argv[3]).check(again=True)
