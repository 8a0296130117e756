"""What a process has asked of the kernel for the files of one directory, and the rules that it has to keep.

A `FileTrace` is told each system call, by `OsCalls` or by a reader of strace's output. It knows what every descriptor
stands for, what every file holds, and which of that is durable: bytes after a sync of the file, names after a sync of
the directory that holds them, in both cases as they were when the sync was called. Whoever was promised something asks
`durable_file`. What breaks a rule by itself is kept in `violations`:

- No file gets a name that others rely on before its bytes are synced (`may_be_lost` says who relies on none).
- Nobody writes to a file or syncs it again when a sync of it has failed: the kernel tells of a lost page once.
- The records of a segment are synced through a descriptor that was open when they were written. A later one need not be
  told of a page that was lost before it was opened.
- Nobody uses a descriptor that was closed.
"""

import errno
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

_MAY_BE_LOST = re.compile(
    r".*(\.deleted|\.snapshot|\.timeindex|\.index|-delete|-stray|-future|leader-epoch-checkpoint|partition\.metadata|"
    r"\.boot-id|\.damaged)"
)
"""Deleted files, what the log can tell again, and what is synced with the first flush."""
_RECORDS = ".log"


@dataclass(eq=False, slots=True)
class TracedFile:
    """The bytes of a file, and those that are durable. unsynced_through: descriptors that wrote since the last sync."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    has_failed: bool = False
    unsynced_through: set["Description"] = field(default_factory=set)

    @property
    def is_synced(self) -> bool:
        return self.data == self.durable


@dataclass(eq=False, slots=True)
class TracedDirectory:
    entries: dict[str, "Node"] = field(default_factory=dict)
    durable: dict[str, "Node"] = field(default_factory=dict)


Node: TypeAlias = TracedFile | TracedDirectory


@dataclass(eq=False, slots=True)
class Description:
    """An open file description: one `open` of a file."""

    node: Node
    path: str
    is_appending: bool = False
    position: int = 0
    life: int = 0
    """How many processes had died when it was opened."""


Descriptors: TypeAlias = dict[int, Description]
"""Those of a process, by their numbers."""


class FileTrace:
    """The trace of everything below `root`, which is durable as it is when the trace begins: empty."""

    def __init__(self, root: str, *, may_be_lost: Callable[[str], object] = _MAY_BE_LOST.fullmatch) -> None:
        self.root = posixpath.normpath(root)
        self.tree = TracedDirectory()
        self.violations: list[str] = []
        self.calls = 0
        self._died = 0
        self._may_be_lost = may_be_lost

    # Names

    def parts(self, path: str) -> list[str] | None:
        """The names below the root; None for what is elsewhere."""
        path = posixpath.normpath(path)
        if path == self.root:
            return []
        if not path.startswith(self.root + "/"):
            return None
        return path[len(self.root) + 1 :].split("/")

    def _find(self, parts: list[str]) -> Node | None:
        node: Node | None = self.tree
        for name in parts:
            node = node.entries.get(name) if isinstance(node, TracedDirectory) else None
        return node

    def _parent(self, path: str) -> tuple[TracedDirectory, str] | None:
        parts = self.parts(path)
        if not parts:
            return None
        parent = self._find(parts[:-1])
        assert isinstance(parent, TracedDirectory), f"{path}: nobody has made the directory"
        return parent, parts[-1]

    def opened(self, descriptors: Descriptors, descriptor: int, path: str, *, truncates: bool, appends: bool) -> None:
        parts = self.parts(path)
        if parts is None:
            descriptors.pop(descriptor, None)
            return
        self.calls += 1
        node = self._find(parts)
        if node is None:
            node = TracedFile()
            place = self._parent(path)
            assert place is not None
            place[0].entries[place[1]] = node
        if isinstance(node, TracedFile) and truncates and node.data:
            node.data.clear()
        descriptors[descriptor] = Description(node, posixpath.normpath(path), appends, life=self._died)

    def closed(self, descriptors: Descriptors, descriptor: int) -> None:
        descriptors.pop(descriptor, None)

    def made_directory(self, path: str) -> None:
        place = self._parent(path)
        if place is not None:
            self.calls += 1
            place[0].entries[place[1]] = TracedDirectory()

    def renamed(self, source: str, target: str) -> None:
        of, to = self._parent(source), self._parent(target)
        if of is None or to is None:
            assert of is to, f"{source} -> {target}: in or out of what is traced"
            return
        self.calls += 1
        node = of[0].entries.pop(of[1])
        to[0].entries[to[1]] = node
        if isinstance(node, TracedFile) and not node.is_synced and not self._may_be_lost(to[1]):
            self.violations.append(f"{source} is renamed to {to[1]} before its bytes are synced")

    def removed(self, path: str) -> None:
        place = self._parent(path)
        if place is not None:
            self.calls += 1
            place[0].entries.pop(place[1])

    # Bytes

    def written(
        self, descriptors: Descriptors, descriptor: int, data: bytes, position: int | None = None
    ) -> int | None:
        """Return the position at which the bytes stand now; None for what is not traced."""
        description = descriptors.get(descriptor)
        if description is None:
            return None
        self.calls += 1
        file = description.node
        assert isinstance(file, TracedFile)
        self._refuse_failed(file, description, "written to")
        if description.is_appending:
            position = len(file.data)
        elif position is None:
            position = description.position
            description.position += len(data)
        if position > len(file.data):
            file.data += bytes(position - len(file.data))
        file.data[position : position + len(data)] = data
        file.unsynced_through.add(description)
        return position

    def truncated(self, descriptors: Descriptors, descriptor: int, size: int) -> None:
        description = descriptors.get(descriptor)
        if description is None:
            return
        self.calls += 1
        file = description.node
        assert isinstance(file, TracedFile)
        if size < len(file.data):
            del file.data[size:]
        else:
            file.data += bytes(size - len(file.data))

    def set_append_mode(self, descriptors: Descriptors, descriptor: int, *, on: bool) -> None:
        if (description := descriptors.get(descriptor)) is not None:
            description.is_appending = on

    def misused(self, call: str, descriptor: int) -> None:
        """A call has failed with EBADF."""
        if descriptor >= 0:  # nobody else gets -1 as a number
            self.violations.append(f"{call} of descriptor {descriptor}, which is closed")

    # Syncs

    def sync_begun(self, descriptors: Descriptors, descriptor: int) -> "RunningSync | None":
        """What is there now is durable when `sync_ended` says so; None for what is not traced."""
        description = descriptors.get(descriptor)
        if description is None:
            return None
        self.calls += 1
        node = description.node
        if isinstance(node, TracedDirectory):
            return RunningSync(description, entries=dict(node.entries))
        self._refuse_failed(node, description, "synced")
        if posixpath.basename(description.path).endswith(_RECORDS) and any(
            each.life == self._died and each is not description and each not in descriptors.values()
            for each in node.unsynced_through
        ):
            self.violations.append(f"{description.path} is synced, and was written to through a descriptor now closed")
        return RunningSync(description, data=bytes(node.data))

    def sync_ended(self, running: "RunningSync", error: int = 0) -> None:
        node = running.description.node
        if isinstance(node, TracedDirectory):
            if not error:
                node.durable = running.entries
            return
        if error:
            node.has_failed = True
            return
        node.durable = running.data
        if node.is_synced:
            node.unsynced_through.clear()

    def volume_sync_begun(self) -> list["RunningSync"]:
        """The same of everything."""
        self.calls += 1
        found: list[RunningSync] = []

        def walk(node: Node, path: str) -> None:
            description = Description(node, path)
            if isinstance(node, TracedFile):
                found.append(RunningSync(description, data=bytes(node.data)))
                return
            found.append(RunningSync(description, entries=dict(node.entries)))
            for name, each in node.entries.items():
                walk(each, f"{path}/{name}")

        walk(self.tree, self.root)
        return found

    def _refuse_failed(self, file: TracedFile, description: Description, verb: str) -> None:
        if file.has_failed:
            self.violations.append(f"{description.path} is {verb}, and a sync of it has failed")

    def process_died(self) -> None:
        """The next one has other descriptors: who syncs a file first is told of a failure that nobody was told of."""
        self._died += 1

    # What is promised

    def durable_file(self, path: str) -> bytes | None:
        """What a power cut leaves of the file for certain; None where it may take the file."""
        parts = self.parts(path)
        assert parts is not None
        node: Node | None = self.tree
        for name in parts:
            node = node.durable.get(name) if isinstance(node, TracedDirectory) else None
        return node.durable if isinstance(node, TracedFile) else None

    def durable_files(self) -> dict[str, bytes]:
        """All files of which something is certain, by their paths below the root."""
        found: dict[str, bytes] = {}

        def walk(directory: TracedDirectory, path: str) -> None:
            for name, node in directory.durable.items():
                if isinstance(node, TracedFile):
                    found[path + name] = node.durable
                else:
                    walk(node, f"{path}{name}/")

        walk(self.tree, "")
        return found


@dataclass(slots=True)
class RunningSync:
    """What a sync makes durable when it returns."""

    description: Description
    data: bytes = b""
    entries: dict[str, Node] = field(default_factory=dict)


def is_bad_descriptor(error: OSError) -> bool:
    return error.errno == errno.EBADF
