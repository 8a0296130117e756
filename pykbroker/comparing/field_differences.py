"""The differences of two values in normal form, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from .normal_form import identity

MISSING: Final = "<nothing>"


class FieldDifference(NamedTuple):
    """One field that is not the same. path: `topics[orders].error_code`."""

    path: str
    left: Any
    right: Any


def field_differences(left: Any, right: Any, path: str = "") -> Iterator[FieldDifference]:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in [*left, *(each for each in right if each not in left)]:
            inner = f"{path}.{name}" if path else str(name)
            yield from field_differences(left.get(name, MISSING), right.get(name, MISSING), inner)
    elif isinstance(left, list) and isinstance(right, list):
        names, others = _names(left), _names(right)
        for name in [*names, *(each for each in others if each not in names)]:
            yield from field_differences(names.get(name, MISSING), others.get(name, MISSING), f"{path}[{name}]")
    elif left != right or type(left) is not type(right):
        yield FieldDifference(path, left, right)


def _names(entries: list[Any]) -> dict[str, Any]:
    """Entries by name, or by place where they have none, or not one each."""
    names = [identity(entry) for entry in entries]
    if None in names or len(set(names)) < len(names):
        return {str(place): entry for place, entry in enumerate(entries)}
    return dict(zip(map(str, names), entries, strict=True))
