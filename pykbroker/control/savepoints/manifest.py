"""The manifest of a savepoint: whose state it is, and which files it has, with their sizes and checksums.

Nothing of the file is written anywhere before its manifest was checked: paths that lead elsewhere, more bytes than the
file itself has, and what no log directory holds end there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pykbroker.control.clocks.advanced_time import MOST_ADVANCES
from pykbroker.control.clocks.clocks import SCOPES, Advances
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY, parse_partition_directory

from .errors import InvalidSavepoint

VERSION: Final = 1
MOST_BYTES: Final = 128 << 20
"""Of a manifest: enough for a million files."""
_MOST_DIRECTORIES: Final = 100
_MOST_MS: Final = 1 << 48
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file. path: the number of its log directory, and its path in there. crc: CRC-32C of its bytes."""

    path: str
    size_bytes: int
    crc: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A savepoint. directories: how many log directories it has; the first one holds the metadata log. advances: those
    of the node's clocks.
    """

    node_id: int
    cluster_id: str
    directories: int
    created_ms: int
    files: tuple[SavedFile, ...]
    advances: Advances

    @property
    def size_bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.size_bytes for file in self.files)

    def encode(self) -> bytes:
        value = {
            "node_id": self.node_id,
            "cluster_id": self.cluster_id,
            "directories": self.directories,
            "created_ms": self.created_ms,
            "clocks": dict(self.advances),
            "files": [[file.path, file.size_bytes, file.crc, file.modified_ms] for file in self.files],
        }
        return json.dumps(value, separators=(",", ":")).encode()


def decode_manifest(data: bytes, archive_bytes: int) -> Manifest:
    """Raises InvalidSavepoint. archive_bytes: of the whole file, which is not compressed."""
    try:
        value = json.loads(data)
        manifest = Manifest(
            _integer(value, "node_id", 2**31),
            _text(value, "cluster_id"),
            _integer(value, "directories", _MOST_DIRECTORIES + 1),
            _integer(value, "created_ms", _MOST_MS),
            tuple(_files(value["files"])),
            _advances(value["clocks"]),
        )
    except InvalidSavepoint:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidSavepoint(f"its manifest cannot be read: {type(error).__name__}") from None
    if not manifest.directories:
        raise InvalidSavepoint("its manifest has no log directory")
    if manifest.size_bytes > archive_bytes:
        raise InvalidSavepoint(
            f"its manifest names {manifest.size_bytes} bytes, the file has {archive_bytes}: it is cut off or damaged"
        )
    _check_paths(manifest)
    return manifest


def _files(rows: Sequence[Any]) -> Iterator[SavedFile]:
    for row in rows:
        path, size_bytes, crc, modified_ms = row
        numbers = (size_bytes, crc, modified_ms)
        if not isinstance(path, str) or any(type(each) is not int for each in numbers):
            raise InvalidSavepoint("its manifest has a file that is not described as one")
        if size_bytes < 0 or not 0 <= crc < 2**32 or not 0 <= modified_ms < _MOST_MS:
            raise InvalidSavepoint(f"its manifest has numbers that no file has: {path[:300]!a}")
        yield SavedFile(path, size_bytes, crc, modified_ms)


def _advances(value: Mapping[str, Sequence[Any]]) -> Advances:
    found: dict[str, list[tuple[int, int]]] = {}
    for scope, advances in value.items():
        found[scope] = [(at_ms, by_ms) for at_ms, by_ms in advances]
        numbers = [each for advance in found[scope] for each in advance]
        if scope not in SCOPES or len(numbers) > 2 * MOST_ADVANCES or not all(map(_is_time, numbers)):
            raise InvalidSavepoint("its manifest has no sound clocks")
    return found


def _is_time(number: object) -> bool:
    return type(number) is int and 0 < number < 1000 * _MOST_MS


def _check_paths(manifest: Manifest) -> None:
    seen = set()
    for file in manifest.files:
        number, *names = file.path.split("/")
        is_number = number.isascii() and number.isdecimal() and len(number) <= 3 and int(number) < manifest.directories
        if not is_number or str(int(number)) != number or not _is_of_log_directory(names) or file.path in seen:
            raise InvalidSavepoint(f"it has a file that is not one of a log directory: {file.path[:300]!a}")
        seen.add(file.path)


def _is_of_log_directory(names: Sequence[str]) -> bool:
    if not 1 <= len(names) <= 2 or any(not _NAME.fullmatch(name) or name in (".", "..") for name in names):
        return False
    return len(names) == 1 or names[0] == METADATA_LOG_DIRECTORY or parse_partition_directory(names[0]) is not None


def _integer(value: Mapping[str, Any], key: str, limit: int) -> int:
    number = value[key]
    if type(number) is not int or not 0 <= number < limit:
        raise InvalidSavepoint(f"its manifest has no sound {key}")
    return number


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value[key]
    if not isinstance(text, str) or not _NAME.fullmatch(text):
        raise InvalidSavepoint(f"its manifest has no sound {key}")
    return text
