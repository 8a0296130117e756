"""Actions of `pykbroker log-dirs`. A broker that does not answer has a row that says so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from pykbroker.client.brokers import describe_cluster
from pykbroker.client.cluster import Cluster
from pykbroker.client.each_node import ask_each
from pykbroker.client.errors import ClientError
from pykbroker.client.log_dirs import LogDirectory, ReplicaInDirectory, describe_log_dirs

from .broker_ids import parse_broker_ids
from .command import CommandFailed, one_line
from .entries import Field, Value, print_entries
from .progress import progress

_DIRECTORY_FIELDS: Final = (
    Field("broker", right=True),
    Field("log_dir"),
    Field("state"),
    Field("replicas", right=True),
    Field("moving", right=True),
    Field("size_bytes", "SIZE", right=True),
    Field("usable_bytes", "USABLE", right=True),
    Field("total_bytes", "TOTAL", right=True),
    Field("error", ""),
)
_TOPIC_FIELDS: Final = (
    Field("topic"),
    Field("broker", right=True),
    Field("log_dir"),
    Field("replicas", right=True),
    Field("size_bytes", "SIZE", right=True),
)
_STORAGE_ERROR: Final = "org.apache.kafka.common.errors.KafkaStorageException"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

Answers = dict[int, list[LogDirectory] | ClientError]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirOptions:
    """A field per flag."""

    bootstrap_server: str
    command_config: Path | None
    topics: tuple[str, ...] = ()
    broker_list: str | None = None
    topic_list: str | None = None
    by_topic: bool = False
    top: int | None = None
    as_json: bool = False

    @property
    def wanted_topics(self) -> frozenset[str]:
        listed = (self.topic_list or "").split(",")
        return frozenset([*self.topics, *(each.strip() for each in listed if each.strip())])


async def describe(cluster: Cluster, options: LogDirOptions) -> bool:
    """Print a table, and return whether something is offline."""
    answers = await _ask(cluster, options)
    if options.by_topic or options.top is not None:
        _print_topics(answers, options)
    else:
        rows = [row for node_id, answer in answers.items() for row in _rows(node_id, answer, options)]
        shown = rows if options.as_json else [_readable(row) for row in rows]
        print_entries(_DIRECTORY_FIELDS, shown, as_json=options.as_json)
    if not options.as_json:
        _print_total(answers, options)
    for node_id, answer in answers.items():
        if isinstance(answer, ClientError) and not (options.as_json and not options.by_topic and options.top is None):
            click.echo(f"Broker {node_id}: {one_line(answer)}", err=True)
    return _is_wrong(answers)


def _is_wrong(answers: Answers) -> bool:
    return any(
        isinstance(answer, ClientError) or any(not each.is_online for each in answer) for answer in answers.values()
    )


async def _ask(cluster: Cluster, options: LogDirOptions) -> Answers:
    """Raises CommandFailed for brokers that do not exist."""
    nodes = {each.node.node_id: each.node for each in (await describe_cluster(cluster)).brokers}
    wanted = parse_broker_ids(options.broker_list, "--broker-list") if options.broker_list else tuple(nodes)
    unknown = [str(each) for each in wanted if each not in nodes]
    if unknown:
        raise CommandFailed(
            f"The given brokers do not exist from --broker-list: {','.join(unknown)}. "
            f"Current existent brokers: {','.join(str(each) for each in nodes)}"
        )
    with progress("Asking brokers", len(wanted)) as advance:
        return await ask_each(cluster, [nodes[each] for each in wanted], describe_log_dirs, on_answer=advance)


def _replicas(directory: LogDirectory, options: LogDirOptions) -> list[ReplicaInDirectory]:
    wanted = options.wanted_topics
    return [each for each in directory.replicas if not wanted or each.partition.topic in wanted]


def _rows(node_id: int, answer: list[LogDirectory] | ClientError, options: LogDirOptions) -> Iterator[list[Value]]:
    if isinstance(answer, ClientError):
        yield [node_id, None, "unreachable", None, None, None, None, None, one_line(answer)]
        return
    for directory in answer:
        replicas = _replicas(directory, options)
        yield [
            node_id,
            directory.path,
            _state(directory),
            len(replicas),
            sum(each.is_future for each in replicas),
            sum(each.size_bytes for each in replicas),
            directory.usable_bytes,
            directory.total_bytes,
            None if directory.is_online else directory.error_code.name,
        ]


def _state(directory: LogDirectory) -> str:
    if not directory.is_online:
        return "offline"
    return "cordoned" if directory.is_cordoned else "online"


def _readable(row: list[Value]) -> list[Value]:
    """Return a row with its last sizes as people read them."""
    sizes = [size_text(each) if isinstance(each, int) else each for each in row[5:8]]
    return [*row[:5], *sizes, *row[8:]]


def size_text(size_bytes: int) -> str:
    """Return `12.3 GiB`; bytes up to 1,023 as they are."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size_bytes} B"


def _print_topics(answers: Answers, options: LogDirOptions) -> None:
    sizes: dict[tuple[str, int, str], list[int]] = {}
    for node_id, _, directory in _directories(answers):
        for each in _replicas(directory, options):
            counted = sizes.setdefault((each.partition.topic, node_id, directory.path), [0, 0])
            counted[0] += 1
            counted[1] += each.size_bytes
    ordered = sorted(sizes.items(), key=lambda item: (-item[1][1], item[0]))[: options.top]
    rows: list[list[Value]] = [
        [topic, node_id, path, count, size if options.as_json else size_text(size)]
        for (topic, node_id, path), (count, size) in ordered
    ]
    print_entries(_TOPIC_FIELDS, rows, as_json=options.as_json)


def _directories(answers: Answers) -> Iterator[tuple[int, int, LogDirectory]]:
    """Yield broker, index and directory."""
    for node_id, answer in answers.items():
        if not isinstance(answer, ClientError):
            for index, directory in enumerate(answer):
                yield node_id, index, directory


def _print_total(answers: Answers, options: LogDirOptions) -> None:
    directories = [directory for _, _, directory in _directories(answers)]
    replicas = [each for directory in directories for each in _replicas(directory, options)]
    size = size_text(sum(each.size_bytes for each in replicas))
    click.echo(
        f"{len(replicas)} replicas of {len({each.partition.topic for each in replicas})} topics, {size} in "
        f"{len(directories)} log directories; {sum(not each.is_online for each in directories)} offline"
    )


# The texts of kafka-log-dirs


async def print_as_kafka(cluster: Cluster, options: LogDirOptions) -> bool:
    """Print what Kafka's tool does, and return whether something is offline."""
    answers = await _ask(cluster, options)
    known: dict[int, list[LogDirectory]] = {
        node_id: answer for node_id, answer in answers.items() if not isinstance(answer, ClientError)
    }
    click.echo("Querying brokers for log directories information")
    click.echo(f"Received log directory information from brokers {','.join(str(each) for each in known)}")
    brokers: list[Value] = [
        {"broker": node_id, "logDirs": [_kafkas(each, options) for each in directories]}
        for node_id, directories in known.items()
    ]
    click.echo(json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":")))
    for node_id, answer in answers.items():
        if isinstance(answer, ClientError):
            click.echo(f"Broker {node_id}: {one_line(answer)}", err=True)
    return _is_wrong(answers)


def _kafkas(directory: LogDirectory, options: LogDirOptions) -> dict[str, Value]:
    return {
        "partitions": list(_partitions(_replicas(directory, options))),
        "error": None if directory.is_online else _STORAGE_ERROR,
        "logDir": directory.path,
    }


def _partitions(replicas: Iterable[ReplicaInDirectory]) -> Iterator[Value]:
    for each in replicas:
        yield {
            "partition": str(each.partition),
            "size": each.size_bytes,
            "offsetLag": each.offset_lag,
            "isFuture": each.is_future,
        }
