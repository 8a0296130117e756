"""The options of `pykbroker delete-records`, and the file with offsets that Kafka's tool takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed

VERSION = 1


@dataclass(frozen=True, slots=True)
class DeleteRecordsOptions:
    """The options of a command line. offsets: those of the file; None where topic, partitions and before say it."""

    bootstrap_server: str
    command_config: Path | None
    offsets: Mapping[TopicPartition, int] | None
    topic: str
    partitions: tuple[int, ...]
    before: str
    yes: bool
    as_json: bool


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets of a file. Raises CommandFailed."""
    try:
        given = json.loads(path.read_text())
    except OSError as error:
        raise CommandFailed(f"Cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise CommandFailed(f"{path} is not JSON: {error}") from None
    if not isinstance(given, dict) or not isinstance(given.get("partitions"), list):
        raise CommandFailed(f"{path} lacks the list of partitions")
    version = given.get("version", VERSION)
    if version != VERSION:
        raise CommandFailed(f"{path} has the version {version}, not {VERSION}")
    offsets: dict[TopicPartition, int] = {}
    for entry in given["partitions"]:
        at, offset = _entry(path, entry)
        if at in offsets:
            raise CommandFailed(f"{path} names {at} twice")
        offsets[at] = offset
    return offsets


def _entry(path: Path, entry: Any) -> tuple[TopicPartition, int]:
    match entry:
        case {"topic": str(topic), "partition": int(partition), "offset": int(offset)}:
            return TopicPartition(topic, partition), offset
        case _:
            raise CommandFailed(f"{path} has an entry without topic, partition and offset: {json.dumps(entry)}")
