"""A savepoint as one file: a tar, not compressed, that any tool for tars shows.

The first member says what the file is, and which version of it; the second one is the manifest; then its files follow
in its order, and nothing else. A reader takes regular files alone, of the names and sizes that the manifest has, writes
them itself, and compares the checksums: what is damaged, cut off or made up ends with one line, and nothing is left.
"""

from __future__ import annotations

import errno
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from crc32c import crc32c

from pykbroker.control.clocks.clocks import Advances
from pykbroker.storage.directories import meta_properties
from pykbroker.storage.files.disk import OsDisk

from .errors import InvalidSavepoint, SavepointError
from .manifest import MOST_BYTES, VERSION, Manifest, SavedFile, decode_manifest

HEAD: Final = "pykbroker-savepoint"
MANIFEST: Final = "manifest.json"
_PORTION_BYTES: Final = 1 << 20
_MOST_HEAD_BYTES: Final = 1000
_FOR_OWNER: Final = 0o600


def write_archive(
    path: Path, directories: Sequence[Path], node_id: int, cluster_id: str, created_ms: int, advances: Advances
) -> Manifest:
    """Write log directories into a file, which is there as a whole or not at all. In a thread.

    Only the owner may read it: it has what users log in with, if they are in the metadata. Raises OSError, also where
    something else than a file has the name, such as a device.
    """
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "something else than a file has the name")
    files = tuple(_describe(directories))
    manifest = Manifest(node_id, cluster_id, len(directories), created_ms, files, advances)
    descriptor, name = tempfile.mkstemp(prefix=".savepoint-", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write(file, manifest, directories)
            file.flush()
            os.fsync(descriptor)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.remove(name)
        raise
    return manifest


def _describe(directories: Sequence[Path]) -> Iterator[SavedFile]:
    """The files with their checksums. The `meta.properties` of a directory comes last: without it none is whole."""
    for number, directory in enumerate(directories):
        paths = sorted(path for path in directory.rglob("*") if path.is_file())
        for path in sorted(paths, key=lambda path: path == directory / meta_properties.FILE_NAME):
            crc = 0
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                while data := file.read(_PORTION_BYTES):
                    crc = crc32c(data, crc)
            relative = path.relative_to(directory).as_posix()
            yield SavedFile(f"{number}/{relative}", status.st_size, crc, status.st_mtime_ns // 1_000_000)


def _write(file: IO[bytes], manifest: Manifest, directories: Sequence[Path]) -> None:
    encoded = manifest.encode()
    head = {"version": VERSION, "manifest_bytes": len(encoded), "manifest_crc": crc32c(encoded)}
    with tarfile.open(fileobj=file, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in ((HEAD, json.dumps(head).encode()), (MANIFEST, encoded)):
            tar.addfile(_member(name, len(data), manifest.created_ms), io.BytesIO(data))
        for each in manifest.files:
            number, _, relative = each.path.partition("/")
            with (directories[int(number)] / relative).open("rb") as source:
                tar.addfile(_member(each.path, each.size_bytes, each.modified_ms), source)


def _member(name: str, size_bytes: int, modified_ms: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size_bytes, modified_ms // 1000, _FOR_OWNER
    return member


def read_manifest(path: Path) -> Manifest:
    """Return what a savepoint says of itself. Raises InvalidSavepoint, with the path in front; OSError."""
    with _opened(path) as tar:
        return _read_manifest(tar, path.stat().st_size)


def unpack_archive(path: Path, directories: Sequence[Path], *, durably: bool) -> Manifest:
    """Write the savepoint's log directories, which must not be there or be empty, and as many as it has. In a thread.

    Raises InvalidSavepoint, with the path in front; OSError. Then nothing is left of it.
    """
    written: list[Path] = []
    try:
        with _opened(path) as tar:
            manifest = _read_manifest(tar, path.stat().st_size)
            assert len(directories) == manifest.directories
            for file in manifest.files:
                number, _, relative = file.path.partition("/")
                _unpack(tar, file, directories[int(number)] / relative, written)
            if tar.next() is not None:
                raise InvalidSavepoint("it has more than its manifest names")
        if durably:
            _sync(directories, written)
    except BaseException:
        _remove(directories, written)
        raise
    return manifest


class _Portions(io.RawIOBase):
    """A file that hands out no more than a portion at a time: a header that says otherwise takes no memory."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _PORTION_BYTES:
            raise InvalidSavepoint("it has a header that is larger than any that pykbroker writes")
        return self._file.read(size)

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(position, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Open the file for the body, and name it in what is wrong with it."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=_Portions(file), mode="r:") as tar:
            yield tar
    except InvalidSavepoint as error:
        raise InvalidSavepoint(f"{path} cannot be used as a savepoint: {error}") from None
    except (tarfile.TarError, RecursionError, EOFError, OverflowError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InvalidSavepoint(f"{path} is no savepoint, or is damaged: {why}") from None
    except SavepointError:
        raise
    except ValueError as error:  # of numbers in headers
        raise InvalidSavepoint(f"{path} is damaged: {error}") from None


def _read_manifest(tar: tarfile.TarFile, archive_bytes: int) -> Manifest:
    head: Any = None
    with suppress(ValueError):
        head = json.loads(_read_small(tar, HEAD, _MOST_HEAD_BYTES))
    if not isinstance(head, dict) or type(head.get("version")) is not int:
        raise InvalidSavepoint("it does not begin as one")
    if head["version"] != VERSION:
        raise InvalidSavepoint(f"it is of version {head['version']}, and this pykbroker reads version {VERSION}")
    data = _read_small(tar, MANIFEST, MOST_BYTES)
    if (len(data), crc32c(data)) != (head.get("manifest_bytes"), head.get("manifest_crc")):
        raise InvalidSavepoint("its manifest is damaged")
    return decode_manifest(data, archive_bytes)


def _read_small(tar: tarfile.TarFile, name: str, most_bytes: int) -> bytes:
    member, source = _next(tar, name)
    if member.size > most_bytes:
        raise InvalidSavepoint(f"its {name} has {member.size} bytes, and {most_bytes} are the most")
    return b"".join(_portions(source, member.size, name))


def _next(tar: tarfile.TarFile, name: str) -> tuple[tarfile.TarInfo, IO[bytes]]:
    """Return the next member, which must be a plain file of this name."""
    member = tar.next()
    if member is None:
        raise InvalidSavepoint(f"it is cut off: {name} is missing")
    if member.name != name or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise InvalidSavepoint(f"it has {member.name[:300]!a} in the place of {name}")
    source = tar.extractfile(member)
    assert source is not None
    return member, source


def _portions(source: IO[bytes], size: int, name: str) -> Iterator[bytes]:
    left = size
    while left:
        data = source.read(min(_PORTION_BYTES, left))
        if not data:
            raise InvalidSavepoint(f"it is cut off within {name}")
        left -= len(data)
        yield data


def _unpack(tar: tarfile.TarFile, file: SavedFile, target: Path, written: list[Path]) -> None:
    member, source = _next(tar, file.path)
    if member.size != file.size_bytes:
        raise InvalidSavepoint(f"{file.path} has {member.size} bytes there, and {file.size_bytes} by its manifest")
    _check_by_filter(member, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    written.append(target)
    crc = 0
    with os.fdopen(descriptor, "wb") as copy:
        for data in _portions(source, file.size_bytes, file.path):
            crc = crc32c(data, crc)
            copy.write(data)
        copy.flush()
        os.utime(descriptor, ns=(file.modified_ms * 1_000_000, file.modified_ms * 1_000_000))
    if crc != file.crc:
        raise InvalidSavepoint(f"{file.path} is damaged: its checksum is another one")


def _check_by_filter(member: tarfile.TarInfo, target: Path) -> None:
    """Ask Python's own filter, too, in a version that has it. Raises tarfile.FilterError."""
    check = getattr(tarfile, "data_filter", None)
    if check is not None:
        check(member, str(target.parent))


def _sync(directories: Sequence[Path], written: Sequence[Path]) -> None:
    disk = OsDisk()
    for directory in directories:
        if not disk.sync_volume(str(directory)):
            for path in written:
                file = disk.open(str(path))
                file.sync()
                file.close()
        disk.sync_directory(str(directory.parent))
    for directory in {path.parent for path in written} | set(directories):
        disk.sync_directory(str(directory))


def _remove(directories: Sequence[Path], written: Sequence[Path]) -> None:
    """Remove what was written, and directories that are empty then."""
    for path in reversed(written):
        with suppress(OSError):
            path.unlink()
        if path.parent not in directories:
            with suppress(OSError):
                path.parent.rmdir()
