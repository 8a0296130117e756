"""The examples in Python: suites for containers (`before`) and for pykbroker (`tests`), with what they require.

A suite runs in an environment of its own, which sees the packages of this one: pip brings what is missing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path

from .installed import PYTHONPATH

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
NAMES = ("python-confluent", "python-faststream")
BEFORE, AFTER = "before", "tests"
CONTAINER_PROPERTIES = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
"""What `KafkaContainer` of testcontainers sets."""
TIMEOUT_S = 600

_PASSED = re.compile(r"^(\d+) passed", re.MULTILINE)


class PythonEnvironment:
    """A virtual environment with the requirements of these examples."""

    def __init__(self, directory: Path, names: tuple[str, ...] = NAMES) -> None:
        self.python = directory / "bin" / "python"
        venv.create(directory, symlinks=True)
        (packages,) = directory.glob("lib/python*/site-packages")
        ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        lines = [f"import site; site.addsitedir({path!r})\n" for path in sorted(ours)]
        (packages / "packages-of-the-tests.pth").write_text("".join(lines))
        files = [file for name in names for file in sorted((EXAMPLES / name).glob("requirements*.txt"))]
        options = [option for file in files for option in ("-r", str(file))]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-compile", *options],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, name: str, suite: str, variables: Mapping[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", suite],
            cwd=EXAMPLES / name,
            env=os.environ | {"PYTHONPATH": PYTHONPATH} | dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run_all(self, suite: str, variables: Mapping[str, str]) -> dict[str, int]:
        """Run the suites of all examples at a time, as they mostly wait, and return how many tests of each passed."""
        running = {name: self.start(name, suite, variables) for name in NAMES}
        try:
            return {name: passed(process) for name, process in running.items()}
        finally:
            for process in running.values():
                process.kill()
                process.communicate()


def passed(suite: subprocess.Popen[str]) -> int:
    """Wait for a suite that was started, all of whose tests have to pass, and return how many they are."""
    try:
        out, _ = suite.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        suite.kill()
        out, _ = suite.communicate()
    found = _PASSED.search(out)
    assert suite.returncode == 0, out
    assert found is not None, out
    return int(found[1])
