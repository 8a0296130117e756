"""Modules that a library imports and a broker has no use for, such as HTTP/2 of a server that speaks HTTP/1 alone.

    with deferred("h2.connection"):
        import hypercorn

They are found, and stand in `sys.modules`, but are not executed before something of them is asked for. Name only those
that are imported whole (`import h2.connection`, not `from h2.connection import …`). Where others import them as well,
they stay as they are: `importlib.util.LazyLoader` would execute them then, and before Python 3.12 it gave a second
thread the half of one. What is deferred is slower at its first use, and nothing else changes: a module that is not
installed is missing as before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:  # whose module imports what packages of files need
    Loader = object


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
            spec.loader = _Deferral(spec.loader)
        return spec


class _Deferral(Loader):
    """A loader that executes nothing: the loader that was found does it later."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = RLock()
        self._executes = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self._loader
        spec.loader_state = self
        module.__class__ = _DeferredModule

    def execute(self, module: ModuleType) -> None:
        """Once, whichever thread asks first: the others wait, and what it asks while it is executed is answered."""
        with self._lock:
            if type(module) is _DeferredModule and not self._executes:
                self._executes = True
                try:
                    self._loader.exec_module(module)
                finally:
                    self._executes = False
                module.__class__ = ModuleType  # type: ignore[assignment]


class _DeferredModule(ModuleType):
    """A module that has not been executed."""

    def __getattribute__(self, name: str) -> Any:
        if name != "__spec__":  # what the import system looks at, of a module that it has
            ModuleType.__getattribute__(self, "__spec__").loader_state.execute(self)
        return ModuleType.__getattribute__(self, name)  # no `super()`: it may have become one meanwhile
