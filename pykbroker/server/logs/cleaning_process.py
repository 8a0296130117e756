"""The log cleaner has segments read and copied in a thread of this process, or in a process of its own.

In Python a thread that is busy keeps the event loop from running, and a gigabyte of records keeps it busy for seconds.
The other process (`cleaning_worker`) has the files alone: what changes the log stays here. The process is started when
there is enough to do, and closed when nothing is due any more.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from pykbroker.storage.compaction.cleaning_task import CleaningAborted, CleaningTask, CleaningWork, Progress
from pykbroker.storage.segments.segment import LogSegment

if TYPE_CHECKING:
    from subprocess import Popen

    from .cleaning_messages import CleanedSegment, MessageReader

_WORTH_A_PROCESS_BYTES = 1024 * 1024
"""Less is cleaned before a process would have begun."""
_POLL_MS = 500
_END_S = 5


class CleaningProcessLost(CleaningAborted):
    """The cleaning process could not be started, or has ended in the middle of its work."""


class Workplace(Protocol):
    """A workplace works on one cleaning at a time. Everything but `begin` may block."""

    def begin(self, task: CleaningTask, progress: Progress) -> CleaningWork: ...

    @property
    def is_open(self) -> bool: ...

    def close(self) -> None:
        """Give back what the workplace holds; the next `begin` takes it up again."""
        ...


class ThisThread:
    """The calling thread does the work itself: for disks that no other process knows, and for tests."""

    is_open = False

    def begin(self, task: CleaningTask, progress: Progress) -> CleaningWork:
        return _cleaner_of_this_thread(task, progress)

    def close(self) -> None:
        pass


def _cleaner_of_this_thread(task: CleaningTask, progress: Progress) -> CleaningWork:
    from pykbroker.storage.compaction.segment_cleaner import SegmentCleaner

    return SegmentCleaner(task, progress)


class CleaningProcess:
    """A process of its own does the work, on the disk of this machine."""

    def __init__(self, *, worth_a_process_bytes: int = _WORTH_A_PROCESS_BYTES) -> None:
        self._worth_a_process_bytes = worth_a_process_bytes
        self._process: Popen[bytes] | None = None
        self._reader: MessageReader | None = None

    def begin(self, task: CleaningTask, progress: Progress) -> CleaningWork:
        if sum(each.size for each in task.cleanable_segments) < self._worth_a_process_bytes:
            return _cleaner_of_this_thread(task, progress)
        return _ElsewhereCleaner(self, task, progress)

    @property
    def is_open(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.kill()
        process.stdin.close()
        process.stdout.close()
        _wait(process)

    def request(self, message: object, progress: Progress) -> object:
        """Raise what `CleaningWork` does, and `CleaningProcessLost`."""
        from .cleaning_messages import Done, Failed, Progressed

        try:
            process, reader = self._opened(progress)
            self._send(process, message)
            while True:
                match reader.read():
                    case Progressed(size):
                        self._send(process, _permission(progress, size))
                    case Done(result):
                        return result
                    case Failed() as failure:
                        failure.raise_again()
                    case unexpected:
                        raise AssertionError(f"{unexpected} is no answer")
        except (EOFError, BrokenPipeError):
            raise CleaningProcessLost(self._bury()) from None
        except _Impatient as impatience:
            self.close()
            raise CleaningAborted(str(impatience)) from None

    def _opened(self, progress: Progress) -> tuple[Popen[bytes], MessageReader]:
        from .cleaning_messages import MessageReader

        if self._process is None:
            self._process = _start()
        process = self._process
        assert process.stdout is not None
        poll = select.poll()
        poll.register(process.stdout.fileno(), select.POLLIN)

        def wait() -> None:
            while not poll.poll(_POLL_MS):
                # A sync may take its time, and a broker that stops does not wait for it.
                try:
                    progress(0)
                except CleaningAborted as reason:
                    raise _Impatient(str(reason)) from reason

        return process, MessageReader(process.stdout.fileno(), wait)

    def _send(self, process: Popen[bytes], message: object) -> None:
        from .cleaning_messages import write_message

        assert process.stdin is not None
        write_message(process.stdin.fileno(), message)

    def _bury(self) -> str:
        process = self._process
        assert process is not None
        # Its pipe is closed, so it has ended, or is about to.
        code = _wait(process)
        self.close()
        return (
            f"its process was ended by signal {-code}" if code and code < 0 else f"its process ended with code {code}"
        )


class _Impatient(Exception):
    """The cleaning is to be aborted, and its process does not answer."""


def _permission(progress: Progress, size: int) -> object:
    from .cleaning_messages import Abort, GoOn

    try:
        progress(size)
    except CleaningAborted as reason:
        return Abort(str(reason))
    return GoOn()


def _start() -> Popen[bytes]:
    import subprocess

    # It finds its modules where this process found them, and nothing in the working directory.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    command = [sys.executable, "-P", "-m", "pykbroker.server.logs.cleaning_worker"]
    try:
        # A process group of its own: what is typed at a terminal is for the broker.
        return subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment, process_group=0
        )
    except OSError as error:
        raise CleaningProcessLost(f"its process cannot be started: {error.strerror or error}") from error


def _wait(process: Popen[bytes]) -> int | None:
    from subprocess import TimeoutExpired

    with suppress(TimeoutExpired):
        return process.wait(_END_S)
    return None


class _ElsewhereCleaner:
    def __init__(self, process: CleaningProcess, task: CleaningTask, progress: Progress) -> None:
        self._process = process
        self._task = task
        self._progress = progress

    def read_keys(self) -> int:
        from .cleaning_messages import describe

        return cast(int, self._process.request(describe(self._task), self._progress))

    def clean(self, group: Sequence[LogSegment]) -> LogSegment:
        from .cleaning_messages import CleanGroup

        segment = self._task.new_segment(group)
        try:
            message = CleanGroup([each.base_offset for each in group])
            segment.adopt(*cast("CleanedSegment", self._process.request(message, self._progress)))
        except CleaningAborted:
            # A process that was killed leaves its files behind.
            segment.delete()
            raise
        return segment
