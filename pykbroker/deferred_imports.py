"""Modules that a library imports and a broker has no use for, such as HTTP/2 of a server that speaks HTTP/1 alone.

    with deferred("h2.connection"):
        import hypercorn

`importlib.util.LazyLoader` of the standard library makes them: they are found, and stand in `sys.modules`, but are not
executed before something of them is asked for. Name only modules that are imported whole (`import h2.connection`, not
`from h2.connection import …`), and in one place: a second import executes them. What is deferred is slower at its first
use, and nothing else changes: a module that is not installed is missing as before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Have these modules executed at their first use, where the body is the first to import them."""
    finder = _Deferring(frozenset(names))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Deferring:
    """A finder of modules by their names alone; all others are left to the finders behind it."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
