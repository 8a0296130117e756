"""What is packed is what stands in the tree, and runs wherever it is called.

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
from email.parser import Parser
from pathlib import Path

import pytest

from compat_tests.installed import INSTALLED

from .builds import LAYERS_ON_TOP, ROOT, Packages
from .environment import CleanEnvironment

HANDFUL = ("tests/protocol/test_framing.py", "tests/cli/test_start_as_child.py", "tests/test_required_tests.py")
"""Of the tests: on values, on brokers that are started as programs, and on a pytest that is started."""


def test_a_wheel_from_the_source_distribution_holds_every_module_and_nothing_else(packages: Packages) -> None:
    with zipfile.ZipFile(packages.wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("pykbroker/")}
        tops = {name.split("/")[0] for name in archive.namelist()}
    modules = {f"pykbroker/{path.relative_to(ROOT / 'pykbroker')}" for path in (ROOT / "pykbroker").rglob("*.py")}
    modules |= {f"pykbroker/{path.relative_to(ROOT / 'pykbroker')}" for path in (ROOT / "pykbroker").rglob("*.toml")}
    static = ROOT / "pykbroker" / "console" / "static"
    modules |= {f"pykbroker/{path.relative_to(ROOT / 'pykbroker')}" for path in static.rglob("*.*")}
    for layer in LAYERS_ON_TOP:
        modules = {name for name in modules if not name.startswith(f"pykbroker/{layer}/")}
        modules |= {f"pykbroker/{path.relative_to(ROOT)}" for path in (ROOT / layer).rglob("*.py")}
    assert packed == modules | {"pykbroker/py.typed"}
    assert len(tops) == 2, "the package and its metadata"


def test_the_source_distribution_is_the_whole_tree(packages: Packages) -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a clone and git: what is tracked is compared")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    with tarfile.open(packages.sdist) as archive:
        packed = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert tracked - packed == set()
    by_setuptools = {"PKG-INFO", "setup.cfg"}
    extra = {name for name in packed - tracked - by_setuptools if not name.startswith("pykbroker.egg-info/")}
    new = subprocess.run(
        [git, "ls-files", "-z", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert extra - set(new.split("\0")) == set()


def test_the_metadata_name_all_extras_and_pythons(packages: Packages) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(packages.wheel) as archive:
        (place,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(f"{place}/METADATA").decode())
        entry_points = archive.read(f"{place}/entry_points.txt").decode()
    assert {"console", "metrics", "spark", "tls"} <= set(project["optional-dependencies"])
    assert set(metadata.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert metadata["Requires-Python"] == ">=3.11"
    for minor in (11, 12, 13, 14):
        assert f"Programming Language :: Python :: 3.{minor}" in metadata.get_all("Classifier", [])
    assert "pykbroker = pykbroker.cli.main:main" in entry_points
    assert "pykbroker = pykbroker.testing.pytest_plugin" in entry_points


def test_the_installed_broker_starts_among_folders_of_the_same_names(packages: Packages, tmp_path: Path) -> None:
    installed, here = tmp_path / "installed", tmp_path / "here"
    with zipfile.ZipFile(packages.wheel) as archive:
        archive.extractall(installed)
    for name in LAYERS_ON_TOP:
        (here / name).mkdir(parents=True)
        (here / name / "__init__.py").write_text("raise AssertionError('a folder of the user was imported')\n")
    environment = os.environ | {"PYTHONPATH": str(installed)}
    environment.pop("PYTHONSAFEPATH", None)
    where = [sys.executable, "-c", "import pykbroker.storage.log.log as log; print(log.__file__)"]
    found = subprocess.run(where, cwd=here, env=environment, capture_output=True, text=True, check=True, timeout=600)
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


def test_tests_in_an_unpacked_source_distribution_try_the_installed_wheel(packages: Packages, tmp_path: Path) -> None:
    """`make release-check` runs all of them so, on each Python."""
    clean = CleanEnvironment.of(tmp_path / "environment", packages.wheel, "test")
    arguments = ("-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *HANDFUL)
    done = clean.run(*arguments, cwd=packages.tree)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = "from compat_tests.installed import INSTALLED; print(INSTALLED)"
    told = clean.run("-P", "-c", f"import sys; sys.path.append({str(packages.tree)!r}); {asked}", cwd=tmp_path)
    assert Path(told.stdout.strip()) == clean.site_packages.resolve()


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
    if INSTALLED != ROOT and (ROOT / "PKG-INFO").exists():
        pytest.skip("a source distribution has no links: it is installed, or built from")
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
