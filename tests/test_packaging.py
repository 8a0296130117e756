"""What is installed is what stands in the tree: setuptools takes the list of packages, and forgets new ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS_ON_TOP = ("protocol", "storage", "raft")


def test_the_list_of_packages_is_the_tree() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    listed = setuptools["packages"]
    found = {"pykbroker", *_packages_below(ROOT / "pykbroker", "pykbroker")}
    for layer in LAYERS_ON_TOP:
        name = f"pykbroker.{layer}"
        assert setuptools["package-dir"][name] == layer
        found |= {name, *_packages_below(ROOT / layer, name)}
    assert len(listed) == len(set(listed))
    assert set(listed) == found


def test_a_bare_checkout_finds_the_layers_on_top_by_links() -> None:
    for layer in LAYERS_ON_TOP:
        link = ROOT / "pykbroker" / layer
        assert link.is_symlink()
        assert link.readlink() == Path("..") / layer


def test_the_types_are_published() -> None:
    assert (ROOT / "pykbroker" / "py.typed").exists()


def _packages_below(directory: Path, name: str) -> set[str]:
    found: set[str] = set()
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink() and any(entry.glob("*.py")):
            assert (entry / "__init__.py").exists(), f"{entry} has modules, but no __init__.py"
            found |= {f"{name}.{entry.name}", *_packages_below(entry, f"{name}.{entry.name}")}
    return found
