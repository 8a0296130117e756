"""The flags of `pykbroker topics`, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .command import CommandFailed, exactly_one, key_values, reject
from .topic_filter import topic_filter


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOptions:
    """A field per flag, of both forms. names: topics by their exact names, where no expression names them."""

    bootstrap_server: str
    command_config: Path | None
    create: bool = False
    list_: bool = False
    describe: bool = False
    alter: bool = False
    delete: bool = False
    names: tuple[str, ...] = ()
    topic: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    replica_assignment: str | None = None
    configs: tuple[str, ...] = ()
    deleted_configs: tuple[str, ...] = ()
    if_not_exists: bool = False
    if_exists: bool = False
    exclude_internal: bool = False
    under_replicated_partitions: bool = False
    unavailable_partitions: bool = False
    under_min_isr_partitions: bool = False
    at_min_isr_partitions: bool = False
    topics_with_overrides: bool = False
    as_json: bool = False
    internal: bool = False
    yes: bool = False

    @property
    def assignment(self) -> list[list[int]]:
        """The replicas of each partition, where they were given. Raises CommandFailed."""
        return [] if self.replica_assignment is None else parse_assignment(self.replica_assignment)

    @property
    def overrides(self) -> dict[str, str]:
        return key_values(self.configs, "--config")

    @property
    def filters_partitions(self) -> bool:
        return (
            self.under_replicated_partitions
            or self.unavailable_partitions
            or self.under_min_isr_partitions
            or self.at_min_isr_partitions
        )


def check_words(options: TopicOptions) -> None:
    """Raises CommandFailed where the options of a word do not fit each other."""
    if options.names and options.topic is not None:
        raise CommandFailed("Names and --topic are two ways to say which topics: give one")
    both = sorted(set(options.overrides) & set(options.deleted_configs))
    if both:
        raise CommandFailed(f"{', '.join(both)} cannot be set and deleted at once")
    topic_filter(options.topic)
    _ = options.assignment


def action_of(options: TopicOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    action = exactly_one(
        {
            "--list": options.list_,
            "--describe": options.describe,
            "--create": options.create,
            "--alter": options.alter,
            "--delete": options.delete,
        }
    )
    if options.topic is None and action in ("--create", "--alter", "--delete"):
        raise CommandFailed(f"{action} needs --topic")
    _reject_foreign_flags(action, options)
    if action == "--create":
        check_create(options)
    if action == "--alter" and options.partitions is None:
        raise CommandFailed("--alter needs --partitions")
    if options.replica_assignment is not None:
        parse_assignment(options.replica_assignment)
    return action


def _reject_foreign_flags(action: str, options: TopicOptions) -> None:
    if action != "--create":
        only_create = {
            "--config": options.configs,
            "--replication-factor": options.replication_factor,
            "--if-not-exists": options.if_not_exists,
        }
        reject(only_create, "can be used with --create only")
    if action not in ("--create", "--alter"):
        numbers = {"--partitions": options.partitions, "--replica-assignment": options.replica_assignment}
        reject(numbers, "can be used with --create and --alter only")
    if action != "--describe" and (options.filters_partitions or options.topics_with_overrides):
        raise CommandFailed("Partitions and topics are filtered with --describe only")
    if action not in ("--list", "--describe"):
        reject({"--exclude-internal": options.exclude_internal}, "can be used with --list and --describe only")
    if action != "--delete":
        reject({"--internal": options.internal, "--yes": options.yes}, "can be used with --delete only")
    if action not in ("--alter", "--delete", "--describe"):
        reject({"--if-exists": options.if_exists}, "can be used with --alter, --delete and --describe only")


def check_create(options: TopicOptions) -> None:
    """Raises CommandFailed."""
    if options.replica_assignment is not None:
        numbers = {"--partitions": options.partitions, "--replication-factor": options.replication_factor}
        reject(numbers, "and --replica-assignment exclude each other")
    if options.partitions is not None and options.partitions < 1:
        raise CommandFailed("The partitions must be greater than 0")
    if options.replication_factor is not None and not 1 <= options.replication_factor <= 32767:
        raise CommandFailed("The replication factor must be between 1 and 32767 inclusive")
    key_values(options.configs, "--config")


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
