"""`pykbroker streams-groups`: in words, or with the flags, texts and columns of `kafka-streams-groups`.

What fails for a group ends with exit code 1, where Kafka's tool prints its error and may end with 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .command import CommandFailed, bootstrap_options
from .confirmation import yes_option
from .entries import json_option
from .examples import examples
from .streams_group_options import StreamsGroupOptions, action_of, check_describe, check_reset_words
from .two_forms import TwoForms
from .typed_groups import run_on_groups

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

T = TypeVar("T")

_NAMES = click.argument("groups", nargs=-1, metavar="[GROUP …]")
_ALL_GROUPS = click.option("--all-groups", is_flag=True, help="All streams groups, in place of names.")
_INPUT_TOPIC = click.option(
    "--input-topic", "topics", multiple=True, metavar="T[:P,P]", help="The input topic, or some of its partitions."
)
_ALL_INTERNAL_TOPICS = click.option(
    "--delete-all-internal-topics",
    "all_internal_topics",
    is_flag=True,
    help="Delete the changelogs and repartition topics of the group, too.",
)


def _places(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say where to reset to, and what goes with it."""
    for option in reversed(
        (
            click.option("--to-earliest", is_flag=True, help="Reset offsets to the earliest offset."),
            click.option("--to-latest", is_flag=True, help="Reset offsets to the latest offset."),
            click.option("--to-current", is_flag=True, help="Reset offsets to the current offset."),
            click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="Reset offsets to this one."),
            click.option("--shift-by", type=int, metavar="N", help="Move offsets by N, forward or back."),
            click.option("--to-datetime", metavar="TIME", help="YYYY-MM-DDThh:mm:ss.sss, in UTC."),
            click.option("--by-duration", metavar="DURATION", help="PnDTnHnMnS before now."),
            click.option("--from-file", type=click.Path(path_type=Path), metavar="FILE", help="Offsets from CSV."),
            click.option("--dry-run", is_flag=True, help="Only show what would be reset."),
            click.option("--execute", is_flag=True, help="Do reset the offsets."),
            click.option("--export", is_flag=True, help="Show the plan as CSV, for --from-file."),
            click.option(
                "--delete-internal-topic",
                "internal_topics",
                multiple=True,
                metavar="T",
                help="Delete this internal topic of the group, too; may be repeated.",
            ),
        )
    ):
        function = option(function)
    return function


@click.group(
    "streams-groups",
    cls=TwoForms,
    like="kafka-streams-groups",
    epilog=examples(
        ("All groups of Kafka Streams with their states", "pykbroker streams-groups list"),
        ("Lag of one application", "pykbroker streams-groups describe word-count"),
        ("The same by Kafka's flags", "pykbroker streams-groups --describe --group word-count"),
    ),
)
@bootstrap_options
@click.option("--list", "list_", is_flag=True, help="List all streams groups.")
@click.option("--describe", is_flag=True, help="Describe groups, by default their lag.")
@click.option("--delete", is_flag=True, help="Delete groups without members.")
@click.option("--reset-offsets", is_flag=True, help="Reset offsets of groups without members.")
@click.option("--delete-offsets", is_flag=True, help="Delete offsets of a group.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="The streams group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="Apply to all streams groups.")
@_INPUT_TOPIC
@click.option("--all-input-topics", "all_topics", is_flag=True, help="All source topics of the group.")
@click.option("--offsets", is_flag=True, help="With --describe: the lag (the default).")
@click.option("--members", is_flag=True, help="With --describe: the members.")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="[STATES]",
    help="With --describe: the group's state. With --list: show states, or only groups in these.",
)
@click.option("--verbose", is_flag=True, help="With --describe: epochs, offsets and targets, too.")
@click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(1, 2**31 - 1),
    metavar="MS",
    default=30_000,
    show_default=True,
    help="How long to try each request.",
)
@_places
@_ALL_INTERNAL_TOPICS
@yes_option
@json_option
def command(**flags: Any) -> None:
    """List, describe, reset and delete groups of Kafka Streams."""
    options = StreamsGroupOptions(**flags)
    action = action_of(options)
    from . import streams_group_actions, streams_group_offsets

    chosen = {
        "--list": streams_group_actions.list_names,
        "--describe": streams_group_actions.describe_as_kafka,
        "--delete": streams_group_actions.delete,
        "--reset-offsets": streams_group_offsets.reset,
        "--delete-offsets": streams_group_offsets.delete_offsets,
    }
    _run(chosen[action], options)


def _run(action: Callable[[Cluster, StreamsGroupOptions], Awaitable[T]], options: StreamsGroupOptions) -> T:
    return run_on_groups(action, options, client_id="streams-groups")


@command.command(
    "list",
    epilog=examples(
        ("All groups of Kafka Streams", "pykbroker streams-groups list"),
        ("Those whose topics are missing, for a script", "pykbroker streams-groups list --state NotReady --json"),
    ),
)
@bootstrap_options
@_NAMES
@click.option("--state", metavar="STATE,…", help="Only groups in these states.")
@json_option
def list_(**flags: Any) -> None:
    """List streams groups with their states."""
    from .streams_group_actions import list_in_words

    _run(list_in_words, StreamsGroupOptions(**flags))


@command.command(
    "describe",
    epilog=examples(
        ("Lag of every partition that the application reads", "pykbroker streams-groups describe word-count"),
        ("Who has which tasks, and is to have", "pykbroker streams-groups describe word-count --members --verbose"),
        ("The topology and all else", "pykbroker streams-groups describe word-count --json"),
    ),
)
@bootstrap_options
@_NAMES
@click.option("--members", is_flag=True, help="The members, in place of the lag.")
@click.option("--state", "shows_state", is_flag=True, help="The state, in place of the lag.")
@click.option("--verbose", is_flag=True, help="Epochs, offsets and targets, too.")
@json_option
def describe(shows_state: bool, **flags: Any) -> None:
    """Show lag, members and tasks of streams groups; of all where none is named."""
    options = StreamsGroupOptions(**flags, state="" if shows_state else None)
    check_describe(options)
    from . import streams_group_actions

    _run(streams_group_actions.describe, options)


@command.command(
    "delete",
    epilog=examples(
        ("One group; at a terminal it is asked for", "pykbroker streams-groups delete word-count"),
        (
            "With all that the application has built",
            "pykbroker streams-groups delete word-count --delete-all-internal-topics --yes",
        ),
    ),
)
@bootstrap_options
@_NAMES
@_ALL_GROUPS
@_ALL_INTERNAL_TOPICS
@click.option("--if-exists", is_flag=True, help="A missing group is no error.")
@yes_option
@json_option
def delete(**flags: Any) -> None:
    """Delete streams groups without members, with their committed offsets."""
    options = StreamsGroupOptions(**flags)
    if bool(options.groups) == options.all_groups:
        raise CommandFailed("delete takes either names of groups or --all-groups")
    from .streams_group_actions import delete_existing

    _run(delete_existing, options)


@command.command(
    "reset-offsets",
    epilog=examples(
        (
            "Compute everything again",
            "pykbroker streams-groups reset-offsets word-count --to-earliest --delete-all-internal-topics",
        ),
        (
            "What an hour back would be",
            "pykbroker streams-groups reset-offsets word-count --by-duration PT1H --dry-run",
        ),
        (
            "Two partitions, from a script",
            "pykbroker streams-groups reset-offsets word-count --input-topic t:0,1 --to-offset 5 --execute",
        ),
    ),
)
@bootstrap_options
@_NAMES
@_ALL_GROUPS
@click.option(
    "--input-topic",
    "topics",
    multiple=True,
    metavar="T[:P,P]",
    help="The input topic, or some of its partitions. Default: all source topics.",
)
@_places
@_ALL_INTERNAL_TOPICS
@click.option("--yes", is_flag=True, help="The same as --execute.")
@json_option
def reset_offsets(**flags: Any) -> None:
    """Show where streams groups without members would go on, and move them there."""
    options = StreamsGroupOptions(**flags)
    check_reset_words(options)
    from .streams_group_offsets import reset_in_words

    _run(reset_in_words, options)


@command.command(
    "delete-offsets",
    epilog=examples(
        ("Of one topic", "pykbroker streams-groups delete-offsets word-count --input-topic lines"),
        ("Of all source topics", "pykbroker streams-groups delete-offsets word-count --all-input-topics --yes"),
    ),
)
@bootstrap_options
@click.argument("group", metavar="GROUP")
@_INPUT_TOPIC
@click.option("--all-input-topics", "all_topics", is_flag=True, help="All source topics of the group.")
@yes_option
@json_option
def delete_offsets(group: str, **flags: Any) -> None:
    """Delete the offsets that a streams group has committed."""
    options = StreamsGroupOptions(groups=(group,), **flags)
    if bool(options.topics) == options.all_topics:
        raise CommandFailed("Say of which topics: --input-topic T or --all-input-topics")
    from .streams_group_offsets import delete_offsets

    _run(delete_offsets, options)
