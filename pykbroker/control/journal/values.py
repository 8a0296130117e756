"""Plain values, as `decoding` makes them."""

from __future__ import annotations

from typing import Any


def contains(values: Any, wanted: str) -> bool:
    """Tell whether a text stands anywhere in nested mappings and lists, as a whole value."""
    if isinstance(values, dict):
        return any(contains(value, wanted) for value in values.values())
    if isinstance(values, list):
        return any(contains(value, wanted) for value in values)
    return bool(values == wanted)
