"""A person at a terminal: a command on a pseudo-terminal, what it shows, and what is typed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence

from tests.cli.conftest import PYKBROKER, ROOT

TIMEOUT_S = 60


def at_terminal(
    arguments: Sequence[str],
    *,
    answer: bytes = b"",
    typed: Sequence[tuple[bytes, bytes]] = (),
    columns: int = 200,
    **environment: str,
) -> tuple[int, str]:
    """Return the exit code and all that was shown.

    answer: what is typed at `[y/N]`. typed: more of this kind, each a question and what is typed once it is shown.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*PYKBROKER, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=inherited | {"TERM": "xterm-256color"} | environment,
        start_new_session=True,
        preexec_fn=_terminal_of_its_own,
    )
    os.close(theirs)
    shown = b""
    for question, text in [(b"[y/N]", answer)] * bool(answer) + [*typed]:
        while question not in shown:
            shown += _more(ours)
        os.write(ours, text)
    while more := _more(ours):
        shown += more
    os.close(ours)
    return process.wait(TIMEOUT_S), shown.decode().replace("\r\n", "\n")


def _more(file: int) -> bytes:
    """Return what is shown next; nothing where the other side is closed."""
    deadline = time.monotonic() + TIMEOUT_S
    assert select.select([file], [], [], deadline - time.monotonic())[0]
    try:
        return os.read(file, 65536)
    except OSError:  # how Linux says that nobody has the terminal any more
        return b""


def _terminal_of_its_own() -> None:
    """Make the terminal the controlling one, so that its Ctrl-C is a signal."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))
