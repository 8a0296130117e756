"""Programs with Spark in processes of their own, which tests kill."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil

DEADLINE_S = 180


class QueryProcess:
    """A program that prints a line for each batch, with its JVM in a process group of its own."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._path = log
        self._log = log.open("ab")
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True, start_new_session=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._log.write(line.encode())
                self._log.flush()
                self._lines.put(line)
        self._lines.put(None)

    def await_batches(self, count: int) -> None:
        """That many further micro-batches are complete."""
        for _ in range(count):
            line = self._lines.get(timeout=DEADLINE_S)
            assert line is not None, f"the query has ended: {self._path.read_text(errors='replace')[-3000:]}"

    def end(self) -> int:
        """Ask it to end; its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(DEADLINE_S)
        finally:
            self.kill()

    def executors(self) -> list[psutil.Process]:
        """JVMs of their own, with `--master local-cluster[…]`."""
        found = []
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # some end meanwhile
                if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in child.cmdline():
                    found.append(child)
        return found

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        self._log.close()
