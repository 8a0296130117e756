"""Tests beside an installed pykbroker, as in an unpacked source distribution: what is installed is tested, no tree.

The tree must still be found, since it has the tests. It comes last, in this process, in pytest's workers and in the
programs that tests start, wherever they run. In a clone, whose `.venv` has the tree itself installed, nothing changes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import pykbroker

ROOT = Path(__file__).parents[1]
INSTALLED = Path(pykbroker.__file__).resolve().parents[1]
IS_THE_TREE = ROOT.resolve() == INSTALLED

PYTHONPATH = str(ROOT) if IS_THE_TREE else os.pathsep.join((str(INSTALLED), str(ROOT)))
"""For a program that imports pykbroker, and maybe tests."""

needs_a_clone = pytest.mark.skipif(not IS_THE_TREE, reason="pykbroker's packages are links in a clone alone")


def prefer_what_is_installed() -> None:
    if IS_THE_TREE:
        return
    sys.path[:] = [place for place in sys.path if place not in ("", str(ROOT))] + [str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (PYTHONPATH, os.environ.get("PYTHONPATH"))))
    os.environ["PYTHONSAFEPATH"] = "1"  # no program looks into its working directory first
