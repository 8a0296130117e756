"""A copy of the tree, in which a bug is planted and taken out again. The working tree is never touched."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .mutant import ROOT, Mutant

OF_A_COPY = (
    "pykbroker",
    "protocol",
    "storage",
    "raft",
    "tests",
    "compat_tests",
    "spark_compat",
    "docs",
    "conftest.py",
    "pyproject.toml",
)


class Tree:
    """One copy. Each job of a run has its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name in OF_A_COPY:
            source, target = ROOT / name, path / name
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "recorded"))
            else:
                shutil.copy2(source, target)
        # Trials write no bytecode: what a bug was compiled to must not be taken for the file without it.
        compiled = [sys.executable, "-m", "compileall", "-q", "protocol", "storage", "raft", "pykbroker"]
        subprocess.run(compiled, cwd=path, check=True)

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        file = self.path / mutant.path
        try:
            file.write_text(mutant.text)
            yield
        finally:
            shutil.copy2(ROOT / mutant.path, file)
