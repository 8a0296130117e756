"""Records on standard output, and on standard error what is wrong with them.

Both are written in a thread: a reader that pauses must keep neither the heartbeats of a group's member from being sent
nor a signal from being noticed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence

import trio

from pykbroker.client.fetched import ConsumedRecord

from ..command import CommandFailed
from ..line_reader import InvalidLine
from .codecs import Codec

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, colour it, or turn its text around; a tab and a line's end are not."""


class Watched:
    """A codec that shows what does not have its form in hexadecimal, and notes why. side: "key" or "value"."""

    def __init__(self, codec: Codec, side: str) -> None:
        self.failures: list[str] = []
        self._codec = codec
        self._side = side

    def shown(self, data: bytes) -> bytes:
        try:
            return self._codec.shown(data)
        except InvalidLine as error:
            self._note(error)
            return data.hex().encode()

    def document(self, data: bytes) -> str:
        try:
            return self._codec.document(data)
        except InvalidLine as error:
            self._note(error)
            raise

    def from_line(self, text: bytes) -> bytes:
        return self._codec.from_line(text)

    def from_document(self, document: object) -> bytes:
        return self._codec.from_document(document)

    def _note(self, error: InvalidLine) -> None:
        self.failures.append(f"{self._side} is {error}" if str(error).startswith("not ") else f"{self._side}: {error}")


def terminal_safe(line: bytes, *, is_json: bool = False) -> bytes:
    """Return a line for a terminal: what would steer it is escaped, and so are bytes that are no text.

    is_json: with JSON's escapes, so that it stays a document.
    """
    text = line.decode("utf-8", "backslashreplace")

    def escaped(match: re.Match[str]) -> str:
        if is_json:
            return f"\\u{ord(match[0]):04x}"
        return match[0].encode("unicode_escape").decode("ascii")

    return _CONTROL.sub(escaped, text).encode()


class Printer:
    """The printer counts the records that it has written.

    skips_on_error: a record that the line's format refuses is left out instead of ending the command. is_abandoned: at
    a signal a write is left alone; a member of a group commits the offsets of its records then, and waits for it.
    """

    def __init__(
        self,
        line: Callable[[ConsumedRecord], bytes],
        *,
        watched: Sequence[Watched] = (),
        skips_on_error: bool = False,
        is_abandoned: bool = False,
    ) -> None:
        self.printed = 0
        self.has_complained = False
        self._line = line
        self._watched = watched
        self._skips_on_error = skips_on_error
        self._is_abandoned = is_abandoned

    async def print(self, records: Sequence[ConsumedRecord]) -> list[ConsumedRecord]:
        """Return the records that are left out, since their format refuses them.

        Raises CommandFailed, behind the records that stand before the one that cannot be printed.
        """
        lines: list[bytes] = []
        left_out: list[ConsumedRecord] = []
        complaints: list[str] = []
        make_line = self._line
        for record in records:
            try:
                lines.append(make_line(record))
            except InvalidLine as error:
                message = f"Offset {record.offset} of {record.topic}-{record.partition}: {error}"
                if not self._skips_on_error:
                    await self._write(lines, complaints)
                    raise CommandFailed(message) from None
                complaints.append(message)
                left_out.append(record)
            if self._watched:
                complaints += self._failures(record)
        await self._write(lines, complaints)
        return left_out

    def _failures(self, record: ConsumedRecord) -> list[str]:
        found = []
        for codec in self._watched:
            if codec.failures:
                self.has_complained = True
                found += [f"{record.topic}-{record.partition}@{record.offset}: {each}" for each in codec.failures]
                codec.failures.clear()
        return found

    async def _write(self, lines: list[bytes], complaints: list[str]) -> None:
        def write() -> None:
            if complaints and sys.stderr is not None:
                text = "".join(f"WARN: {_CONTROL.sub('?', ' '.join(each.split()))}\n" for each in complaints)
                _write_all(sys.stderr.fileno(), text.encode("utf-8", "replace"))
            _write_all(sys.stdout.fileno(), b"".join(lines))

        await trio.to_thread.run_sync(write, abandon_on_cancel=self._is_abandoned)
        self.printed += len(lines)


def _write_all(descriptor: int, data: bytes) -> None:
    """Past Python's own buffer, so that a pipe has each batch at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
