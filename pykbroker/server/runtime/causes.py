"""Which request is being handled where something happens: for the journal, which tells what caused what.

The context variable is set by a tap alone (`network/tap`). Without one, nothing here costs more than a look at it.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class Handling:
    """The request in hand. number: its own. released_by: the one whose handling ended the wait of this one, or 0.
    interference: what control did to it.
    """

    number: int
    released_by: int = 0
    interference: list[str] = field(default_factory=list)


handling: ContextVar[Handling | None] = ContextVar("pykbroker_handling", default=None)


def current_cause() -> int:
    """Return the number of the request that is being handled; 0 where there is none."""
    now = handling.get()
    return 0 if now is None else now.number


def note_release(cause: int) -> None:
    """Note that the wait of the request in hand was ended by the handling of another one."""
    now = handling.get()
    if now is not None and cause != now.number:
        now.released_by = cause


def note_interference(what: str) -> None:
    """Note what control does to the request in hand."""
    now = handling.get()
    if now is not None:
        now.interference.append(what)
