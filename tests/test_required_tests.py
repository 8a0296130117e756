"""Tests whose programs are missing are left out, with the reason; PYKBROKER_REQUIRE makes that a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDS_KCAT = ("compat_tests/test_round_trips.py", "-k", "kcat and pykbroker and none")


@pytest.mark.parametrize(
    ("required", "exit_code", "expected"),
    [
        ("", pytest.ExitCode.OK, "SKIPPED [1] conftest.py"),
        ("spark", pytest.ExitCode.OK, "SKIPPED [1] conftest.py"),
        ("java,kcat", pytest.ExitCode.TESTS_FAILED, "left out, though PYKBROKER_REQUIRE asks for kcat"),
    ],
)
def test_what_is_required_is_not_left_out(tmp_path: Path, required: str, exit_code: int, expected: str) -> None:
    environment = os.environ | {"PATH": str(tmp_path), "PYKBROKER_REQUIRE": required}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *NEEDS_KCAT]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == exit_code, done.stdout
    assert expected in done.stdout
    assert "needs kcat (Debian package kcat)" in done.stdout
