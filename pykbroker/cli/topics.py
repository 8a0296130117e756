"""`pykbroker topics`: the flags, texts and columns of `kafka-topics`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import ConfigSource, Resource, ResourceType, describe_configs
from pykbroker.client.errors import KafkaError
from pykbroker.client.metadata import PartitionMetadata, TopicMetadata
from pykbroker.client.topics import BROKER_DEFAULT, create_topic, delete_topic, describe_topics, grow_topic, list_topics
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.uuids import uuid_to_text

from .command import ClientCommand, CommandFailed, bootstrap_options, exactly_one, key_values, reject, run
from .connect import open_cluster, read_client_properties
from .output import Column, print_table, stdout_is_terminal, warn

MIN_INSYNC_REPLICAS = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which topics and partitions `--describe` shows."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    overrides_only: bool = False

    @property
    def filters_partitions(self) -> bool:
        return self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr

    def shows(self, partition: PartitionMetadata, live_nodes: set[int], min_isr: int) -> bool:
        in_sync = len(partition.isr_nodes)
        return (
            not self.filters_partitions
            or (self.under_replicated and in_sync < len(partition.replica_nodes))
            or (self.unavailable and partition.leader_id not in live_nodes)
            or (self.under_min_isr and in_sync < min_isr)
            or (self.at_min_isr and in_sync == min_isr)
        )


@click.command("topics", cls=ClientCommand)
@bootstrap_options
@click.option("--create", is_flag=True, help="Create a new topic.")
@click.option("--list", "list_", is_flag=True, help="List all available topics.")
@click.option("--describe", is_flag=True, help="List details for the given topics.")
@click.option("--alter", is_flag=True, help="Raise the number of partitions.")
@click.option("--delete", is_flag=True, help="Delete a topic.")
@click.option("--topic", metavar="NAME", help="The topic; a regular expression too, except with --create.")
@click.option("--partitions", type=int, metavar="N", help="With --create and --alter. Default: the broker's.")
@click.option("--replication-factor", type=int, metavar="N", help="With --create. Default: the broker's.")
@click.option("--replica-assignment", metavar="B:B,B:B", help="Broker ids for each partition, by hand.")
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="With --create; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="With --create: an existing topic is no error.")
@click.option("--if-exists", is_flag=True, help="With --alter, --delete, --describe: a missing topic is no error.")
@click.option("--exclude-internal", is_flag=True, help="With --list, --describe: leave out internal topics.")
@click.option("--under-replicated-partitions", is_flag=True, help="With --describe: only these partitions.")
@click.option("--unavailable-partitions", is_flag=True, help="With --describe: only those without a leader.")
@click.option("--under-min-isr-partitions", is_flag=True, help="With --describe: only these partitions.")
@click.option("--at-min-isr-partitions", is_flag=True, help="With --describe: only these partitions.")
@click.option("--topics-with-overrides", is_flag=True, help="With --describe: only topics with own configs.")
def command(
    bootstrap_server: str,
    command_config: Path | None,
    create: bool,
    list_: bool,
    describe: bool,
    alter: bool,
    delete: bool,
    topic: str | None,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    if_exists: bool,
    exclude_internal: bool,
    under_replicated_partitions: bool,
    unavailable_partitions: bool,
    under_min_isr_partitions: bool,
    at_min_isr_partitions: bool,
    topics_with_overrides: bool,
) -> None:
    """Create, list, describe, alter and delete topics."""
    action = exactly_one(
        {"--list": list_, "--describe": describe, "--create": create, "--alter": alter, "--delete": delete}
    )
    selection = Selection(
        under_replicated_partitions,
        unavailable_partitions,
        under_min_isr_partitions,
        at_min_isr_partitions,
        topics_with_overrides,
    )
    if topic is None and action in ("--create", "--alter", "--delete"):
        raise CommandFailed(f"{action} needs --topic")
    if action != "--create":
        reject({"--config": configs, "--replication-factor": replication_factor}, "can be used with --create only")
        reject({"--if-not-exists": if_not_exists}, "can be used with --create only")
    if action not in ("--create", "--alter"):
        reject(
            {"--partitions": partitions, "--replica-assignment": replica_assignment},
            "can be used with --create and --alter only",
        )
    if action != "--describe" and selection != Selection():
        raise CommandFailed("Partitions and topics are filtered with --describe only")
    if action not in ("--list", "--describe"):
        reject({"--exclude-internal": exclude_internal}, "can be used with --list and --describe only")
    if action not in ("--alter", "--delete", "--describe"):
        reject({"--if-exists": if_exists}, "can be used with --alter, --delete and --describe only")
    if action == "--create" and replica_assignment is not None:
        reject(
            {"--partitions": partitions, "--replication-factor": replication_factor},
            "and --replica-assignment exclude each other",
        )
    assignment = parse_assignment(replica_assignment) if replica_assignment is not None else []
    properties = read_client_properties(command_config)

    async def work() -> None:
        async with open_cluster(bootstrap_server, properties, client_id="topics") as cluster:
            match action:
                case "--create":
                    assert topic is not None
                    overrides = key_values(configs, "--config")
                    await _create(cluster, topic, partitions, replication_factor, assignment, overrides, if_not_exists)
                case "--list":
                    for found in await _matching(cluster, topic, exclude_internal=exclude_internal):
                        click.echo(found.name)
                case "--describe":
                    names = await _existing(cluster, topic, if_exists, exclude_internal=exclude_internal)
                    await _describe(cluster, names, selection)
                case "--alter":
                    await _alter(cluster, await _existing(cluster, topic, if_exists), partitions, assignment)
                case "--delete":
                    for name in await _existing(cluster, topic, if_exists):
                        await delete_topic(cluster, name)

    run(work)


def parse_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3` are the replicas of partitions 0 and 1."""
    try:
        assignment = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise CommandFailed(f"--replica-assignment expects broker ids like 1:2,2:3, not '{text}'") from None
    for partition, replicas in enumerate(assignment):
        if len(set(replicas)) < len(replicas):
            raise CommandFailed(f"--replica-assignment names a broker twice for partition {partition}")
        if len(replicas) != len(assignment[0]):
            raise CommandFailed(f"--replica-assignment gives partition {partition} another replication factor")
    return assignment


def topic_filter(expression: str | None) -> Callable[[str], bool]:
    """Kafka's: a regular expression for the whole name, in which a comma means "or"."""
    if expression is None:
        return lambda name: True
    try:
        pattern = re.compile("|".join(part.strip() for part in expression.strip("\"'").split(",")))
    except re.error as error:
        raise CommandFailed(f"'{expression}' is no regular expression: {error}") from None
    return lambda name: pattern.fullmatch(name) is not None


async def _matching(cluster: Cluster, expression: str | None, *, exclude_internal: bool = False) -> list[TopicMetadata]:
    matches = topic_filter(expression)
    topics = await list_topics(cluster)
    return [topic for topic in topics if matches(topic.name) and not (exclude_internal and topic.is_internal)]


async def _existing(
    cluster: Cluster, expression: str | None, if_exists: bool, *, exclude_internal: bool = False
) -> list[str]:
    topics = await _matching(cluster, expression, exclude_internal=exclude_internal)
    if expression is not None and not topics and not if_exists:
        raise CommandFailed(f"Topic '{expression}' does not exist as expected")
    return [topic.name for topic in topics]


async def _create(
    cluster: Cluster,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignment: Sequence[Sequence[int]],
    configs: dict[str, str],
    if_not_exists: bool,
) -> None:
    if partitions is not None and partitions < 1:
        raise CommandFailed("The partitions must be greater than 0")
    if replication_factor is not None and not 1 <= replication_factor <= 32767:
        raise CommandFailed("The replication factor must be between 1 and 32767 inclusive")
    try:
        await create_topic(
            cluster,
            name,
            partitions=BROKER_DEFAULT if partitions is None else partitions,
            replication_factor=BROKER_DEFAULT if replication_factor is None else replication_factor,
            assignment=assignment,
            configs=configs,
        )
    except KafkaError as error:
        if if_not_exists and error.error_code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        raise
    click.echo(f"Created topic {name}.")
    if "." in name or "_" in name:
        warn("metric names do not tell '.' from '_': it is best to use either, but not both, in topic names")


async def _alter(
    cluster: Cluster, names: list[str], partitions: int | None, assignment: Sequence[Sequence[int]]
) -> None:
    if partitions is None:
        raise CommandFailed("--alter needs --partitions")
    for name in names:
        # The assignment names all partitions; the broker wants those of the new ones.
        existing = len((await cluster.topic(name)).partitions)
        await grow_topic(cluster, name, partitions, assignment[existing:])


async def _describe(cluster: Cluster, names: list[str], selection: Selection) -> None:
    live_nodes = set(cluster.metadata.nodes)
    for topic in await describe_topics(cluster, names):
        configs = await describe_configs(cluster, Resource(ResourceType.TOPIC, topic.name))
        own = {row.name: row.value or "" for row in configs if row.config_source != ConfigSource.DEFAULT_CONFIG}
        min_isr = next((int(row.value or 1) for row in configs if row.name == MIN_INSYNC_REPLICAS), 1)
        shown = [row for row in topic.partitions.values() if selection.shows(row, live_nodes, min_isr)]
        if selection.overrides_only and not own:
            continue
        _print_topic(topic, [] if selection.overrides_only else shown, own, selection.filters_partitions)


def _print_topic(
    topic: TopicMetadata, partitions: list[PartitionMetadata], configs: dict[str, str], partitions_only: bool
) -> None:
    replication_factor = len(next(iter(topic.partitions.values())).replica_nodes) if topic.partitions else 0
    header = {
        "Topic": topic.name,
        "TopicId": uuid_to_text(topic.topic_id),
        "PartitionCount": str(len(topic.partitions)),
        "ReplicationFactor": str(replication_factor),
        "Configs": ",".join(f"{name}={value}" for name, value in configs.items()),
    }
    rows = [_partition_row(topic.name, row) for row in partitions]
    if not partitions_only:
        separator = "  " if stdout_is_terminal() else "\t"
        click.echo(separator.join(f"{name}: {value}" for name, value in header.items()))
    if not rows:
        return
    if stdout_is_terminal():
        print_table([Column(name) for name in rows[0]], [list(row.values()) for row in rows])
    else:
        for row in rows:
            click.echo("\t" + "\t".join(f"{name}: {value}" for name, value in row.items()))


def _partition_row(name: str, partition: PartitionMetadata) -> dict[str, str]:
    return {
        "Topic": name,
        "Partition": str(partition.partition),
        "Leader": str(partition.leader_id) if partition.leader_id >= 0 else "none",
        "Replicas": _ids(partition.replica_nodes),
        "Isr": _ids(partition.isr_nodes),
        "Elr": _ids(partition.eligible_leader_replicas),
        "LastKnownElr": _ids(partition.last_known_elr),
    }


def _ids(nodes: Sequence[int] | None) -> str:
    return "N/A" if nodes is None else ",".join(str(node) for node in nodes)
