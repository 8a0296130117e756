"""Programs with Spark in processes of their own, which tests kill."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

DEADLINE_S = 600
"""Of one batch: three JVMs may have to start, beside those of other tests, and an open transaction to time out. Two
cores that ten more JVMs shared needed 300 s.
"""
_END_CHARACTERS = 3000


class QueryProcess:
    """A program that prints a line for each batch, with its JVM in a process group of its own.

    sign: what the lines of batches have, if it prints others, too.
    """

    def __init__(self, command: Sequence[str], log: Path, sign: str = "") -> None:
        self._path = log
        self._sign = sign
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
                if self._sign in line:
                    self._lines.put(line)
        self._lines.put(None)

    def await_batches(self, count: int) -> None:
        """That many further micro-batches are complete."""
        for _ in range(count):
            try:
                line = self._lines.get(timeout=DEADLINE_S)
            except queue.Empty:
                raise AssertionError(f"no line came within {DEADLINE_S} s behind {self._end_of_log()}") from None
            assert line is not None, f"the query has ended: {self._end_of_log()}"

    def _end_of_log(self) -> str:
        return self._path.read_text(errors="replace")[-_END_CHARACTERS:]

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


@contextmanager
def pipeline_process(command: Sequence[str], log: Path) -> Iterator[QueryProcess]:
    """A command of `pykbroker spark`; killed at the end of the block."""
    process = QueryProcess(["sh", "-c", 'exec "$@" 2>&1', "sh", *command], log, " batches, ")
    try:
        yield process
    finally:
        process.kill()
