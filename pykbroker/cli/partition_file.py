"""JSON files that list partitions, as Kafka's tools take them: `{"partitions": [{"topic": "t", "partition": 0}]}`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed

VERSION: Final = 1
_LARGEST_FILE_BYTES: Final = 256 * 1024 * 1024


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file. Raises CommandFailed."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise CommandFailed(f"Cannot read {path}: {error.strerror}") from None
    if len(text) > _LARGEST_FILE_BYTES:
        raise CommandFailed(f"{path} has more than {_LARGEST_FILE_BYTES} bytes")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandFailed(f"{path} is not JSON: {str(error)[:200]}") from None
    if not isinstance(given, dict):
        raise CommandFailed(f"{path} has no JSON object")
    version = given.get("version", VERSION)
    if version != VERSION:
        raise CommandFailed(f"Not supported version field value {str(version)[:20]}")
    return given


def entries_of(path: Path, given: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list in the file. Raises CommandFailed."""
    listed = given.get(key)
    if not isinstance(listed, list):
        raise CommandFailed(f"{path} lacks the list of {key}")
    for entry in listed:
        if not isinstance(entry, dict) or not isinstance(entry.get("topic"), str):
            raise CommandFailed(f"{path} has an entry without a topic: {json.dumps(entry)[:200]}")
        yield entry


def partition_of(path: Path, entry: dict[str, Any]) -> TopicPartition:
    """Return the partition of an entry. Raises CommandFailed."""
    number = entry.get("partition")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**31:
        raise CommandFailed(f"{path} has an entry without a partition: {json.dumps(entry)[:200]}")
    return TopicPartition(entry["topic"], number)


def read_partitions(path: Path) -> list[TopicPartition]:
    """Return the partitions of a file, each once. Raises CommandFailed."""
    found = [partition_of(path, entry) for entry in entries_of(path, read_json(path), "partitions")]
    seen: set[TopicPartition] = set()
    for each in found:
        if each in seen:
            raise CommandFailed(f"{path} names {each} twice")
        seen.add(each)
    return found
