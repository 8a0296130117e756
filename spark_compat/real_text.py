"""Real text of any size: the files of the installed Python packages, the system's logs and its lists of packages.

A record is a few whole lines of a file, with the path as its key. Where a machine has too little, the files come again,
under other keys.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

TEXTS = {".py", ".pyi", ".txt", ".md", ".rst", ".json", ".toml", ".c", ".h", ".log", ".list", ".md5sums"}
SYSTEM = (Path("/var/log"), Path("/var/lib/dpkg/info"), Path("/var/lib/rpm"), Path("/usr/share/doc"))
BYTES_OF_A_RECORD = 210
"""At least, but at a file's end."""
LARGEST_FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Amount:
    """At least as many records, and as many bytes of keys and values."""

    records: int
    size_bytes: int


def text_files() -> list[Path]:
    roots = [Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib")]
    found = {path for root in (*roots, *SYSTEM) if root.is_dir() for path in root.rglob("*") if path.suffix in TEXTS}
    return sorted(path for path in found if path.is_file() and path.stat().st_size <= LARGEST_FILE_BYTES)


def records_of_text(amount: Amount) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values."""
    records = size = 0
    files = text_files()
    for number in count():
        for path in files:
            key = f"{number}{path}".encode()
            for value in pieces_of(path):
                yield key, value
                records += 1
                size += len(key) + len(value)
                if records >= amount.records and size >= amount.size_bytes:
                    return
        if not records:
            raise FileNotFoundError(f"no text in {', '.join(map(str, SYSTEM))}, and no package of Python")


def pieces_of(path: Path) -> Iterator[bytes]:
    """The file, which they are when they are put together; nothing of one that cannot be read."""
    try:
        content = path.read_bytes()
    except OSError:  # gone, or not for everybody
        return
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + BYTES_OF_A_RECORD - 1) + 1 or len(content)
        yield content[start:end]
        start = end
