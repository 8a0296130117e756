"""Spark's exceptions as errors of one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import (
    Cancelled,
    ClusterUnavailable,
    JobFailed,
    NoRoom,
    NotAllowed,
    PipelineError,
    RecordsLost,
    SparkMissing,
    TaskLost,
)

_CANCELLED = re.compile(r"cancelled as part of cancellation of all jobs")
_BROKEN_OFF = re.compile(r"An error occurred while calling \S+")
_FULL = re.compile(r"No space left on device|Disk quota exceeded|DSQuotaExceeded")
_LOST = re.compile(r"KAFKA_DATA_LOSS|[Ss]ome data may have been lost|OffsetOutOfRangeException")
_UNREACHABLE = re.compile(
    r"(No resolvable bootstrap urls[^\n]*|"
    r"Timeout(?:Exception)?[^\n]*(?:fetch|topic|partition|metadata|node|kafka)[^\n]*|"
    r"Failed to update metadata[^\n]*|UnknownTopicOrPartitionException[^\n]*)"
)
_NOT_ALLOWED = re.compile(
    r"((?:Topic|Group|Cluster|TransactionalId|DelegationToken)AuthorizationException|"
    r"(?:Sasl|Ssl)AuthenticationException): ([^\n]*)"
)
_TASK_LOST = re.compile(rf"^{TaskLost.__module__}\.{TaskLost.__qualname__}: (.*)$", re.MULTILINE)
_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([^']*)'$", re.MULTILINE)
_PYTHON = re.compile(
    r"PythonException: [^\n]*Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)$", re.MULTILINE
)
_EXCEPTION = re.compile(r"\A.*\n: (.*)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)


@contextmanager
def job_errors() -> Iterator[None]:
    """Raises another error of `pykbroker.spark.errors` in the place of Spark's exceptions."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except PipelineError:
        raise
    except (PySparkException, Py4JError) as error:
        raise explained(str(error)) from None


def explained(text: str) -> PipelineError:
    if _CANCELLED.search(text):
        return Cancelled("Spark's jobs were cancelled")
    lost = _TASK_LOST.search(text)
    if lost:
        return TaskLost(lost[1])
    missing = _NO_MODULE.search(text)
    if missing:
        return SparkMissing(
            f"Python has no module {missing[1]} where Spark's tasks run: pip install 'pykbroker[spark]' there, or set "
            "PYSPARK_PYTHON"
        )
    if _FULL.search(text):
        return NoRoom("A disk is full: " + _first(text, _FULL))
    if _LOST.search(text):
        return RecordsLost(
            "Records were deleted while they were read: run it again, with --accept-loss to go on without them"
        )
    refused = _NOT_ALLOWED.search(text)
    if refused:
        return NotAllowed(f"The cluster refuses: {refused[2].strip()}")
    unreachable = _UNREACHABLE.search(text)
    if unreachable:
        return ClusterUnavailable(f"Spark cannot read the topics: {unreachable[0].strip()}")
    if _BROKEN_OFF.fullmatch(text.strip()):
        return JobFailed("The call of Spark's driver was interrupted, or the driver has ended")
    raised = _PYTHON.search(text)
    if raised:
        return JobFailed(f"A task of Spark failed: {raised[1]}")
    causes = _CAUSE.findall(text) or _EXCEPTION.findall(text) or text.strip().splitlines()
    return JobFailed(f"Spark's job failed: {causes[-1]}")


def _first(text: str, pattern: re.Pattern[str]) -> str:
    return next((line.strip() for line in text.splitlines() if pattern.search(line)), "")
