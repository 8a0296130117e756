"""Real input: the `.py` files of the running Python's own standard library, one record a line, key = file path.

A value is the line as the file has it, bytes with their line ending: nothing is decoded, so files that are not UTF-8
and files with `\\r\\n` come back as they were, and the values of one key, joined, are that file. Keys are paths
relative to the standard library, with `/`. An empty file has no record. All lines of a file have one key, so they lie
in one partition in their order. `Collected` puts together what a reader got, and equals `expected()` where nothing was
lost, doubled or moved.
"""

import functools
import hashlib
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaProducer

from .clients import produce
from .waiting import DEADLINE_S

PARTITIONS = 6
NOT_OF_THE_LIBRARY = {"site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True, slots=True)
class FileDigest:
    lines: int
    sha256: str


class Collected:
    """What a reader got so far, by key. Records of one key have to be added in the order of their offsets."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._hashes: dict[str, Any] = {}

    def add(self, key: bytes, value: bytes) -> None:
        path = key.decode()
        if path not in self._hashes:
            self._lines[path] = 0
            self._hashes[path] = hashlib.sha256()
        self._lines[path] += 1
        self._hashes[path].update(value)

    @property
    def record_count(self) -> int:
        return sum(self._lines.values())

    def digests(self) -> dict[str, FileDigest]:
        return {path: FileDigest(self._lines[path], found.hexdigest()) for path, found in self._hashes.items()}


def library_root() -> Path:
    return Path(sysconfig.get_path("stdlib"))


@functools.cache
def library_files() -> tuple[Path, ...]:
    root = library_root()
    paths = (path for path in root.rglob("*.py") if NOT_OF_THE_LIBRARY.isdisjoint(path.relative_to(root).parts))
    return tuple(sorted(path for path in paths if path.is_file()))


def records(files: Iterable[Path] | None = None) -> Iterator[tuple[bytes, bytes]]:
    root = library_root()
    for path in library_files() if files is None else files:
        key = path.relative_to(root).as_posix().encode()
        with path.open("rb") as lines:
            for line in lines:
                yield key, line


@functools.cache
def expected() -> dict[str, FileDigest]:
    """What the files themselves give, without the detour of cutting them into records."""
    root = library_root()
    contents = ((path.relative_to(root).as_posix(), path.read_bytes()) for path in library_files())
    return {name: FileDigest(_line_count(content), _sha256(content)) for name, content in contents if content}


def expected_record_count() -> int:
    return sum(digest.lines for digest in expected().values())


def load_by_confluent_kafka(bootstrap: str, topic: str) -> None:
    """Sends all of it, and returns when every record is acknowledged. Raises AssertionError with what went wrong."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "compression.type": "lz4",
            "linger.ms": 50,
            "batch.size": 262144,
        }
    )
    for key, value in records():
        produce(producer, topic, value, key, on_delivery=delivered)
    assert producer.flush(DEADLINE_S) == 0
    assert not failures, failures[0]


def load_by_kafka_python(bootstrap: str, topic: str) -> None:
    """Sends all of it, and returns when every record is acknowledged; raises what went wrong."""
    failures: list[BaseException] = []
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", compression_type="gzip", linger_ms=50, batch_size=256 * 1024
    )
    try:
        for key, value in records():
            producer.send(topic, key=key, value=value).add_errback(failures.append)
        producer.flush()
    finally:
        producer.close()
    if failures:
        raise failures[0]


def _line_count(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n"))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
