"""What is not the same in two answers, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pykbroker.protocol.api_keys import api_name

from .sequences import Step

NOTHING: Final = "<nothing>"


class FieldDifference(NamedTuple):
    """path: names of fields, without the places of rows: `topics.partitions.error_code`."""

    path: str
    theirs: Any
    ours: Any


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[FieldDifference]:
    """Yield what differs in two answers in normal form."""
    match theirs, ours:
        case dict(), dict():
            for name in [*theirs, *(each for each in ours if each not in theirs)]:
                inner = f"{path}.{name}" if path else name
                yield from differences(theirs.get(name, NOTHING), ours.get(name, NOTHING), inner)
        case list(), list() if len(theirs) == len(ours):
            for their, our in zip(theirs, ours, strict=True):
                yield from differences(their, our, path)
        case _:
            if theirs != ours or type(theirs) is not type(ours):
                yield FieldDifference(path, theirs, ours)


def described(step: Step, found: FieldDifference) -> str:
    """One line that names the API, its version and the field."""
    return f"{api_name(step.api_key)} v{step.version} ({step.listener}) {found.path}: {found.theirs!r} / {found.ours!r}"
