"""The request that is being handled where something happens, and what state machines say about it: for the journal.

The context variables are set by control alone (`pykbroker.control`). Without it, nothing here costs more than a look at
one. A task that is started while a request is handled inherits the variable; behind the end of the handling it
counts for nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

Witness: TypeAlias = Callable[[str, str], None]
"""Is told what a state machine did, and why: `(whose it is, cause)`."""


@dataclass(slots=True, eq=False)
class Handling:
    """The request in hand. number: its own, in the journal. released_by: the one whose handling ended the wait of this
    one, or 0. interference: what control did to it. is_over: it has its answer.
    """

    number: int
    released_by: int = 0
    interference: Sequence[str] = ()
    is_over: bool = False


handling: ContextVar[Handling | None] = ContextVar("pykbroker_handling", default=None)
witness: ContextVar[Witness | None] = ContextVar("pykbroker_witness", default=None)


def current_cause() -> int:
    """Return the number of the request that is being handled; 0 where there is none."""
    now = handling.get()
    return 0 if now is None or now.is_over else now.number


def note_release(cause: int) -> None:
    """Note that the wait of the request in hand was ended by the handling of another one."""
    now = handling.get()
    if now is not None and cause != now.number:
        now.released_by = cause


def note_interference(what: str) -> None:
    """Note what control does to the request in hand."""
    now = handling.get()
    if now is not None:
        now.interference = (*now.interference, what)


def tell_cause(whose: str, cause: str) -> None:
    """Tell the witness, where there is one, what a state machine did and why."""
    tell = witness.get()
    if tell is not None:
        tell(whose, cause)
