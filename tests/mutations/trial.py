"""The trial of one mutant: the tests that are near to it are asked, then those of its package, then all of `tests/`.

A mutant is found when a test fails, by an assertion, an error, or a time limit of its own. pytest-timeout gives each
test 120 s here, in the place of the 900 s of `make test`; a good tree needs a tenth of it. What ends otherwise was not
found: a run that takes too long as a whole, or whose process dies. A mutant with which tests cannot even be collected
says nothing about them, and does not count.

Tests that look at the text of the tree are not asked, nor those that play the pinned seeds of the simulations' own
planted bugs: what they notice is that other numbers are drawn.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from .mutant import Mutant
from .tree import Tree

SECONDS_OF_A_TEST = 120
SECONDS_OF_A_RUN = 1800
BYTES_OF_A_RUN = 8 << 30

SEEDS_OF_OTHER_BUGS = "test_a_planted_bug_is_found", "test_planted_bugs_are_found"

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_TOO_LONG = "from pytest-timeout"
_OK, _TESTS_FAILED = 0, 1


class Verdict(Enum):
    """What became of a mutant."""

    FOUND = "found"
    SURVIVED = "survived"
    ENDLESS = "endless"
    BROKEN = "broken"


@dataclass(frozen=True)
class Outcome:
    """A verdict. by: the test that failed, or why nothing can be said. seconds: of all that was asked."""

    verdict: Verdict
    by: str
    seconds: float
    output: str = ""


def try_mutant(tree: Tree, mutant: Mutant, most_rounds: int) -> Outcome:
    """Ask the tests until one fails. most_rounds: 1 for the near ones, 2 for those of the package too, 3 for all."""
    began = time.monotonic()
    with tree.planted(mutant):
        for tests in _rounds(tree.path, mutant)[:most_rounds]:
            if not tests:
                continue
            outcome = run(tree.path, tests, began)
            if outcome.verdict is not Verdict.SURVIVED:
                return outcome
    return Outcome(Verdict.SURVIVED, "", time.monotonic() - began)


def _rounds(tree: Path, mutant: Mutant) -> list[list[str]]:
    own = f"tests/{mutant.package}"
    others = sorted(str(each.relative_to(tree)) for each in _folders(tree) if each.name != mutant.package)
    return [list(mutant.first), [own], others]


def _folders(tree: Path) -> list[Path]:
    """The folders of tests; what stands beside them looks at the text of the tree."""
    return [each for each in (tree / "tests").iterdir() if each.name != "mutations" and any(each.glob("**/test_*.py"))]


def run(tree: Path, tests: Sequence[str], began: float) -> Outcome:
    """Ask these tests about what is planted in the tree."""
    process = subprocess.Popen(
        _command(tree, tests),
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    resource.prlimit(process.pid, resource.RLIMIT_AS, (BYTES_OF_A_RUN, BYTES_OF_A_RUN))
    try:
        output, _ = process.communicate(timeout=SECONDS_OF_A_RUN)
    except subprocess.TimeoutExpired:
        output = f"no end within {SECONDS_OF_A_RUN} s"
    finally:
        _end(process)
    return judge(process.returncode, output, time.monotonic() - began)


def _command(tree: Path, tests: Sequence[str]) -> list[str]:
    unasked = [f"--deselect={path}::{name}" for path in _simulations(tree) for name in SEEDS_OF_OTHER_BUGS]
    options = ["-x", "-q", "--tb=line", "--no-header", "-p", "no:cacheprovider", "-n", "0", f"--basetemp={tree}/.tmp"]
    return [sys.executable, "-m", "pytest", *options, f"--timeout={SECONDS_OF_A_TEST}", *unasked, *tests]


def _simulations(tree: Path) -> list[str]:
    return [str(path.relative_to(tree)) for path in tree.glob("tests/**/test_*.py") if "HUNT" in path.read_text()]


def _end(process: subprocess.Popen[str]) -> None:
    """End the run with everything that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def judge(status: int, output: str, seconds: float) -> Outcome:
    """status: the exit code of pytest, negative for a signal. output: what it printed."""
    failed = _FAILED.search(output)
    if status == _OK:
        return Outcome(Verdict.SURVIVED, "", seconds)
    if status == _TESTS_FAILED and failed is not None:
        return Outcome(Verdict.FOUND, f"{failed[1]}{' (time limit)' if _TOO_LONG in output else ''}", seconds)
    if status < 0:
        return Outcome(Verdict.ENDLESS, f"ended by signal {-status}", seconds, output)
    return Outcome(Verdict.BROKEN, f"pytest ended with {status}", seconds, output)
