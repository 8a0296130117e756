"""Source distributions and wheels, built by setuptools directly, as pip calls it.

Nothing is fetched, and nothing is written into the tree.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS_ON_TOP = ("protocol", "storage", "raft")
_FOLDERS = ("pykbroker", *LAYERS_ON_TOP, "tests", "compat_tests", "spark_compat", "benchmarks", "docs", "docker")
_LEFT = shutil.ignore_patterns("__pycache__", "node_modules", "target", "results")


@dataclass(frozen=True, slots=True)
class Packages:
    """What a release has. tree: the unpacked source distribution, from which the wheel was built."""

    sdist: Path
    wheel: Path
    tree: Path


def build(directory: Path) -> Packages:
    """Build a source distribution of this tree, and a wheel from that, as it comes to whoever has no clone."""
    copy = directory / "copy"
    copy.mkdir()
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy / path.name)
        elif path.name in (*_FOLDERS, "examples", ".ci"):
            shutil.copytree(path, copy / path.name, symlinks=True, ignore=_LEFT)
    sdist = _build("sdist", copy, directory)
    shutil.rmtree(copy)
    with tarfile.open(sdist) as archive:
        archive.extractall(directory / "unpacked", filter="data")
    (tree,) = (directory / "unpacked").iterdir()
    return Packages(sdist, _build("wheel", tree, directory), tree)


def _build(kind: str, tree: Path, directory: Path) -> Path:
    script = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    built = directory / kind
    built.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, built], cwd=tree, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (package,) = built.iterdir()
    return package
