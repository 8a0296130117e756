"""The worked examples of `docs/contributing.md` are carried out on a copy of this tree, and their tests run there.

A fence names the file that it is about. A fence `python FILE` is the whole of a new file, `diff FILE` changes one that
exists (`tests.diffs`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.installed import needs_a_clone
from tests.diffs import BadDiff, changed

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "contributing.md"
OF_A_COPY = ("pykbroker", "protocol", "storage", "raft", "tests", "compat_tests", "docs", "pyproject.toml")
TIMEOUT_S = 240

_FENCE = re.compile(r"^```(python|diff) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One fence of the guide."""

    kind: str
    file: str
    text: str

    def carry_out(self, tree: Path) -> None:
        """Raises BadDiff."""
        path = tree / self.file
        if self.kind == "diff":
            path.write_text(changed(self.file, path.read_text() if path.exists() else "", self.text))
        elif path.exists():
            raise BadDiff(f"{self.file} exists already: the example needs another subject")
        else:
            path.write_text(self.text)


def steps(guide: str) -> list[Step]:
    return [Step(kind, file, text) for kind, file, text in _FENCE.findall(guide)]


@needs_a_clone
def test_each_example_works_and_its_tests_pass(tmp_path: Path) -> None:
    for name in OF_A_COPY:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    examples = steps(GUIDE.read_text())
    for step in examples:
        step.carry_out(tmp_path)
    tests = [step.file for step in examples if Path(step.file).name.startswith("test_")]
    assert len(tests) >= 4, "an API, a configuration key, a command and a metadata record have a test each"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("diff", "count"), [(" b\n+c\n", 2), ("-x\n+y\n", 0)], ids=["lines that stand there twice", "lines that are gone"]
)
def test_an_example_that_does_not_fit_the_tree_is_named(diff: str, count: int) -> None:
    with pytest.raises(BadDiff, match=f"here.py: these lines stand there {count} times"):
        changed("here.py", "a\nb\na\nb\n", diff)


def test_a_diff_changes_each_of_its_places() -> None:
    assert changed("here.py", "a\nb\n\nc\n", " a\n+x\n b\n@@\n \n-c\n+d\n") == "a\nx\nb\n\nd\n"


def test_a_file_that_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("")
    with pytest.raises(BadDiff, match=r"here\.py exists already"):
        Step("python", "here.py", "x = 1\n").carry_out(tmp_path)
