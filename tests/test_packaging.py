"""What is installed is what stands in the tree, and runs wherever it is called.

setuptools takes the list of packages from pyproject.toml and forgets new ones; the folders on top of the tree have
names that a user's own folders may have, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS_ON_TOP = ("protocol", "storage", "raft")
SOURCES = ("pykbroker", *LAYERS_ON_TOP, "pyproject.toml", "README.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from an unpacked source distribution, as it comes to whoever has no clone."""
    directory = tmp_path_factory.mktemp("packages")
    tree = directory / "tree"
    tree.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    sdist = _build("sdist", tree, directory)
    with tarfile.open(sdist) as archive:
        archive.extractall(directory / "unpacked", filter="data")
    (unpacked,) = (directory / "unpacked").iterdir()
    return _build("wheel", unpacked, directory)


def _build(kind: str, tree: Path, directory: Path) -> Path:
    """By setuptools directly, as pip calls it: nothing is fetched, and nothing is written into the clone."""
    script = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    built = directory / kind
    built.mkdir()
    subprocess.run([sys.executable, "-c", script, built], cwd=tree, check=True, capture_output=True, timeout=600)
    (package,) = built.iterdir()
    return package


def test_a_wheel_from_the_source_distribution_holds_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("pykbroker/")}
    modules = {f"pykbroker/{path.relative_to(ROOT / 'pykbroker')}" for path in (ROOT / "pykbroker").rglob("*.py")}
    modules |= {f"pykbroker/{path.relative_to(ROOT / 'pykbroker')}" for path in (ROOT / "pykbroker").rglob("*.toml")}
    static = ROOT / "pykbroker" / "console" / "static"
    modules |= {f"pykbroker/{path.relative_to(ROOT / 'pykbroker')}" for path in static.rglob("*.*")}
    for layer in LAYERS_ON_TOP:
        modules |= {f"pykbroker/{path.relative_to(ROOT)}" for path in (ROOT / layer).rglob("*.py")}
    assert packed == modules | {"pykbroker/py.typed"}


def test_the_installed_broker_starts_among_folders_of_the_same_names(wheel: Path, tmp_path: Path) -> None:
    installed, here = tmp_path / "installed", tmp_path / "here"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    for name in LAYERS_ON_TOP:
        (here / name).mkdir(parents=True)
        (here / name / "__init__.py").write_text("raise AssertionError('a folder of the user was imported')\n")
    environment = os.environ | {"PYTHONPATH": str(installed)}
    where = [sys.executable, "-c", "import pykbroker.storage.log.log as log; print(log.__file__)"]
    found = subprocess.run(where, cwd=here, env=environment, capture_output=True, text=True, check=True, timeout=180)
    assert Path(found.stdout.strip()) == installed / "pykbroker" / "storage" / "log" / "log.py"
    start = [sys.executable, "-m", "pykbroker", "start", "--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    with subprocess.Popen(start, cwd=here, env=environment, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            assert broker.stdout.readline().startswith("pykbroker ready: PLAINTEXT://127.0.0.1:")
        finally:
            broker.send_signal(signal.SIGINT)
        assert broker.wait(30) == 0
    assert (here / "pykbroker-data" / "meta.properties").exists()


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
