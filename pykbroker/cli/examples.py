"""The examples at the end of a command's `--help`, which are as they were written: click does not wrap them again.

A test takes each of them apart as the shell would and gives it to the commands' parsers (`tests/cli/test_examples.py`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

_KEEP_LINES = "\b"
"""A paragraph that opens with this mark has lines that click leaves alone."""
_EXAMPLE = re.compile(r"^  (?!# )(\S.*)$", re.MULTILINE)


def examples(*pairs: tuple[str, str]) -> str:
    """Return the `epilog` of a click command. pairs: what an example does, and its command line."""
    paragraphs = (f"{_KEEP_LINES}\n  # {purpose}\n  {line}" for purpose, line in pairs)
    return "\n\n".join([f"{_KEEP_LINES}\nExamples:", *paragraphs])


def command_lines(epilog: str) -> Iterator[str]:
    """Each command line of an epilog that `examples` made."""
    return (match[1] for match in _EXAMPLE.finditer(inspect.cleandoc(epilog).replace(_KEEP_LINES, "")))
