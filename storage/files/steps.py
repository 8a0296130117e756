"""Work on records that takes long, as a generator: what it leaves to others, and what is for a thread.

It yields None where the work of a turn (`CheckBudget`) is done and others should have theirs, and a `Job` where
something is for a thread, whose result it is sent, or what that raised. Who drives it knows threads and clients:
`server.logs.record_checks`, or `run_steps` where nobody waits.
"""

from collections.abc import Callable, Generator
from typing import NamedTuple, TypeAlias, TypeVar

from pykbroker.protocol.records.errors import InvalidRecords

from .errors import CorruptLog, FileError

MEDIUM_BYTES = 8 * 1024 * 1024
"""Several jobs may have so much memory at the same time."""

JOB_FAILURES = (InvalidRecords, CorruptLog, FileError)
"""What a job may raise, and the steps are told of."""


class Job(NamedTuple):
    """Work for a thread. is_large: it takes so much memory that there may be one at a time."""

    run: Callable[[], object]
    is_large: bool = False


T = TypeVar("T")
Steps: TypeAlias = Generator[Job | None, object, T]


def run_steps(steps: Steps[T]) -> T:
    """All of them, here and now. Their turn must have no limit."""
    try:
        job = next(steps)
        while True:
            assert job is not None, "a turn without a limit came to its end"
            try:
                result = job.run()
            except JOB_FAILURES as error:
                job = steps.throw(error)
            else:
                job = steps.send(result)
    except StopIteration as end:
        found: T = end.value
        return found
