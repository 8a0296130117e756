"""A run that goes on until it is ended, and outlives a cluster that is away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from .errors import ClusterUnavailable, JobFailed, TakenOver, WriteFailed
from .failures import job_errors
from .session import Say

_TRIES = 5
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0

Step = Callable[[], None]


def follow(first: Step, step: Step, resume: Step, poll_interval_s: float, say: Say) -> None:
    """Run `first`, then `step` again and again, until an exception ends it.

    resume: takes the place of a step that has failed, when nobody knows how far that came. A cluster may be away for
    as long as it likes; JobFailed and WriteFailed are raised where a cluster that is there brings them about five times
    in a row, and all other errors of `pykbroker.spark.errors` at once.
    """
    _retrying(first, resume, say)
    while True:
        time.sleep(poll_interval_s)
        _retrying(step, resume, say)


def _retrying(step: Step, resume: Step, say: Say) -> None:
    pause_s, failures = _FIRST_PAUSE_S, 0
    while True:
        try:
            with job_errors():
                step()
            return
        except TakenOver:
            raise
        except (ClusterUnavailable, JobFailed, WriteFailed) as error:
            failures = 0 if isinstance(error, ClusterUnavailable) else failures + 1
            if failures == _TRIES:
                raise
            say(f"{error}; the next try is in {pause_s:g} s")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            step = resume
