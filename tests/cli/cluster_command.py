"""`pykbroker cluster` as a process of a test's own, for the tests here and for those that bring stock clients."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from compat_tests.installed import PYTHONPATH
from compat_tests.ports import take_consecutive_ports

TIMEOUT_S = 60
READY = re.compile(r"pykbroker cluster ready: (\S+)\n")


class ClusterCommand:
    """One run of it, whose output is read as it comes."""

    def __init__(self, arguments: list[str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pykbroker", "cluster", *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_ready(self) -> str:
        """The bootstrap servers."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        ready = READY.fullmatch(line)
        assert ready, f"{line!r}\n{self.log()}"
        return ready[1]

    def nodes(self) -> dict[int, psutil.Process]:
        """By node id."""
        return {
            int(Path(child.cmdline()[-1]).parent.name.removeprefix("node-")): child
            for child in psutil.Process(self.process.pid).children()
        }

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        return code

    def log(self) -> str:
        return "".join(self.lines)

    def close(self) -> None:
        """Nodes, too, where the test has failed."""
        if self.process.poll() is None:
            for node in self.nodes().values():
                node.kill()
            self.process.kill()
        self.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)


@pytest.fixture
def base_port() -> int:
    return take_consecutive_ports(8)


@pytest.fixture
def start_cluster(tmp_path: Path, base_port: int) -> Iterator[Callable[..., ClusterCommand]]:
    """`pykbroker cluster` with these arguments; killed at the end of the test if it still runs."""
    started: list[ClusterCommand] = []

    def start(*arguments: str) -> ClusterCommand:
        started.append(ClusterCommand(["--base-port", str(base_port), *arguments], tmp_path))
        return started[-1]

    yield start
    for each in started:
        each.close()
