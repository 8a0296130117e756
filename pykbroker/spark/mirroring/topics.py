"""The topics of a mirror in its target: which there are, and how the others are created."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import describe_topic_configs
from pykbroker.client.errors import KafkaError
from pykbroker.client.topics import create_topic, grow_topic
from pykbroker.protocol.errors import ErrorCode

from ..source import Source, ask

JOURNAL = "pykbroker-mirror-positions"
"""A compacted topic of the target."""
_JOURNAL_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": str(8 << 20), "min.cleanable.dirty.ratio": "0.1"}

_NOT_MIRRORED = frozenset(
    {
        # Of the source's own replication.
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        # The copies keep their timestamps, whatever these are.
        "message.timestamp.type",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
    }
)
"""Those that MirrorMaker 2 leaves out by default."""
_DYNAMIC_TOPIC_CONFIG = 1
_COMPARED = ("cleanup.policy", "max.message.bytes", "message.timestamp.type", "retention.bytes", "retention.ms")


def own_configs(source: Source, names: Collection[str]) -> dict[str, dict[str, str]]:
    """The configs that were set for each of the topics, of those that are mirrored. Raises ClusterUnavailable."""

    async def question(cluster: Cluster) -> dict[str, dict[str, str]]:
        return {
            name: {
                row.name: row.value
                for row in rows
                if row.config_source == _DYNAMIC_TOPIC_CONFIG
                and row.value is not None
                and row.name not in _NOT_MIRRORED
            }
            for name, rows in (await describe_topic_configs(cluster, list(names))).items()
        }

    return ask(source, question)


def create_topics(
    target: Source, partitions: Mapping[str, int], configs: Mapping[str, Mapping[str, str]], replication_factor: int
) -> None:
    """Create the topics; those that somebody else has created meanwhile are as good. Raises ClusterUnavailable."""

    async def question(cluster: Cluster) -> None:
        for name, count in partitions.items():
            try:
                await create_topic(
                    cluster,
                    name,
                    partitions=count,
                    replication_factor=replication_factor,
                    configs=configs.get(name, {}),
                )
            except KafkaError as error:
                if error.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise KafkaError(error.error_code, f"The topic '{name}' cannot be created: {error}") from None

    ask(target, question)


def create_journal(target: Source, replication_factor: int) -> None:
    create_topics(target, {JOURNAL: 1}, {JOURNAL: _JOURNAL_CONFIGS}, replication_factor)


def grow_topics(target: Source, partitions: Mapping[str, int]) -> None:
    """Give the topics so many partitions. Raises ClusterUnavailable."""

    async def question(cluster: Cluster) -> None:
        for name, count in partitions.items():
            await grow_topic(cluster, name, count)

    ask(target, question)


def differences(source: Source, target: Source, names: Mapping[str, str]) -> list[str]:
    """Sentences about configs that treat the copies in another way. names: in the target, by those in the source.

    Raises ClusterUnavailable.
    """

    async def described(topics: list[str], cluster: Cluster) -> dict[str, dict[str, str | None]]:
        found = await describe_topic_configs(cluster, topics)
        return {name: {row.name: row.value for row in rows} for name, rows in found.items()}

    ours = ask(source, partial(described, list(names)))
    theirs = ask(target, partial(described, list(names.values())))
    found = []
    for name, copy in names.items():
        for config in _COMPARED:
            before, now = ours[name].get(config), theirs[copy].get(config)
            if config == "message.timestamp.type":
                if now == "LogAppendTime":
                    found.append(f"{copy} has message.timestamp.type=LogAppendTime: its records get new timestamps")
            elif before != now:
                found.append(f"{copy} has {config}={now}, and {name} has {before}")
    return found
