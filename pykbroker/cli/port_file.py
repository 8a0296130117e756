"""The port file tells other processes where the node serves; `docs/testing.md` has its form.

It appears as a whole when the node serves, and goes when the node ends. What a killed node left there is removed before
the next one starts. Nothing else is ever overwritten: a file that is neither empty nor a port file is an error.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .command import CommandFailed

if TYPE_CHECKING:
    from pykbroker.server.node.bound_listeners import BoundListener

_FIRST_LINE = re.compile(rb"\S{1,300}:[0-9]{1,5}\n")
_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Listening:
    """A listener as a node tells of it. address: host and port."""

    name: str
    address: str


class PortFile:
    """A port file at `path`. Everything raises CommandFailed.

    What was written stays open until it is removed: its number among the files of the volume is given to no other one
    meanwhile, as that of a file is which a later node has removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.abspath(path))
        self._written: TextIO | None = None

    def prepare(self) -> None:
        """Remove what an earlier run left, and see that the file can be written."""
        with self._named_errors():
            try:
                with open(self._path, "rb", opener=_without_waiting) as old:
                    is_ours = stat.S_ISREG(os.fstat(old.fileno()).st_mode) and _is_port_file(old.readline(400))
            except FileNotFoundError:
                pass
            else:
                if not is_ours:
                    raise CommandFailed(f"--port-file {self._path}: there is something else, which is not overwritten")
                self._path.unlink(missing_ok=True)
            descriptor, trial = self._new_file()
            os.close(descriptor)
            os.unlink(trial)

    def write(self, listeners: Sequence[BoundListener | Listening], ctl: str = "") -> None:
        """Write it. ctl: the address of the node's control, where it has one."""
        with self._named_errors():
            descriptor, name = self._new_file()
            try:
                self._written = open(descriptor, "w")  # noqa: SIM115 - it stays open
                self._written.write(port_file_text(listeners, ctl))
                self._written.flush()
                os.fchmod(descriptor, _MODE)
                os.rename(name, self._path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise

    def remove(self) -> None:
        """Remove the file that was written, and not one that another node has put there since."""
        if self._written is None:
            return
        with suppress(OSError), self._written as written:
            if os.path.samestat(os.fstat(written.fileno()), os.lstat(self._path)):
                self._path.unlink()

    def _new_file(self) -> tuple[int, str]:
        return tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CommandFailed(f"--port-file {self._path} cannot be written: {error.strerror or error}") from None


def port_file_text(listeners: Sequence[BoundListener | Listening], ctl: str = "") -> str:
    """The address of the first listener; then each listener with its name, the first one once more; then control."""
    named = [f"{each.name}={each.address}\n" for each in listeners]
    return "".join([f"{listeners[0].address}\n", *named, *([f"ctl={ctl}\n"] if ctl else [])])


def _is_port_file(first_line: bytes) -> bool:
    """An empty file counts as one: whoever asked for it may have made it to have a name of his own."""
    return not first_line or _FIRST_LINE.fullmatch(first_line) is not None


def _without_waiting(path: str, flags: int) -> int:
    """Open a pipe, too, without waiting for who writes into it."""
    return os.open(path, flags | os.O_NONBLOCK)
