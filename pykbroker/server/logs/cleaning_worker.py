"""The cleaning worker is the process that reads and copies segments for a broker's log cleaner; `cleaning_process` is
the broker's end.

The process ends with its standard input, so that nothing is left of it when the broker is killed: a thread waits for
that and for nothing else. The module must not import Trio: the process is started for each wave of cleanings.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from pykbroker.storage.compaction.cleaning_task import CleaningAborted
from pykbroker.storage.compaction.segment_cleaner import SegmentCleaner
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import StorageError
from pykbroker.storage.segments.segment import LogSegment

from .cleaning_messages import (
    Abort,
    CleanedSegment,
    CleanGroup,
    Done,
    Failed,
    GoOn,
    MessageReader,
    Progressed,
    ReadKeys,
    understand,
    write_message,
)

T = TypeVar("T")

_NICENESS = 5
"""Producers and consumers wait for the broker, and nobody for this; on a machine without rest it must go on, too."""
_PROGRESS_BYTES = 2 * 1024 * 1024


class _Worker:
    def __init__(self, messages: SimpleQueue[object], output: int) -> None:
        self._messages = messages
        self._output = output
        self._disk = OsDisk()
        self._unreported_bytes = 0
        self._segments: dict[int, LogSegment] = {}
        self._cleaner: SegmentCleaner | None = None

    def serve(self) -> None:
        while True:
            match self._messages.get():
                case ReadKeys() as message:
                    answer = _attempt(self._begin, message)
                case CleanGroup() as message:
                    answer = _attempt(self._clean, message)
                case unexpected:
                    raise AssertionError(f"{unexpected} is no request")
            write_message(self._output, answer)

    def _begin(self, message: ReadKeys) -> int:
        self._cleaner = None  # what the last one has in memory goes first
        task = understand(message, self._disk)
        self._segments = {each.base_offset: each for each in task.segments}
        self._cleaner = SegmentCleaner(task, self._progress)
        return self._cleaner.read_keys()

    def _clean(self, message: CleanGroup) -> CleanedSegment:
        assert self._cleaner is not None, "a task begins with its keys"
        segment = self._cleaner.clean([self._segments[each] for each in message.base_offsets])
        return CleanedSegment(segment.size, segment.max_timestamp, segment.offset_of_max_timestamp)

    def _progress(self, size: int) -> None:
        self._unreported_bytes += size
        if self._unreported_bytes < _PROGRESS_BYTES:
            return
        write_message(self._output, Progressed(self._unreported_bytes))
        self._unreported_bytes = 0
        answer = self._messages.get()
        if isinstance(answer, Abort):
            raise CleaningAborted(answer.reason)
        assert isinstance(answer, GoOn), answer


def _attempt(work: Callable[[T], object], message: T) -> Done | Failed:
    try:
        return Done(work(message))
    except StorageError as error:
        return Failed.because_of(error)


def _read_until_the_end(descriptor: int, messages: SimpleQueue[object]) -> None:
    reader = MessageReader(descriptor)
    try:
        while True:
            messages.put(reader.read())
    except EOFError:
        os._exit(0)  # whatever the other thread is about to do


def main() -> None:
    os.nice(_NICENESS)
    messages: SimpleQueue[object] = SimpleQueue()
    arguments = (sys.stdin.fileno(), messages)
    threading.Thread(target=_read_until_the_end, args=arguments, daemon=True).start()
    with suppress(BrokenPipeError):
        _Worker(messages, sys.stdout.fileno()).serve()


if __name__ == "__main__":
    main()
