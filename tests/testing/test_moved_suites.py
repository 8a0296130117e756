"""Suites that were moved to pykbroker: what `docs/testing.md` says of those in `examples/` is so.

`make examples` runs them.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from compat_tests.python_examples import AFTER, BEFORE, EXAMPLES, NAMES, ROOT

PAGE = ROOT / "docs" / "testing.md"
LEAST_TESTS = 10
"""In functions; some have several cases."""

_EXCERPT = re.compile(r"```python\n# (examples/\S+\.py)\n(.*?)```", re.DOTALL)
_LEFT_OUT = "    # …\n"
_TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def excerpts() -> list[tuple[str, str]]:
    return [(file, part) for file, text in _EXCERPT.findall(PAGE.read_text()) for part in text.split(_LEFT_OUT)]


def test_excerpts_stand_in_the_files() -> None:
    assert len(excerpts()) == 8
    assert [part for file, part in excerpts() if part not in (ROOT / file).read_text()] == []


@pytest.mark.parametrize("name", NAMES)
def test_both_suites_have_the_same_tests(name: str) -> None:
    before, after = functions_of(EXAMPLES / name / BEFORE), functions_of(EXAMPLES / name / AFTER)
    assert before == after
    assert sum(map(len, after.values())) >= LEAST_TESTS


@pytest.mark.parametrize("name", NAMES)
def test_seven_lines_of_ten_are_the_same(name: str) -> None:
    before, after = lines_of(EXAMPLES / name / BEFORE), lines_of(EXAMPLES / name / AFTER)
    same = sum(block.size for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())
    assert round(10 * same / len(before)) == 7


@pytest.mark.parametrize("name", NAMES)
def test_nothing_sleeps_any_more(name: str) -> None:
    suites = {suite: (EXAMPLES / name / suite).glob("*.py") for suite in (BEFORE, AFTER)}
    sleeping = {
        suite: [file.name for file in files if ".sleep(" in file.read_text()] for suite, files in suites.items()
    }
    assert sleeping[BEFORE] != []
    assert sleeping[AFTER] == []


def functions_of(folder: Path) -> dict[str, list[str]]:
    return {file.name: _TEST.findall(file.read_text()) for file in folder.glob("test_*.py")}


def lines_of(folder: Path) -> list[str]:
    files = sorted(folder.glob("test_*.py"))
    return [line for file in files for line in file.read_text().splitlines() if line.strip()]
