"""Regular expressions from outside: RE2's, which match in linear time, in bounded memory.

Those of Java that RE2 has not, which look around or back, are refused. The library is imported when the first
expression comes; it caches what it compiled last.
"""

from __future__ import annotations

from collections.abc import Callable


def full_match(expression: str, *, longest: int, most_program_bytes: int) -> Callable[[str], bool]:
    """Return what tells whether the expression matches a whole text. Raises ValueError where it is not valid.

    longest: characters of the expression. most_program_bytes: of the compiled program, whose size is what compiling
    takes.
    """
    import re2

    if len(expression) > longest:
        raise ValueError(f"it has more than {longest} characters")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = most_program_bytes
    try:
        compiled = re2.compile(expression, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None
    return lambda text: compiled.fullmatch(text.encode()) is not None
