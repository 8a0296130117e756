"""The page of Apache Kafka's faults names tests that are there, and each test names its JIRA."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "kafka-jiras.md"
_ROW = re.compile(r"^\| (none|KAFKA-\d+(?:, KAFKA-\d+)*) \|.*\| `(tests/\S+\.py)::(test_\w+)` \|$")
_JIRA = re.compile(r"KAFKA-\d+")


def rows() -> list[tuple[list[str], Path, str]]:
    found = [_ROW.match(line) for line in PAGE.read_text().splitlines()]
    return [(_JIRA.findall(row[1]), ROOT / row[2], row[3]) for row in found if row is not None]


def docstrings_of(path: Path) -> Iterator[tuple[str, str]]:
    """The names and docstrings of a module's tests."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def test_every_row_is_read() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows()) == len(lines) > 20


def test_every_test_on_the_page_is_there_and_names_its_jira() -> None:
    for jiras, path, name in rows():
        docstrings = dict(docstrings_of(path))
        assert name in docstrings, f"{path} has no {name}"
        assert [jira for jira in jiras if jira not in docstrings[name]] == [], name


def test_every_jira_that_a_test_names_is_on_the_page() -> None:
    on_page = {jira for jiras, _, _ in rows() for jira in jiras}
    named = {
        (jira, name)
        for path in (ROOT / "tests").rglob("test_*.py")
        for name, docstring in docstrings_of(path)
        for jira in _JIRA.findall(docstring)
    }
    assert {name for jira, name in named if jira not in on_page} == set()
