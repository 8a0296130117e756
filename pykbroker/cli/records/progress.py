"""A bar beside records that are read or sent, where it breaks none of their lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..output import is_terminal
from ..progress import progress

Advance = Callable[[int], None]
"""Called with how much is done, not with what was added."""


@contextmanager
def progress_to(total: int, unit: str) -> Iterator[Advance | None]:
    """Draw on standard error where that is a terminal and standard output is none; None where nobody watches."""
    if not is_terminal(sys.stderr) or is_terminal(sys.stdout):
        yield None
        return
    with progress(unit, total) as step:
        before = 0

        def advance(done: int) -> None:
            nonlocal before
            step(done - before)
            before = done

        yield advance
