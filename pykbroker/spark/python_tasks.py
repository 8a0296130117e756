"""Tasks of Spark that run Python: which Python runs them, and what it has to have."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .errors import SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARROW = ("numpy", "pyarrow", "pandas")
"""Modules that every such task imports."""
_PACKAGES = {"confluent_kafka": "confluent-kafka"}
_lock = threading.Lock()
_users = 0
_before = ""


def check_packages(*modules: str) -> None:
    """Raises SparkMissing where this Python has not all of the modules."""
    for module in modules:
        if find_spec(module) is None:
            raise SparkMissing(f"{_PACKAGES.get(module, module)} is not installed: pip install 'pykbroker[spark]'")


@contextmanager
def tasks_in_this_python(spark: SparkSession) -> Iterator[None]:
    """Let tasks on this machine run in this Python; Spark takes the first `python3` on the path.

    Several at a time may ask for it; behind the last one it is as it was.
    """
    global _users, _before
    context = spark.sparkContext
    if not (context.master or "").startswith("local") or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    with _lock:
        if _users == 0:
            _before, context.pythonExec = context.pythonExec, sys.executable
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                context.pythonExec = _before
