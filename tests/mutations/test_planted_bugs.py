"""Every planted bug of the list can still be planted, and the runs say of a mutant what became of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.installed import needs_a_clone
from tests.diffs import BadDiff
from tests.mutations.mutant import PACKAGES, ROOT, Mutant, meaning
from tests.mutations.planted_bugs import PlantedBug, all_planted_bugs, planted_bugs
from tests.mutations.score import Result, table
from tests.mutations.tree import Tree
from tests.mutations.trial import Outcome, Verdict, judge, run

LEAST = 12
"""So many of each package; the issue that began the list asked for that."""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_bug_of_the_list_can_be_planted(package: str) -> None:
    bugs = planted_bugs(package)
    assert len(bugs) >= LEAST
    for bug in bugs:
        changed = meaning(bug.mutant().text)
        assert changed != meaning((ROOT / bug.path).read_text()), f"{bug.name}: nothing is wrong"
        gone = [each for each in bug.first if not (ROOT / each).exists()]
        assert not gone, f"{bug.name}: these tests are gone: {gone}"


def test_every_bug_has_a_name_of_its_own() -> None:
    names = [f"{bug.package}: {bug.name}" for bug in all_planted_bugs()]
    assert len(set(names)) == len(names)


def test_a_bug_that_does_not_fit_the_tree_any_more_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("a = 1\n")
    bug = PlantedBug("a is too small", "storage", "", (), None, "here.py", "-a = 2\n+a = 1\n")
    with pytest.raises(BadDiff, match="stand there 0 times"):
        bug.mutant(tmp_path)


def test_comments_and_annotations_mean_nothing() -> None:
    assert meaning('def f(a: int) -> int:\n    """Text."""\n    return a\n') == meaning(
        "def f(a):\n    return a  # x\n"
    )
    assert meaning("def f(a):\n    return a\n") != meaning("def f(a):\n    return -a\n")


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [
        (0, "3 passed", Verdict.SURVIVED),
        (1, "FAILED tests/a.py::test_b - AssertionError: no", Verdict.FOUND),
        (1, "ERROR tests/a.py::test_b - RuntimeError: no", Verdict.FOUND),
        (2, "ERROR tests/a.py - ImportError: no", Verdict.BROKEN),
        (5, "no tests ran", Verdict.BROKEN),
        (-9, "", Verdict.ENDLESS),
    ],
)
def test_the_verdict_is_that_of_the_tests(status: int, output: str, verdict: Verdict) -> None:
    assert judge(status, output, 1.0).verdict is verdict


def test_a_test_that_does_not_end_is_named_as_such() -> None:
    """Trio may have made another error of it by the time that pytest tells it."""
    output = "E  Failed: Timeout (>120.0s) from pytest-timeout.\nFAILED tests/a.py::test_b - trio.TrioInternalError"
    assert judge(1, output, 1.0).by == "tests/a.py::test_b (time limit)"


def test_a_run_has_a_verdict_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A tree of two files stands for the whole one: the test imports what is planted there, and nothing else."""
    (tmp_path / "here.py").write_text("def double(a):\n    return 2 * a\n")
    (tmp_path / "test_here.py").write_text("from here import double\n\n\ndef test_two():\n    assert double(2) == 4\n")
    assert run(tmp_path, ["test_here.py"], 0.0).verdict is Verdict.SURVIVED
    (tmp_path / "here.py").write_text("def double(a):\n    return 3 * a\n")
    found = run(tmp_path, ["test_here.py"], 0.0)
    assert (found.verdict, found.by) == (Verdict.FOUND, "test_here.py::test_two")
    assert not list(tmp_path.rglob("*.pyc")), "what a bug was compiled to would outlive it"


@needs_a_clone
def test_a_copy_of_the_tree_can_be_asked(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    assert run(tree.path, ["tests/security/sasl/test_plain.py"], 0.0).verdict is Verdict.SURVIVED


@needs_a_clone
def test_the_working_tree_is_not_touched(tmp_path: Path) -> None:
    bug = planted_bugs("transactions")[0].mutant()
    before = (ROOT / bug.path).read_bytes()
    tree = Tree(tmp_path / "tree")
    with tree.planted(bug):
        assert (tree.path / bug.path).read_text() == bug.text
        assert (ROOT / bug.path).read_bytes() == before
    assert (tree.path / bug.path).read_bytes() == before
    assert (tree.path / "pykbroker" / "storage").is_symlink(), "the folders on top are reached by links, as here"


def test_the_score_counts_what_was_found_of_what_could_be() -> None:
    def result(package: str, verdict: Verdict, survives: str | None = None) -> Result:
        mutant = Mutant("a bug", package, "here.py", "", (), survives)
        return Result(mutant, Outcome(verdict, "", 0.0))

    results = [
        *[result("raft", Verdict.FOUND) for _ in range(3)],
        result("raft", Verdict.SURVIVED, "nobody can tell"),
        result("raft", Verdict.BROKEN),
        result("groups", Verdict.ENDLESS),
    ]
    told = table(results)
    assert "| raft | 4 | 3 | 75 % |" in told
    assert "| groups | 1 | 0 | 0 % |" in told
    assert "- raft, survived: a bug (nobody can tell)" in told
    assert [each.is_expected for each in results] == [True, True, True, True, False, False]
