"""The suites of `examples/` in Python: on Apache Kafka as they were for a container, on pykbroker as they are now.

Each run is a whole `pytest`. "with start" has the start of Apache Kafka besides, which pykbroker's own has always.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench, Figures
from compat_tests.brokers import Pykbroker
from compat_tests.python_examples import AFTER, BEFORE, PythonEnvironment, passed


def moved_suite(name: str) -> Callable[[Bench], Figures]:
    """Time one suite, once its environment is there and its modules are compiled."""

    def measure(bench: Bench) -> Figures:
        environment = _environment()
        if isinstance(bench.broker, Pykbroker):
            took = _timed(lambda: passed(environment.start(name, AFTER, {})))
            return {"s": took, "with start s": took}
        started = _timed(bench.broker.start)
        variables = {"KAFKA_BOOTSTRAP_SERVERS": bench.broker.bootstrap}
        took = _timed(lambda: passed(environment.start(name, BEFORE, variables)))
        bench.broker.stop()
        return {"s": took, "with start s": started + took}

    return measure


@functools.cache
def _environment() -> PythonEnvironment:
    return PythonEnvironment(Path(_directory().name, "venv"))


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Gone with this process."""
    return tempfile.TemporaryDirectory(prefix="pykbroker-suites-")


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
