"""What the pages of the project name is there: files behind links, and modules on the map."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "tests" / "README.md"])
FOLDERS = (ROOT, ROOT / "pykbroker", ROOT / "pykbroker" / "server")

_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_MODULE = re.compile(r"`([a-z_]+(?:/[a-z_]+)+)`")


def is_there(module: str) -> bool:
    return any((folder / module).is_dir() or (folder / f"{module}.py").exists() for folder in FOLDERS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = _LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_modules_on_the_map_are_there() -> None:
    modules = _MODULE.findall((ROOT / "docs" / "architecture.md").read_text())
    assert len(modules) > 20
    assert [module for module in modules if not is_there(module)] == []


def test_a_module_that_is_gone_is_found() -> None:
    assert is_there("server/node")
    assert not is_there("server/gone")
