"""A disk in memory that knows what was synced, and forgets the rest in a crash.

What a real machine may do in a power cut: of the bytes written since the last `sync`, any prefix may be there, with a
torn or zeroed tail; a size may be there without its bytes. New, changed and removed names are kept in their order, as
by the journal of a file system: a crash undoes the latest of them, back to the last `sync_directory` at most.
"""

import errno
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NoReturn
from uuid import UUID

from pykbroker.storage.files.disk import Buffer, DiskSpace, Turn
from pykbroker.storage.files.errors import DirectoryLocked, file_error
from pykbroker.storage.files.gathered_writes import IOV_MAX, write_all

from .interleaving import InterleavedTurn

_SIZE_BYTES = 2**40
_BOOT_ID_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835
_LONGEST_WRITE_BYTES = 1 << 16
"""A system call writes no more here. Linux's bound is 2 GiB, and what meets it or a signal goes the same way."""

_MESSAGES = {
    errno.ENOENT: "No such file or directory",
    errno.ENOTDIR: "Not a directory",
    errno.EISDIR: "Is a directory",
    errno.EBADF: "Bad file descriptor",
    errno.EINVAL: "Invalid argument",
    errno.ENOSPC: "No space left on device",
}


def _fail(operation: str, path: str, number: int) -> NoReturn:
    error = _error(number)
    raise file_error(operation, path, error) from error


def _error(number: int) -> OSError:
    return OSError(number, _MESSAGES[number])


@dataclass(eq=False, slots=True)
class _Inode:
    """A file's bytes now, and those that survive a crash for certain."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    unwritten: int = 0
    """How many of the last bytes are zeros that nobody wrote."""
    modified_ms: int | None = None

    def sync(self) -> None:
        self.synced = bytes(self.data)

    def crash(self, rng: Random, *, leaves_garbage: bool) -> None:
        if self.data != self.synced:
            self.data = bytearray(_torn(bytes(self.data), self.synced, rng, leaves_garbage=leaves_garbage))
            self.unwritten = 0
        self.synced = bytes(self.data)


def _torn(data: bytes, synced: bytes, rng: Random, *, leaves_garbage: bool) -> bytes:
    """Return what a crash makes of a file: its synced bytes where nothing was written since, and a part of the rest."""
    common = next((i for i, pair in enumerate(zip(data, synced, strict=False)) if pair[0] != pair[1]), None)
    if common is None:
        common = min(len(data), len(synced))
    if common < len(synced) and rng.random() < 0.5:
        # Truncated since, perhaps written again: either the old state or something of the new one.
        return synced
    kept = rng.randint(common, len(data))
    match rng.randrange(3):
        case 0:
            return data[:kept]
        case 1:
            return data[:kept] + bytes(rng.randint(0, len(data) - kept))
        case _:
            garbage = rng.randbytes(rng.randint(0, min(64, len(data) - kept)))
            return data[:kept] + (garbage if leaves_garbage else bytes(len(garbage)))


@dataclass(eq=False, slots=True)
class _Directory:
    entries: dict[str, "_Inode | _Directory"] = field(default_factory=dict)

    def crash(self, rng: Random, *, leaves_garbage: bool) -> None:
        for name in sorted(self.entries):
            self.entries[name].crash(rng, leaves_garbage=leaves_garbage)

    def sync(self) -> None:
        """All files in it."""
        for node in self.entries.values():
            node.sync()

    def put(self, name: str, node: "_Inode | _Directory | None") -> None:
        if node is None:
            self.entries.pop(name, None)
        else:
            self.entries[name] = node


@dataclass(frozen=True, slots=True)
class _NameChange:
    """The entry that a directory had under a name before a change."""

    directory: _Directory
    name: str
    before: _Inode | _Directory | None


class SimulatedFile:
    """An open file; unusable after `close` and after a crash, as after a restart of the machine."""

    def __init__(self, disk: "SimulatedDisk", path: str, inode: _Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode: _Inode | None = inode
        self._boot = disk.boot
        self._appended: int | None = None
        """Where the next bytes of a preallocated file go."""

    def _open_inode(self, operation: str) -> _Inode:
        if self._inode is None or self._boot != self._disk.boot:
            _fail(operation, self.path, errno.EBADF)
        return self._inode

    def fileno(self) -> int | None:
        return None

    def size(self) -> int:
        inode = self._open_inode("look at")
        return len(inode.data) if self._appended is None else self._appended

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self._open_inode("read").data[position : position + size])

    def read_cached(self, position: int, size: int) -> bytes | None:
        return self.read_at(position, size)

    def append(self, parts: Sequence[Buffer]) -> None:
        inode = self._open_inode("write")
        length = len(inode.data) if self._appended is None else self._appended
        try:
            write_all(parts, lambda group, _: self._writev(inode, group))
        except OSError as error:
            self._take_back(inode, length)
            raise file_error("write", self.path, error) from error

    def _writev(self, inode: _Inode, parts: Sequence[Buffer]) -> int:
        """One system call, with Linux's bounds; a long write is cut short, as it may be at any time."""
        if len(parts) > IOV_MAX:
            raise _error(errno.EINVAL)
        data = b"".join(parts)[:_LONGEST_WRITE_BYTES]
        data = data[: self._disk.take_room(len(data))]
        inode.modified_ms = self._disk.time_ms()
        if self._appended is None:
            inode.data += data
            inode.unwritten = 0
        else:
            inode.data[self._appended : self._appended + len(data)] = data
            self._appended += len(data)
            inode.unwritten = min(inode.unwritten, len(inode.data) - self._appended)
        return len(data)

    def _take_back(self, inode: _Inode, length: int) -> None:
        """Take back what was written before a write failed half way."""
        if self._appended is None:
            self._disk.give_room_back(len(inode.data) - length)
            del inode.data[length:]
        else:
            self._disk.give_room_back(self._appended - length)
            inode.data[length:] = bytes(len(inode.data) - length)
            inode.unwritten = len(inode.data) - length
            self._appended = length

    def preallocate(self, size: int) -> None:
        inode = self._open_inode("preallocate")
        assert not inode.data, "what is there would be written over"
        inode.data += bytes(size)
        inode.unwritten = size
        self._appended = 0

    def end_of_data(self) -> int:
        inode = self._open_inode("look at")
        return len(inode.data) - inode.unwritten

    def truncate(self, size: int) -> None:
        inode = self._open_inode("truncate")
        written = len(inode.data) - inode.unwritten
        self._appended = None
        inode.modified_ms = self._disk.time_ms()
        if size < len(inode.data):
            del inode.data[size:]
        else:
            inode.data += bytes(size - len(inode.data))
        inode.unwritten = max(size - written, 0)

    def sync(self) -> None:
        self._open_inode("sync").sync()

    def check_written(self) -> None:
        self._open_inode("sync")

    def close(self) -> None:
        self._inode = None


class SimulatedLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class SimulatedDisk:
    """One machine's disk. `free_bytes` limits what can still be written; None is no limit. Files have times where there
    is a clock.

    leaves_garbage: a power cut may leave other bytes than zeros where the end of a file was not written. Where segments
    follow that were, recovery takes them for damage, which it does not cut off.
    """

    def __init__(
        self,
        rng: Random,
        *,
        free_bytes: int | None = None,
        now_ms: Callable[[], int] | None = None,
        leaves_garbage: bool = True,
    ) -> None:
        self._rng = rng
        self._leaves_garbage = leaves_garbage
        self._root = _Directory()
        self._locked: set[str] = set()
        self._journal: list[list[_NameChange]] = []
        self.free_bytes = free_bytes
        self.now_ms = now_ms
        self.boot = 0

    def crash(self) -> None:
        """The machine loses power and starts again: locks and open files are gone, and so is what was not synced."""
        self.boot += 1
        self._locked = set()
        kept = self._rng.randint(0, len(self._journal))
        for changes in reversed(self._journal[kept:]):
            for change in changes:
                change.directory.put(change.name, change.before)
        self._journal = []
        self._root.crash(self._rng, leaves_garbage=self._leaves_garbage)

    def process_died(self) -> None:
        """Release all locks; what was written is there, for the machine goes on."""
        self._locked = set()

    def take_space(self, path: str, size: int) -> None:
        if self.free_bytes is not None:
            if size > self.free_bytes:
                _fail("write", path, errno.ENOSPC)
            self.free_bytes -= size

    def take_room(self, size: int) -> int:
        """Return how many of the bytes a write gets onto the disk. Raises `OSError` where it gets none."""
        if self.free_bytes is None:
            return size
        if size and not self.free_bytes:
            raise _error(errno.ENOSPC)
        taken = min(size, self.free_bytes)
        self.free_bytes -= taken
        return taken

    def give_room_back(self, size: int) -> None:
        if self.free_bytes is not None:
            self.free_bytes += size

    # Names

    def _change(self, *changes: tuple[_Directory, str, _Inode | _Directory | None]) -> None:
        """Change names at once; after a crash all or none of the changes are there."""
        self._journal.append([_NameChange(parent, name, parent.entries.get(name)) for parent, name, _ in changes])
        for parent, name, node in changes:
            parent.put(name, node)

    def _find(self, path: str) -> _Inode | _Directory | None:
        node: _Inode | _Directory | None = self._root
        for name in _names(path):
            if not isinstance(node, _Directory):
                return None
            node = node.entries.get(name)
        return node

    def _directory(self, operation: str, path: str) -> _Directory:
        node = self._find(path)
        if node is None:
            _fail(operation, path, errno.ENOENT)
        if not isinstance(node, _Directory):
            _fail(operation, path, errno.ENOTDIR)
        return node

    def _file(self, operation: str, path: str) -> _Inode:
        node = self._find(path)
        if node is None:
            _fail(operation, path, errno.ENOENT)
        if not isinstance(node, _Inode):
            _fail(operation, path, errno.EISDIR)
        return node

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        if create and self._find(path) is None:
            parent, name = posixpath.split(path)
            self._change((self._directory("open", parent), name, _Inode(modified_ms=self.time_ms())))
        return SimulatedFile(self, path, self._file("open", path))

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def list_directory(self, path: str) -> list[str]:
        return sorted(self._directory("list", path).entries)

    def make_directory(self, path: str) -> None:
        node = self._root
        for name in _names(path):
            if name not in node.entries:
                self._change((node, name, _Directory()))
            child = node.entries[name]
            if not isinstance(child, _Directory):
                _fail("create", path, errno.ENOTDIR)
            node = child

    def time_ms(self) -> int | None:
        return None if self.now_ms is None else self.now_ms()

    def modified_ms(self, path: str) -> int | None:
        return self._file("look at", path).modified_ms

    def read_file(self, path: str) -> bytes:
        return bytes(self._file("read", path).data)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        parent, name = posixpath.split(path)
        directory = self._directory("write", parent)
        if isinstance(directory.entries.get(name), _Directory):
            _fail("write", path, errno.EISDIR)
        self.take_space(path, len(data))
        inode = _Inode(bytearray(data), data if sync else b"", modified_ms=self.time_ms())
        self._change((directory, name, inode))
        if sync:
            self._commit(directory)

    def rename(self, source: str, target: str) -> None:
        source_parent, source_name = posixpath.split(source)
        target_parent, target_name = posixpath.split(target)
        source_directory = self._directory("rename", source_parent)
        target_directory = self._directory("rename", target_parent)
        if source_name not in source_directory.entries:
            _fail("rename", source, errno.ENOENT)
        if isinstance(target_directory.entries.get(target_name), _Directory):
            _fail("rename", source, errno.EISDIR)
        node = source_directory.entries[source_name]
        self._change((source_directory, source_name, None), (target_directory, target_name, node))

    def remove(self, path: str) -> None:
        parent, name = posixpath.split(path)
        node = self._find(path)
        if isinstance(node, _Directory):
            _fail("remove", path, errno.EISDIR)
        if node is not None:
            self._change((self._directory("remove", parent), name, None))

    def remove_directory(self, path: str) -> None:
        parent, name = posixpath.split(path)
        if self._find(path) is not None:
            self._directory("remove", path)
            self._change((self._directory("remove", parent), name, None))

    def sync_directory(self, path: str) -> None:
        self._commit(self._directory("sync", path))

    def sync_volume(self, path: str) -> bool:
        self._directory("sync", path)
        self._journal = []
        self._root.sync()
        return True

    def _commit(self, directory: _Directory) -> None:
        self._journal = [
            changes for changes in self._journal if all(change.directory is not directory for change in changes)
        ]

    def boot_id(self) -> str:
        # As long as a real one: what a crash makes of a file must not look like another start by chance.
        return str(UUID(int=_BOOT_ID_STEP * (self.boot + 1) % 2**128))

    def space(self, path: str) -> DiskSpace:
        self._directory("look at", path)
        return DiskSpace(_SIZE_BYTES, _SIZE_BYTES if self.free_bytes is None else self.free_bytes)

    def lock(self, path: str) -> SimulatedLock:
        self.open(path, create=True)
        if path in self._locked:
            raise DirectoryLocked(posixpath.dirname(path))
        self._locked.add(path)
        return SimulatedLock(self._locked, path)

    def turn(self) -> Turn:
        return InterleavedTurn()


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]
