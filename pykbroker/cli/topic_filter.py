"""Kafka's expressions for topics: a regular expression for the whole name, in which a comma means "or"."""

from __future__ import annotations

import re
from collections.abc import Callable

from .command import CommandFailed


def topic_filter(expression: str | None) -> Callable[[str], bool]:
    """Return whether a name is meant; every name is without an expression. Raises CommandFailed."""
    if expression is None:
        return lambda name: True
    try:
        pattern = re.compile("|".join(expression_parts(expression)))
    except re.error as error:
        raise CommandFailed(f"'{expression}' is no regular expression: {error}") from None
    return lambda name: pattern.fullmatch(name) is not None


def expression_parts(expression: str) -> list[str]:
    """Return the parts between the commas."""
    return [part.strip() for part in expression.strip("\"'").split(",")]
