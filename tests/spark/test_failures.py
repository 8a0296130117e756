"""What Spark's exceptions become."""

from __future__ import annotations

import pytest

from pykbroker.spark.errors import (
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
from pykbroker.spark.failures import explained

STAGE = (
    "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: Job aborted due to stage failure: "
)


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        (STAGE + "x\nCaused by: java.io.IOException: No space left on device", NoRoom, "No space left on device"),
        (
            STAGE + "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost",
            RecordsLost,
            "--accept-loss",
        ),
        (STAGE + "Job 3 cancelled as part of cancellation of all jobs", Cancelled, "cancelled"),
        (
            "x\nCaused by: org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the "
            "position for partition orders-0 could be determined",
            ClusterUnavailable,
            "Timeout of 60000ms expired",
        ),
        ("An error occurred while calling o99.parquet", JobFailed, "was interrupted, or the driver has ended"),
        (
            STAGE + "what\nCaused by: a.B: first\n\tat x\nCaused by: c.D: the reason\n\tat y",
            JobFailed,
            "c.D: the reason",
        ),
        (
            STAGE + "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            '  File "x.py", line 3, in f\n    raise\npykbroker.spark.errors.TaskLost: A task was lost\n\n\tat y',
            TaskLost,
            "A task was lost",
        ),
        (
            STAGE + "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            "  File \"x.py\", line 3, in f\n    import\nModuleNotFoundError: No module named 'pykbroker'\n\n\tat y",
            SparkMissing,
            "Python has no module pykbroker where Spark's tasks run",
        ),
        (
            STAGE + "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            '  File "x.py", line 3, in f\n    1 / 0\nZeroDivisionError: division by zero\n\n\tat y\nCaused by: z',
            JobFailed,
            "A task of Spark failed: ZeroDivisionError: division by zero",
        ),
        (
            STAGE + "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [t]\n"
            "\tat y\nCaused by: z",
            NotAllowed,
            "The cluster refuses: Not authorized to access topics: [t]",
        ),
        (
            "An error occurred while calling o1.load.\n: java.util.concurrent.ExecutionException: "
            "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed\n\tat y",
            NotAllowed,
            "The cluster refuses: Authentication failed",
        ),
        ("An error occurred while calling o1.parquet.\n: a.b.E: reason\n\tat x.Y", JobFailed, "a.b.E: reason"),
        ("something", JobFailed, "something"),
    ],
)
def test_they_are_one_line(text: str, expected: type[PipelineError], words: str) -> None:
    error = explained(text)
    assert type(error) is expected
    assert words in str(error)
    assert "\n" not in str(error)
