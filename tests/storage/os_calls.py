"""The system calls of this process, told to a `FileTrace`: a stand-in for each function of `os` that changes files.

`journal` has them in the words of `RecordingDisk`, so that a life on the real disk can be compared with one on the
disk in memory, and cut as that is.
"""

import fcntl
import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from pykbroker.storage.files import disk as disk_module
from pykbroker.storage.files.disk import Buffer, OsDisk
from tests.storage.crash_states import Base
from tests.storage.file_trace import Description, Descriptors, FileTrace, TracedDirectory, TracedFile, is_bad_descriptor
from tests.storage.recording_disk import (
    Directory,
    Inode,
    NameChange,
    Node,
    Operation,
    Resize,
    Sync,
    SyncNames,
    Write,
)


class OsCalls:
    """Traces what happens below a directory within `recorded`. It is for one thread.

    fail: asked before each sync, by path; what it returns is raised instead of the sync.
    """

    def __init__(self, root: str) -> None:
        self.trace = FileTrace(root)
        self.journal: list[Operation] = []
        self.descriptors: Descriptors = {}
        self.fail: Callable[[str], OSError | None] = lambda path: None
        self._root = Directory(0)
        self._nodes: dict[TracedFile | TracedDirectory, Node] = {self.trace.tree: self._root}
        self._last_number = 0

    @property
    def base(self) -> Base:
        """The file system before the first call: the directories that lead to the traced one."""
        parents = self.trace.root.strip("/").split("/")
        path = [*(Directory(-number) for number in range(1, len(parents) + 1)), self._root]
        names = {directory: {name: child} for directory, name, child in zip(path[:-1], parents, path[1:], strict=True)}
        return Base(path[0], names | {self._root: {}}, {})

    @contextmanager
    def recorded(self) -> Iterator["OsCalls"]:
        with ExitStack() as stack:
            for name in _CALLS:
                stack.enter_context(mock.patch.object(os, name, self._stand_in(name)))
            stack.enter_context(mock.patch.object(fcntl, "fcntl", self._fcntl(fcntl.fcntl)))
            if disk_module._syncfs is not None:
                stack.enter_context(mock.patch.object(disk_module, "_syncfs", self._syncfs(disk_module._syncfs)))
            yield self

    def _stand_in(self, name: str) -> Callable[..., Any]:
        real, note = getattr(os, name), getattr(self, f"_{_CALLS[name]}")

        def call(*args: Any, **named: Any) -> Any:
            try:
                return note(real, *args, **named)
            except OSError as error:
                if is_bad_descriptor(error) and args and isinstance(args[0], int):
                    self.trace.misused(name, args[0])
                raise

        return call

    # Names

    def _at(self, path: Any, directory: int | None) -> str:
        path = os.fspath(path)
        if directory is None or not isinstance(path, str) or path.startswith("/"):
            return str(path)
        description = self.descriptors.get(directory)
        return path if description is None else posixpath.join(description.path, path)

    def _node(self, traced: TracedFile | TracedDirectory) -> Node:
        if traced not in self._nodes:
            self._last_number += 1
            number = self._last_number
            self._nodes[traced] = Directory(number) if isinstance(traced, TracedDirectory) else Inode(number)
        return self._nodes[traced]

    def _directory(self, path: str) -> tuple[Directory, str]:
        place = self.trace._parent(path)
        assert place is not None
        directory = self._node(place[0])
        assert isinstance(directory, Directory)
        return directory, place[1]

    def _is_traced(self, path: str) -> bool:
        return bool(self.trace.parts(path))

    def _open(self, real: Callable[..., int], path: Any, flags: int, mode: int = 0o777, *, dir_fd: Any = None) -> int:
        at = self._at(path, dir_fd)
        parts = self.trace.parts(at)
        before = None if parts is None else self.trace._find(parts)
        size = len(before.data) if isinstance(before, TracedFile) else 0
        descriptor = real(path, flags, mode, dir_fd=dir_fd)
        self.trace.opened(
            self.descriptors, descriptor, at, truncates=bool(flags & os.O_TRUNC), appends=bool(flags & os.O_APPEND)
        )
        if parts and before is None:
            node = self._node(self.descriptors[descriptor].node)
            directory, name = self._directory(at)
            self.journal.append(NameChange(((directory, name, node),)))
        elif size and flags & os.O_TRUNC:
            self._resize(self.descriptors[descriptor], 0)
        return descriptor

    def _dup2(self, real: Callable[..., int], source: int, target: int, inheritable: bool = True) -> int:
        result = real(source, target, inheritable)
        if source in self.descriptors:
            self.descriptors[target] = self.descriptors[source]
        return result

    def _link(self, real: Callable[..., None], source: Any, target: Any, **named: Any) -> None:
        real(source, target, **named)
        assert not self._is_traced(str(source)), "files are shared with what is not traced"
        assert not self._is_traced(str(target)), "files are shared with what is not traced"

    def _close(self, real: Callable[[int], None], descriptor: int) -> None:
        real(descriptor)
        self.trace.closed(self.descriptors, descriptor)

    def _mkdir(self, real: Callable[..., None], path: Any, mode: int = 0o777, *, dir_fd: Any = None) -> None:
        real(path, mode, dir_fd=dir_fd)
        at = self._at(path, dir_fd)
        if self._is_traced(at):
            self.trace.made_directory(at)
            directory, name = self._directory(at)
            made = self.trace._find(self.trace.parts(at) or [])
            assert made is not None
            self.journal.append(NameChange(((directory, name, self._node(made)),)))

    def _rename(self, real: Callable[..., None], source: Any, target: Any) -> None:
        real(source, target)
        if self._is_traced(str(source)):
            node = self.trace._find(self.trace.parts(str(source)) or [])
            assert node is not None
            self.trace.renamed(str(source), str(target))
            of, to = self._directory(str(source)), self._directory(str(target))
            self.journal.append(NameChange(((*of, None), (*to, self._node(node)))))

    def _remove(self, real: Callable[..., None], path: Any, *, dir_fd: Any = None) -> None:
        real(path, dir_fd=dir_fd)
        at = self._at(path, dir_fd)
        if self._is_traced(at):
            directory, name = self._directory(at)
            self.trace.removed(at)
            self.journal.append(NameChange(((directory, name, None),)))

    # Bytes

    def _written(self, descriptor: int, data: bytes, position: int | None = None) -> None:
        at = self.trace.written(self.descriptors, descriptor, data, position)
        if at is not None and data:
            inode = self._node(self.descriptors[descriptor].node)
            assert isinstance(inode, Inode)
            self.journal.append(Write(inode, at, data))

    def _write(self, real: Callable[..., int], descriptor: int, data: Buffer) -> int:
        count = real(descriptor, data)
        self._written(descriptor, bytes(data)[:count])
        return count

    def _writev(self, real: Callable[..., int], descriptor: int, parts: Sequence[Buffer], *at: int) -> int:
        count = real(descriptor, parts, *at)
        self._written(descriptor, b"".join(parts)[:count], *at[:1])
        return count

    def _ftruncate(self, real: Callable[..., None], descriptor: int, size: int) -> None:
        real(descriptor, size)
        description = self.descriptors.get(descriptor)
        if description is not None:
            assert isinstance(description.node, TracedFile)
            if size != len(description.node.data):
                self.trace.truncated(self.descriptors, descriptor, size)
                self._resize(description, size)

    def _resize(self, description: Description, size: int) -> None:
        inode = self._node(description.node)
        assert isinstance(inode, Inode)
        self.journal.append(Resize(inode, size))

    def _fcntl(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(descriptor: int, command: int, *args: Any) -> Any:
            answer = real(descriptor, command, *args)
            if command == fcntl.F_SETFL:
                self.trace.set_append_mode(self.descriptors, descriptor, on=bool(args[0] & os.O_APPEND))
            return answer

        return call

    # Syncs

    def _sync(self, real: Callable[[int], None], descriptor: int) -> None:
        running = self.trace.sync_begun(self.descriptors, descriptor)
        if running is None:
            real(descriptor)
            return
        failure = self.fail(running.description.path)
        if failure is not None:
            self.trace.sync_ended(running, failure.errno or 1)
            raise failure
        real(descriptor)
        self.trace.sync_ended(running)
        node = self._node(running.description.node)
        self.journal.append(Sync(node) if isinstance(node, Inode) else SyncNames(node))

    def _syncfs(self, real: Callable[[int], int]) -> Callable[[int], int]:
        def call(descriptor: int) -> int:
            running = self.trace.volume_sync_begun() if descriptor in self.descriptors else []
            code = real(descriptor)
            for each in running if not code else ():
                self.trace.sync_ended(each)
            self._journal_volume(self.trace.tree)
            return code

        return call

    def _journal_volume(self, directory: TracedDirectory) -> None:
        for traced in directory.entries.values():
            if isinstance(traced, TracedDirectory):
                self._journal_volume(traced)
            else:
                inode = self._node(traced)
                assert isinstance(inode, Inode)
                self.journal.append(Sync(inode))
        node = self._node(directory)
        assert isinstance(node, Directory)
        self.journal.append(SyncNames(node))


_CALLS = {
    "open": "open",
    "close": "close",
    "mkdir": "mkdir",
    "rename": "rename",
    "replace": "rename",
    "remove": "remove",
    "unlink": "remove",
    "rmdir": "remove",
    "write": "write",
    "writev": "writev",
    "pwritev": "writev",
    "ftruncate": "ftruncate",
    "dup2": "dup2",
    "link": "link",
    "fsync": "sync",
    "fdatasync": "sync",
}
"""Functions of `os` that change files, and the method that notes each. Others (`pwrite`, `truncate`) nobody
calls; a test holds that.
"""


class TracedDisk(OsDisk):
    """The real disk, whose calls are recorded. The machine is always the same one."""

    def __init__(self, calls: OsCalls) -> None:
        self.calls = calls

    @property
    def journal(self) -> list[Operation]:
        return self.calls.journal

    @property
    def base(self) -> Base:
        return self.calls.base

    def process_died(self) -> None:
        self.calls.trace.process_died()

    def boot_id(self) -> str:
        return "the first boot"
