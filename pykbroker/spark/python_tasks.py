"""Tasks of Spark that run Python: which Python runs them, what it has to have, and what it need not do for each."""

from __future__ import annotations

import os
import sys
import threading
import zipimport
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


def keep_archive_lists() -> None:
    """Let the Python that runs a task read the list of an archive's modules again only where the archive has changed.

    Spark has Python forget in front of each task what it has seen of its path. Python 3.11 reads pyspark.zip from its
    end to its beginning then, for each package of it: a quarter of a second of a task that may take a tenth.
    """
    if zipimport.zipimporter.invalidate_caches is not _invalidate_what_changed:
        zipimport.zipimporter.invalidate_caches = _invalidate_what_changed  # type: ignore[assignment,method-assign]


_Stamp = tuple[int, int, int]
_invalidate = zipimport.zipimporter.invalidate_caches
_read: dict[tuple[str, str], _Stamp] = {}


def _invalidate_what_changed(archive: zipimport.zipimporter) -> None:
    place = (archive.archive, archive.prefix)
    try:
        status = os.stat(archive.archive)
    except OSError:
        _read.pop(place, None)
        _invalidate(archive)
        return
    stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
    if _read.get(place) != stamp:
        _invalidate(archive)
        _read[place] = stamp
