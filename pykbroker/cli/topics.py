"""`pykbroker topics`: in words, or with the flags, texts and columns of `kafka-topics`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .command import CommandFailed, bootstrap_options, reject
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .topic_options import TopicOptions, action_of, check_create, check_words
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

T = TypeVar("T")

CLIENT_ID = "topics"
_names = click.argument("names", nargs=-1, metavar="[NAME …]")
_pattern = click.option("--topic", metavar="REGEX", help="Topics whose whole names match.")
_internal = click.option("--internal", is_flag=True, help="Internal topics, too; by their names.")
_partitions = click.option("--partitions", type=int, metavar="N", help="How many. Default: the broker's.")
_assignment = click.option(
    "--replica-assignment", metavar="B:B,B:B", help="Broker ids for each partition, in place of the numbers."
)


@click.group(
    "topics",
    cls=TwoForms,
    like="kafka-topics",
    epilog=examples(
        ("All topics", "pykbroker topics list"),
        ("A topic with three partitions", "pykbroker topics create orders --partitions 3"),
        ("The same by Kafka's flags", "pykbroker topics --create --topic orders --partitions 3"),
    ),
)
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
@click.option("--internal", is_flag=True, help="With --delete: internal topics, too; by their names.")
@yes_option
@json_option
def command(**flags: Any) -> None:
    """Create, list, describe, alter and delete topics."""
    options = TopicOptions(**flags)
    action = action_of(options)
    from . import topic_actions, topic_deletion

    actions = {
        "--list": topic_actions.list_names,
        "--describe": topic_actions.describe,
        "--create": topic_actions.create,
        "--alter": topic_actions.alter,
        "--delete": topic_deletion.delete,
    }
    run_on_cluster(actions[action], options, client_id=CLIENT_ID)


def _run(action: Callable[[Cluster, TopicOptions], Awaitable[T]], options: TopicOptions) -> T:
    check_words(options)
    return run_on_cluster(action, options, client_id=CLIENT_ID)


@command.command(
    "list",
    epilog=examples(
        ("All topics", "pykbroker topics list"),
        ("Exit code 1 where replicas are not in sync", "pykbroker topics list --under-replicated"),
        ("Those of one region, for a program", "pykbroker topics list --topic 'eu-.*' --json"),
    ),
)
@bootstrap_options
@_names
@_pattern
@click.option("--internal", is_flag=True, help="Internal topics, too.")
@click.option("--under-replicated", "under_replicated_partitions", is_flag=True, help="Replicas are not in sync.")
@click.option("--unavailable", "unavailable_partitions", is_flag=True, help="Without a leader.")
@click.option("--under-min-isr", "under_min_isr_partitions", is_flag=True, help="Fewer than min.insync.replicas.")
@json_option
def list_(internal: bool, **flags: Any) -> None:
    """List topics; or those that have partitions of some kind, with exit code 1 where there are any."""
    options = TopicOptions(**flags, internal=internal, exclude_internal=not internal and not flags["names"])
    from .topic_actions import list_all

    if _run(list_all, options) and options.filters_partitions:
        raise SystemExit(1)


@command.command(
    "describe",
    epilog=examples(
        ("Partitions, replicas and own configs", "pykbroker topics describe orders"),
        ("Only what has no leader", "pykbroker topics describe --unavailable"),
        ("For a program", "pykbroker topics describe orders --json"),
    ),
)
@bootstrap_options
@_names
@_pattern
@click.option("--under-replicated", "under_replicated_partitions", is_flag=True, help="Only these partitions.")
@click.option("--unavailable", "unavailable_partitions", is_flag=True, help="Only partitions without a leader.")
@click.option("--under-min-isr", "under_min_isr_partitions", is_flag=True, help="Only these partitions.")
@click.option("--at-min-isr", "at_min_isr_partitions", is_flag=True, help="Only these partitions.")
@json_option
def describe(**flags: Any) -> None:
    """Show partitions with their replicas, and the configs that a topic has of its own."""
    from .topic_actions import describe

    _run(describe, TopicOptions(**flags))


@command.command(
    "create",
    epilog=examples(
        ("With the broker's defaults", "pykbroker topics create orders"),
        (
            "Three replicas that keep a day",
            "pykbroker topics create orders --replication-factor 3 --config retention.ms=86400000",
        ),
        ("In a script", "pykbroker topics create orders payments --partitions 6 --if-not-exists"),
    ),
)
@bootstrap_options
@click.argument("names", nargs=-1, required=True, metavar="NAME …")
@_partitions
@click.option("--replication-factor", type=int, metavar="N", help="Replicas of each. Default: the broker's.")
@_assignment
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
@json_option
def create(**flags: Any) -> None:
    """Create topics."""
    options = TopicOptions(**flags)
    check_create(options)
    from .topic_actions import create

    _run(create, options)


@command.command(
    "alter",
    epilog=examples(
        ("More partitions", "pykbroker topics alter orders --partitions 6"),
        ("Keep records for a day", "pykbroker topics alter orders --config retention.ms=86400000"),
        ("Back to the default", "pykbroker topics alter orders --delete-config retention.ms"),
    ),
)
@bootstrap_options
@click.argument("names", nargs=-1, required=True, metavar="NAME …")
@click.option("--partitions", type=int, metavar="N", help="The new number, which is more than before.")
@_assignment
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A config to set; may be repeated.")
@click.option("--delete-config", "deleted_configs", multiple=True, metavar="KEY", help="One that is the default again.")
@click.option("--if-exists", is_flag=True, help="A missing topic is no error.")
@json_option
def alter(**flags: Any) -> None:
    """Add partitions, and change configs."""
    options = TopicOptions(**flags)
    if options.partitions is None:
        reject({"--replica-assignment": options.replica_assignment}, "needs --partitions")
        if not options.configs and not options.deleted_configs:
            raise CommandFailed("Say what to alter: --partitions, --config or --delete-config")
    from .topic_actions import alter

    _run(alter, options)


@command.command(
    "delete",
    epilog=examples(
        ("At a terminal it is asked for", "pykbroker topics delete orders"),
        ("By a pattern, in a script", "pykbroker topics delete --topic 'test-.*' --yes"),
    ),
)
@bootstrap_options
@_names
@_pattern
@_internal
@click.option("--if-exists", is_flag=True, help="A missing topic is no error.")
@yes_option
@json_option
def delete(**flags: Any) -> None:
    """Delete topics with their records."""
    options = TopicOptions(**flags)
    if not options.names and options.topic is None:
        raise CommandFailed("Say which topics: their names, or --topic with a regular expression")
    from .topic_deletion import delete

    _run(delete, options)
