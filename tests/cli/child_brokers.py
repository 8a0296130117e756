"""Brokers that tests start as children, with a place for temporary files of their own, and what is left of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from compat_tests.installed import PYTHONPATH
from compat_tests.waiting import until

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 180
READY = re.compile(r"pykbroker ready: ((?:[A-Z_]+://\S+:\d+ )+)node\.id=(\d+) cluster\.id=(\S{22}) log\.dirs=(\S+)\n")
START = [sys.executable, "-m", "pykbroker", "start", "--ephemeral", "--port", "0"]
_MARK = "PYKBROKER_TEST_MARK"

STARTS_A_BROKER = """
import subprocess, sys, time
stdin = subprocess.PIPE if sys.argv[1] == "pipe" else subprocess.DEVNULL
subprocess.Popen(sys.argv[2:], stdin=stdin)
time.sleep(1000)
"""


class Place:
    """Where a test's brokers have their temporary directories, and how their processes are known: by a variable."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self.port_file = directory / "port"
        self.log = directory / "log"
        self._mark = uuid.uuid4().hex
        self.environment = {**os.environ, "PYTHONPATH": PYTHONPATH, "TMPDIR": str(self.temporary), _MARK: self._mark}

    def start(self, *flags: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*START, *flags],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.environment,
                cwd=self.directory,
                text=True,
            )

    def start_parent(self, how: str, *flags: str) -> subprocess.Popen[bytes]:
        """Start a process that starts a broker; a session of its own, as a runner of tests has one."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-S", "-E", "-c", STARTS_A_BROKER, how, *START, *flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=self.environment,
                cwd=self.directory,
                start_new_session=True,
            )

    def processes(self) -> list[psutil.Process]:
        return [each for each in psutil.process_iter() if self._is_marked(each)]

    def broker_runs(self) -> bool:
        """Whether there is a process besides the parent."""
        return len(self.processes()) > 1

    def left(self) -> list[str]:
        """Return what there is of brokers: processes, directories, files that say where they serve."""
        processes = [f"process {each.pid}" for each in self.processes()]
        return [*processes, *(each.name for each in self.temporary.iterdir()), *self._port_files()]

    def wait_until_nothing_is_left(self) -> None:
        until(lambda: not self.left(), "something of a broker is left", 30)

    def kill_all(self) -> None:
        for process in self.processes():
            process.send_signal(signal.SIGKILL)

    def _port_files(self) -> list[str]:
        return [each.name for each in self.directory.iterdir() if "port" in each.name]

    def _is_marked(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(_MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


@pytest.fixture
def hang_up_counts() -> Iterator[None]:
    """Under `nohup` SIGHUP is ignored, here and in children; a broker leaves it at that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def place(tmp_path: Path, hang_up_counts: None) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.kill_all()
