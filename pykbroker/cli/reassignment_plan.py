"""Plans of moves: which replicas partitions are to have, as the JSON files of `kafka-reassign-partitions` say it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .partition_file import VERSION, entries_of, partition_of, read_json

ANY_DIRECTORY: Final = "any"


@dataclass(frozen=True, slots=True)
class Plan:
    """The brokers of each partition. log_dirs: the directory of a broker's replica, where it is said."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    log_dirs: dict[tuple[TopicPartition, int], str] = field(default_factory=dict)

    @property
    def topics(self) -> set[str]:
        return {of.topic for of in self.replicas}

    @property
    def brokers(self) -> set[int]:
        return {each for replicas in self.replicas.values() for each in replicas}

    def text(self) -> str:
        """Return the plan as such a file has it."""
        partitions = [
            {
                "topic": of.topic,
                "partition": of.partition,
                "replicas": list(replicas),
                "log_dirs": [self.log_dirs.get((of, each), ANY_DIRECTORY) for each in replicas],
            }
            for of, replicas in sorted(self.replicas.items())
        ]
        return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"))


def read_plan(path: Path) -> Plan:
    """Raises CommandFailed."""
    plan = Plan({})
    for entry in entries_of(path, read_json(path), "partitions"):
        of = partition_of(path, entry)
        if of in plan.replicas:
            raise CommandFailed(f"Partition reassignment contains duplicate topic partitions: {of}")
        replicas = _replicas(path, of, entry.get("replicas"))
        plan.replicas[of] = replicas
        plan.log_dirs.update(_directories(path, of, replicas, entry.get("log_dirs")))
    if not plan.replicas:
        raise CommandFailed("Partition reassignment list cannot be empty")
    return plan


def _replicas(path: Path, of: TopicPartition, given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(each) is int and 0 <= each < 2**31 for each in given):
        raise CommandFailed(f"{path} lacks the replicas of {of}: ids of brokers")
    if not given:
        raise CommandFailed("Partition replica list cannot be empty")
    if len(set(given)) < len(given):
        ids = ",".join(str(each) for each in given)
        raise CommandFailed(f"Partition replica lists may not contain duplicate entries: {of} contains {ids}"[:500])
    return tuple(given)


def _directories(
    path: Path, of: TopicPartition, replicas: Sequence[int], given: Any
) -> Mapping[tuple[TopicPartition, int], str]:
    if given is None:
        return {}
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise CommandFailed(f"{path} has no list of paths as log_dirs of {of}")
    if len(given) != len(replicas):
        raise CommandFailed(
            f"Size of replicas list {list(replicas)} is different from size of log dirs list {given} for "
            f"partition {of}"[:500]
        )
    pairs = zip(replicas, given, strict=True)
    return {(of, broker): directory for broker, directory in pairs if directory != ANY_DIRECTORY}


def read_topics(path: Path) -> list[str]:
    """Return the topics of a `--topics-to-move-json-file`. Raises CommandFailed."""
    names = [entry["topic"] for entry in entries_of(path, read_json(path), "topics")]
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise CommandFailed(f"List of topics to reassign contains duplicate entries: {name[:250]}")
        seen.add(name)
    if not names:
        raise CommandFailed("Topics to move list cannot be empty")
    return names
