"""A command on a terminal of a test's own: what a person would see there, and the keys that are pressed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from types import TracebackType
from typing import Self

import pyte

from tests.cli.conftest import PYKBROKER, ROOT, TIMEOUT_S


class Terminal:
    """An emulator with the command in it, which is killed at the end of the block if it still runs."""

    def __init__(
        self,
        arguments: list[str],
        *,
        columns: int = 100,
        rows: int = 30,
        term: str = "xterm-256color",
        ignored: signal.Signals | None = None,
    ) -> None:
        self._arguments = arguments
        self._environment = {**os.environ, "TERM": term}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
            self._environment.pop(name, None)
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.received = b""
        self._ignored = ignored
        self._is_open = False

    def __enter__(self) -> Self:
        self._master, self.slave = os.openpty()
        self._is_open = True
        self._set_size()
        self.settings = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [*PYKBROKER, *self._arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=self._environment,
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=self._take_terminal,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        self.close()

    @property
    def text(self) -> str:
        """The screen, without the blanks at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def close(self) -> None:
        """Take the terminal away."""
        if self._is_open:
            self._is_open = False
            os.close(self.slave)
            os.close(self._master)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._set_size()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read until the screen has this."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            found = re.search(pattern, self.text)
            if found:
                return found
            assert time.monotonic() < deadline, f"no {pattern!r} on the screen:\n{self.text}"
            assert self._read() or self.process.poll() is None, f"it has ended without {pattern!r}:\n{self.text}"

    def wait(self) -> int:
        """Read to the end, and return the exit code."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end:\n{self.text}"
            self._read()
        while self._read():
            pass
        return self.process.returncode

    def interrupt(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.wait()

    def _set_size(self) -> None:
        size = struct.pack("HHHH", self._screen.lines, self._screen.columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def _take_terminal(self) -> None:
        """Make standard input the terminal of the new session, so that Ctrl-C and changes of size reach the command."""
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if self._ignored is not None:
            signal.signal(self._ignored, signal.SIG_IGN)

    def _read(self) -> bool:
        readable, _, _ = select.select([self._master], [], [], 0.05)
        if not readable:
            return False
        with contextlib.suppress(OSError):
            data = os.read(self._master, 65_536)
            self.received += data
            self._stream.feed(data)
        return True
