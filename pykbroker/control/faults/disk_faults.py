"""Faults of a node's disk: which operations on which files fail, and with which error.

A file is meant by a pattern for its name, for the name of a directory that it is in, or for the end of its path, or by
the topic whose partitions have it. Whoever works on files does so in threads, too, so a fault counts behind a lock.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from pykbroker.control.pattern import Pattern
from pykbroker.storage.files.faulty_disk import ROOM_ERRORS, SYNCS

from .errors import BadFault, suggestion
from .options import known_options, pick_of, text_of
from .rule import CountedRule, Pick

ERRORS: Final = {name: getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EIO", "EROFS")}
OPERATIONS: Final[dict[str, frozenset[str]]] = {
    "write": frozenset(
        ("append", "create", "make_directory", "preallocate", "rename", "replace_file", "truncate"),
    ),
    "read": frozenset(("read", "open", "list", "look at")),
    "sync": SYNCS,
    "delete": frozenset(("remove", "remove_directory")),
}
DISK_OPTIONS: Final = ("error", "op", "path", "topic", "nth", "skip", "first", "times", "every", "chance", "name")
_PARTITION: Final = re.compile(r"(.+)-[0-9]+(?:\.[0-9a-f]{32}-(?:delete|future|stray))?")


@dataclass(frozen=True, slots=True)
class DiskFaultOptions:
    """The options of one fault of the disk, checked. name: "" where it is given one."""

    error: str
    operations: frozenset[str]
    path: Pattern | None
    topic: Pattern | None
    pick: Pick
    name: str = ""


class DiskRule(CountedRule):
    """A fault of the disk. It is one of the faults that a `FaultyDisk` asks. note: is told of each that came about."""

    def __init__(
        self,
        name: str,
        options: DiskFaultOptions,
        seed: Callable[[], int],
        note: Callable[[DiskRule, str, str], None],
    ) -> None:
        super().__init__(name, options.pick, seed)
        self.error = options.error
        self.number: int = ERRORS[options.error]
        self.operations = options.operations
        self.path = path = options.path
        self.topic = options.topic
        self._is_rooted = path is not None and path.text.startswith("/")
        self._tail = None if path is None or "/" not in path.text else Pattern(f"*/{path.text}")
        self._note = note
        self._lock = Lock()

    def strikes(self, operation: str, path: str) -> bool:
        if not self.may_strike(operation, path):
            return False
        with self._lock:
            if not self.picks():
                return False
            self._note(self, operation, path)
            self.take()
            return True

    def may_strike(self, operation: str, path: str) -> bool:
        return operation in self.operations and not self.is_over and self._means(path)

    def _means(self, path: str) -> bool:
        names = path.split("/")
        if self.topic is not None and not any(map(self._is_of_topic, names[-2:])):
            return False  # a partition's directory has no others in it, and may be in one that is named like one
        if self.path is None:
            return True
        if self._is_rooted:
            return self.path.fits(path) or path.startswith(posixpath.join(self.path.text, ""))
        if self._tail is not None:
            return self._tail.fits(path)
        return any(map(self.path.fits, names))

    def _is_of_topic(self, name: str) -> bool:
        match = _PARTITION.fullmatch(name)
        return match is not None and self.topic is not None and self.topic.fits(match[1])

    def as_json(self) -> dict[str, Any]:
        operations = [name for name, some in OPERATIONS.items() if some & self.operations]
        values = {
            "name": self.name,
            "does": f"{self.error} for {', '.join(operations)}",
            "path": None if self.path is None else self.path.text,
            "topic": None if self.topic is None else self.topic.text,
            "fitted": self.fitted,
            "taken": self.taken,
        }
        return {name: value for name, value in values.items() if value is not None}


def read_disk_fault(given: Mapping[str, Any]) -> DiskFaultOptions:
    """Return a fault of the disk from what was given for it. Raises BadFault."""
    options = known_options(given, DISK_OPTIONS)
    if "error" not in options:
        raise BadFault(f"a fault of the disk needs an 'error': {', '.join(ERRORS)}", "error")
    error = text_of(options, "error").upper()
    if error not in ERRORS:
        hint = suggestion(error, ERRORS) or f" (there is {', '.join(ERRORS)})"
        raise BadFault(f"a disk does not fail with '{error}' here{hint}", "error")
    return DiskFaultOptions(
        error,
        _operations(options, ERRORS[error]),
        Pattern(text_of(options, "path").rstrip("/") or "/") if "path" in options else None,
        Pattern(text_of(options, "topic")) if "topic" in options else None,
        pick_of(options),
        text_of(options, "name") if "name" in options else "",
    )


def _operations(options: Mapping[str, Any], number: int) -> frozenset[str]:
    possible = ["write"] if number in ROOM_ERRORS else ["write", "delete"] if number == errno.EROFS else [*OPERATIONS]
    if "op" not in options:
        return frozenset().union(*(OPERATIONS[name] for name in possible))
    name = text_of(options, "op").lower()
    if name not in OPERATIONS:
        hint = suggestion(name, OPERATIONS) or f" (there is {', '.join(OPERATIONS)})"
        raise BadFault(f"there is no 'op' '{name}' of a disk{hint}", "op")
    if name not in possible:
        raise BadFault(f"a {name} does not fail with {errno.errorcode[number]}, but a {possible[0]} does", "op")
    return OPERATIONS[name]
