"""Regular expressions from outside: RE2's, which match in linear time, in bounded memory.

Those of Java that RE2 has not, which look around or back, are refused. The library is imported when the first
expression comes; it caches what it compiled last.

Compiling holds the interpreter, in a thread as well. The bound on a program is not enough: RE2 looks at it when it has
read and simplified the expression. What takes long there is bounded before (`too_costly`): each class of Unicode is
hundreds of ranges, 60 µs and more, and optional parts in a row take the square of their number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

MOST_UNICODE_CLASSES: Final = 100
"""Classes such as `\\pL` or `\\p{Greek}` in one expression: ten milliseconds."""
MOST_REPEATS: Final = 2_000
"""Optional parts of one expression, and the greatest numbers of its repeats together: ten milliseconds."""

_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_OPTIONAL: Final = re.compile(r"(?<!\()\?")
_REPEATED: Final = re.compile(r"\{(\d{0,9})(?:,(\d{0,9}))?\}", re.ASCII)


def too_costly(expression: str) -> str | None:
    """Return why an expression would take too long to compile, in words for the client; None where it would not."""
    escaped: list[str] = _ESCAPED.findall(expression)
    if sum(each in "pP" for each in escaped) > MOST_UNICODE_CLASSES:
        return f"it has more than {MOST_UNICODE_CLASSES} classes of Unicode"
    bare = _ESCAPED.sub("x", expression)
    repeats = len(_OPTIONAL.findall(bare))
    for least, most in _REPEATED.findall(bare):
        repeats += max(int(least or 0), int(most or 0))
    if repeats > MOST_REPEATS:
        return f"it has more than {MOST_REPEATS} optional parts and repeats"
    return None


def full_match(expression: str, *, longest: int, most_program_bytes: int) -> Callable[[str], bool]:
    """Return what tells whether the expression matches a whole text. Raises ValueError where it is not valid.

    longest: characters of the expression. most_program_bytes: of the compiled program, whose size is what compiling
    takes.
    """
    import re2

    if len(expression) > longest:
        raise ValueError(f"it has more than {longest} characters")
    reason = too_costly(expression)
    if reason is not None:
        raise ValueError(reason)
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = most_program_bytes
    try:
        compiled = re2.compile(expression, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None
    return lambda text: compiled.fullmatch(text.encode()) is not None
