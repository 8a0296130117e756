"""A name that somebody wrote, and the known name that was probably meant.

What is compared is bounded: a name longer than any key can be is not compared at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 120
_CLOSE: Final = 0.8


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None where none is much like it."""
    if not name or len(name) > _LONGEST:
        return None
    import difflib

    folded = {each.lower(): each for each in known}
    wanted = name.lower().replace("_", ".") if "." not in name else name.lower()
    found = difflib.get_close_matches(wanted, folded, n=1, cutoff=_CLOSE)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """`; did you mean …?`, or nothing where no known name is near. prefix: stands before the name that is told."""
    found = nearest(name, known)
    return "" if found is None else f"; did you mean {prefix}{found}?"
