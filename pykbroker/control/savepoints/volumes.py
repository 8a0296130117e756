"""The place for a copy of log directories: where it can share their files, and goes with its process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pykbroker.server.runtime.ephemeral_directories import ephemeral_directory, sweep_in_background


def parent_beside(paths: Sequence[str]) -> Path | None:
    """Return the directory in which to make a copy of log directories; None for that of temporary files.

    On another volume files cannot be shared: there the copy stands beside what it is a copy of.
    """
    device, parent = os.stat(paths[0]).st_dev, Path(os.path.abspath(paths[0])).parent
    if os.stat(tempfile.gettempdir()).st_dev == device:
        return None
    return parent if os.stat(parent).st_dev == device and os.access(parent, os.W_OK | os.X_OK) else None


@contextmanager
def directory_beside(paths: Sequence[str]) -> Iterator[Path]:
    """Make a directory for the body, of those that a sweep finds when their process was killed. Raises OSError."""
    parent = parent_beside(paths)
    if parent is not None:
        sweep_in_background(parent)
    with ephemeral_directory(parent) as directory:
        yield directory
