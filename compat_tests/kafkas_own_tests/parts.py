"""Parts of all tests, each of about the same time: a run of continuous integration takes one of them.

Which one goes by the commit, so that all parts come round and the same commit has the same part again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from compat_tests.turns import number_of_this_commit

from .class_run import ClassRun, method_of
from .known_differences import methods_not_run, why_class_is_left_out
from .recorded_results import RecordedTest, Results

SECONDS_OF_A_JVM = 8
"""What a run of a class takes besides its tests."""
SECONDS_WHERE_NOTHING_IS_RECORDED = 45


def all_runs(classes: Iterable[str], results: Results, longest_s: float) -> list[tuple[ClassRun, float]]:
    """Each class with its seconds; one that takes longer than `longest_s` is cut between its methods."""
    return [
        run
        for name in sorted(classes)
        if why_class_is_left_out(name) is None
        for run in _runs_of(name, _seconds_of_methods(name, results.get(name, {})), longest_s)
    ]


def _seconds_of_methods(name: str, tests: dict[str, RecordedTest]) -> dict[str, float]:
    left_out = methods_not_run(name)
    seconds: dict[str, float] = defaultdict(float)
    for test, result in sorted(tests.items()):
        if method_of(test) not in left_out:
            seconds[method_of(test)] += result.seconds
    return seconds


def _runs_of(name: str, seconds: dict[str, float], longest_s: float) -> list[tuple[ClassRun, float]]:
    whole = sum(seconds.values()) if seconds else SECONDS_WHERE_NOTHING_IS_RECORDED
    if whole <= longest_s:
        return [(ClassRun(name, left_out=frozenset(methods_not_run(name))), whole + SECONDS_OF_A_JVM)]
    pieces: list[dict[str, float]] = [{}]
    for method, each in seconds.items():
        if sum(pieces[-1].values()) + each > longest_s and pieces[-1]:
            pieces.append({})
        pieces[-1][method] = each
    return [(ClassRun(name, frozenset(piece)), sum(piece.values()) + SECONDS_OF_A_JVM) for piece in pieces]


def parts(classes: Iterable[str], results: Results, seconds: float) -> list[list[ClassRun]]:
    """As few parts as take no longer than `seconds` each, by what is recorded; the longest run begins each."""
    runs = sorted(all_runs(classes, results, seconds / 4), key=lambda run: -run[1])
    count = max(1, math.ceil(sum(each for _, each in runs) / seconds))
    made: list[list[ClassRun]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for run, each in runs:
        least = loads.index(min(loads))
        made[least].append(run)
        loads[least] += each
    return [part for part in made if part]


def part_of_this_commit(count: int) -> int:
    """From 1 on; the first where there is no repository."""
    return number_of_this_commit() % count + 1
