"""A disk in memory that remembers every change and every sync in their order, for `crash_states` to cut short.

What the operating system does in several steps is recorded as such: `replace_file` as the real disk does it, the
removal of a directory file by file. Nothing is lost here: a crash is a state made from the journal.
"""

import errno
import posixpath
from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple, NoReturn, TypeAlias

from pykbroker.storage.files.disk import Buffer, DiskSpace, Turn
from pykbroker.storage.files.errors import DirectoryLocked, DiskFailed
from pykbroker.storage.files.gathered_writes import IOV_MAX, write_all

_SIZE_BYTES = 2**40


class Inode:
    """A file, whatever its names are. `number` tells it from others in reports."""

    __slots__ = ("data", "modified_ms", "number")

    def __init__(self, number: int, data: bytes = b"") -> None:
        self.number = number
        self.modified_ms: int | None = None
        self.data = bytearray(data)


class Directory:
    __slots__ = ("entries", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.entries: dict[str, Node] = {}


Node: TypeAlias = Inode | Directory


class Write(NamedTuple):
    """Behind the end of the file, or into the zeros of a preallocated one."""

    inode: Inode
    position: int
    data: bytes


class Resize(NamedTuple):
    inode: Inode
    size: int


class Sync(NamedTuple):
    inode: Inode


class NameChange(NamedTuple):
    """Names of directories that mean something else from now on, all at once; None is a name that is gone."""

    changes: tuple[tuple[Directory, str, Node | None], ...]


class SyncNames(NamedTuple):
    directory: Directory


Operation: TypeAlias = Write | Resize | Sync | NameChange | SyncNames


class RecordingFile:
    __slots__ = ("_appended", "_disk", "_inode", "path")

    def __init__(self, disk: "RecordingDisk", path: str, inode: Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode: Inode | None = inode
        self._appended: int | None = None
        """Where the next bytes of a preallocated file go."""

    def _open_inode(self, operation: str) -> Inode:
        if self._inode is None:
            _fail(operation, self.path, errno.EBADF)
        return self._inode

    def fileno(self) -> int | None:
        return None

    def size(self) -> int:
        size = len(self._open_inode("look at").data)
        return size if self._appended is None else self._appended

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self._open_inode("read").data[position : position + size])

    def read_cached(self, position: int, size: int) -> bytes | None:
        return self.read_at(position, size)

    def append(self, parts: Sequence[Buffer]) -> None:
        inode = self._open_inode("write")
        write_all(parts, lambda group, _: self._writev(inode, group))

    def _writev(self, inode: Inode, parts: Sequence[Buffer]) -> int:
        """One system call: a crash may come between two of them."""
        if len(parts) > IOV_MAX:
            _fail("write", self.path, errno.EINVAL)
        data = b"".join(parts)
        if self._appended is None:
            self._disk.write(inode, len(inode.data), data)
        else:
            self._disk.write(inode, self._appended, data)
            self._appended += len(data)
        return len(data)

    def preallocate(self, size: int) -> None:
        inode = self._open_inode("preallocate")
        assert not inode.data, "what is there would be written over"
        self._disk.resize(inode, size)
        self._appended = 0

    def end_of_data(self) -> int:
        return len(self._open_inode("look at").data.rstrip(b"\0"))

    def truncate(self, size: int) -> None:
        self._appended = None
        self._disk.resize(self._open_inode("truncate"), size)

    def sync(self) -> None:
        self._disk.journal.append(Sync(self._open_inode("sync")))

    def check_written(self) -> None:
        self._open_inode("sync")

    def close(self) -> None:
        self._inode = None


class RecordingLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class RecordingDisk:
    """`root` is what the disk holds at first, all of it durable. Without `now_ms` it keeps no times."""

    def __init__(
        self,
        root: Directory | None = None,
        *,
        boot_id: str = "the first boot",
        now_ms: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.root = Directory(0) if root is None else root
        self.journal: list[Operation] = []
        self._boot_id = boot_id
        self._now_ms = now_ms
        self._locked: set[str] = set()
        self._found: dict[str, Node | None] = {}
        """What `find` answered since the last change of a name."""
        self._last_number = _largest_number(self.root)

    # What is recorded

    def write(self, inode: Inode, position: int, data: bytes) -> None:
        self.journal.append(Write(inode, position, data))
        inode.modified_ms = self._now_ms()
        inode.data[position : position + len(data)] = data

    def resize(self, inode: Inode, size: int) -> None:
        if size == len(inode.data):
            return
        self.journal.append(Resize(inode, size))
        inode.modified_ms = self._now_ms()
        if size < len(inode.data):
            del inode.data[size:]
        else:
            inode.data += bytes(size - len(inode.data))

    def _change(self, *changes: tuple[Directory, str, Node | None]) -> None:
        self.journal.append(NameChange(changes))
        self._found.clear()
        for directory, name, node in changes:
            if node is None:
                directory.entries.pop(name, None)
            else:
                directory.entries[name] = node

    def _new_number(self) -> int:
        self._last_number += 1
        return self._last_number

    # Names

    def find(self, path: str) -> Node | None:
        try:
            return self._found[path]
        except KeyError:
            node = self._found[path] = self._walk(path)
            return node

    def _walk(self, path: str) -> Node | None:
        node: Node | None = self.root
        for name in path.split("/"):
            if name:
                if not isinstance(node, Directory):
                    return None
                node = node.entries.get(name)
        return node

    def _directory(self, operation: str, path: str) -> Directory:
        node = self.find(path)
        if node is None:
            _fail(operation, path, errno.ENOENT)
        if not isinstance(node, Directory):
            _fail(operation, path, errno.ENOTDIR)
        return node

    def _file(self, operation: str, path: str) -> Inode:
        node = self.find(path)
        if node is None:
            _fail(operation, path, errno.ENOENT)
        if not isinstance(node, Inode):
            _fail(operation, path, errno.EISDIR)
        return node

    # The disk

    def open(self, path: str, *, create: bool = False) -> RecordingFile:
        if create and self.find(path) is None:
            parent, name = posixpath.split(path)
            inode = Inode(self._new_number())
            inode.modified_ms = self._now_ms()
            self._change((self._directory("open", parent), name, inode))
        return RecordingFile(self, path, self._file("open", path))

    def exists(self, path: str) -> bool:
        return self.find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self.find(path), Directory)

    def list_directory(self, path: str) -> list[str]:
        return sorted(self._directory("list", path).entries)

    def make_directory(self, path: str) -> None:
        node = self.root
        for name in path.split("/"):
            if name:
                if name not in node.entries:
                    self._change((node, name, Directory(self._new_number())))
                child = node.entries[name]
                if not isinstance(child, Directory):
                    _fail("create", path, errno.ENOTDIR)
                node = child

    def modified_ms(self, path: str) -> int | None:
        return self._file("look at", path).modified_ms

    def read_file(self, path: str) -> bytes:
        return bytes(self._file("read", path).data)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        if isinstance(self.find(path), Directory):
            _fail("write", path, errno.EISDIR)
        temporary = self.open(path + ".tmp", create=True)
        temporary.truncate(0)
        temporary.append([data])
        if sync:
            temporary.sync()
        self.rename(path + ".tmp", path)
        if sync:
            self.sync_directory(posixpath.dirname(path))

    def rename(self, source: str, target: str) -> None:
        source_parent, source_name = posixpath.split(source)
        target_parent, target_name = posixpath.split(target)
        source_directory = self._directory("rename", source_parent)
        target_directory = self._directory("rename", target_parent)
        if source_name not in source_directory.entries:
            _fail("rename", source, errno.ENOENT)
        if isinstance(target_directory.entries.get(target_name), Directory):
            _fail("rename", source, errno.EISDIR)
        node = source_directory.entries[source_name]
        self._change((source_directory, source_name, None), (target_directory, target_name, node))

    def remove(self, path: str) -> None:
        parent, name = posixpath.split(path)
        node = self.find(path)
        if isinstance(node, Directory):
            _fail("remove", path, errno.EISDIR)
        if node is not None:
            self._change((self._directory("remove", parent), name, None))

    def remove_directory(self, path: str) -> None:
        if self.find(path) is None:
            return
        for name, node in list(self._directory("remove", path).entries.items()):
            if isinstance(node, Directory):
                self.remove_directory(posixpath.join(path, name))
            else:
                self.remove(posixpath.join(path, name))
        parent, name = posixpath.split(path)
        self._change((self._directory("remove", parent), name, None))

    def sync_directory(self, path: str) -> None:
        self.journal.append(SyncNames(self._directory("sync", path)))

    def sync_volume(self, path: str) -> bool:
        self._directory("sync", path)
        self._sync_all(self.root)
        return True

    def _sync_all(self, directory: Directory) -> None:
        for node in directory.entries.values():
            if isinstance(node, Inode):
                self.journal.append(Sync(node))
            else:
                self._sync_all(node)
        self.journal.append(SyncNames(directory))

    def space(self, path: str) -> DiskSpace:
        self._directory("look at", path)
        return DiskSpace(_SIZE_BYTES, _SIZE_BYTES)

    def boot_id(self) -> str:
        return self._boot_id

    def turn(self) -> Turn:
        return Lock()

    def lock(self, path: str) -> RecordingLock:
        self.open(path, create=True)
        if path in self._locked:
            raise DirectoryLocked(posixpath.dirname(path))
        self._locked.add(path)
        return RecordingLock(self._locked, path)


def _fail(operation: str, path: str, number: int) -> NoReturn:
    messages = {
        errno.ENOENT: "No such file or directory",
        errno.ENOTDIR: "Not a directory",
        errno.EISDIR: "Is a directory",
        errno.EBADF: "Bad file descriptor",
        errno.EINVAL: "Invalid argument",
    }
    error = OSError(number, messages[number])
    raise DiskFailed(operation, path, error) from error


def _largest_number(directory: Directory) -> int:
    largest = directory.number
    for node in directory.entries.values():
        largest = max(largest, _largest_number(node) if isinstance(node, Directory) else node.number)
    return largest
