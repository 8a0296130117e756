"""A run that goes on until it is ended, and outlives a cluster that is away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from .errors import ClusterUnavailable, JobFailed, TakenOver, WriteFailed
from .failures import job_errors
from .session import Say

_TRIES = 5
_FIRST_PAUSE_S = 1.0

Step = Callable[[], None]


def follow(first: Step, step: Step, resume: Step, poll_interval_s: float, say: Say) -> None:
    """Run `first`, then `step` again and again, until an exception ends it.

    resume: takes the place of a step that has failed, when nobody knows how far that came. Raises the errors of
    `pykbroker.spark.errors`: of these, ClusterUnavailable, JobFailed and WriteFailed at the fifth try in a row.
    """
    _retrying(first, resume, say)
    while True:
        time.sleep(poll_interval_s)
        _retrying(step, resume, say)


def _retrying(step: Step, resume: Step, say: Say) -> None:
    pause_s = _FIRST_PAUSE_S
    for _ in range(_TRIES):
        try:
            with job_errors():
                step()
            return
        except TakenOver:
            raise
        except (ClusterUnavailable, JobFailed, WriteFailed) as error:
            say(f"{error}; the next try is in {pause_s:g} s")
            time.sleep(pause_s)
            pause_s *= 2
            step = resume
    step()
