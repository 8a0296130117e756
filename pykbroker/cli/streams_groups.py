"""`pykbroker streams-groups`: in words, or with the flags, texts and columns of `kafka-streams-groups`.

What fails for a group ends with exit code 1, where Kafka's tool prints its error and may end with 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import group_flags as flags
from .command import CommandFailed
from .common_group_options import check_describe, check_named
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .streams_group_options import StreamsGroupOptions, action_of, check_reset_words
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

T = TypeVar("T")

_INPUT_TOPIC = click.option(
    "--input-topic", "topics", multiple=True, metavar="T[:P,P]", help="The input topic, or some of its partitions."
)
_ALL_INPUT_TOPICS = click.option(
    "--all-input-topics", "all_topics", is_flag=True, help="All source topics of the group."
)
_ALL_INTERNAL_TOPICS = click.option(
    "--delete-all-internal-topics",
    "all_internal_topics",
    is_flag=True,
    help="Delete the changelogs and repartition topics of the group, too.",
)


_PLACES = flags.together(
    flags.committed_places,
    click.option(
        "--delete-internal-topic",
        "internal_topics",
        multiple=True,
        metavar="T",
        help="Delete this internal topic of the group, too; may be repeated.",
    ),
)


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
@flags.list_and_describe("streams groups", "lag")
@flags.changes("groups without members", "a group")
@flags.which_groups("streams group", "streams groups")
@_INPUT_TOPIC
@_ALL_INPUT_TOPICS
@flags.what_to_show("the lag")
@click.option("--verbose", is_flag=True, help="With --describe: epochs, offsets and targets, too.")
@flags.timeout
@_PLACES
@_ALL_INTERNAL_TOPICS
@yes_option
@json_option
def command(**given: Any) -> None:
    """List, describe, reset and delete groups of Kafka Streams."""
    options = StreamsGroupOptions(**given)
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
    return run_on_cluster(action, options, client_id="streams-groups", timeout_ms=options.timeout_ms)


@command.command(
    "list",
    epilog=examples(
        ("All groups of Kafka Streams", "pykbroker streams-groups list"),
        ("Those whose topics are missing, for a script", "pykbroker streams-groups list --state NotReady --json"),
    ),
)
@flags.to_list()
def list_(**given: Any) -> None:
    """List streams groups with their states."""
    from .streams_group_actions import list_in_words

    _run(list_in_words, StreamsGroupOptions(**given))


@command.command(
    "describe",
    epilog=examples(
        ("Lag of every partition that the application reads", "pykbroker streams-groups describe word-count"),
        ("Who has which tasks, and is to have", "pykbroker streams-groups describe word-count --members --verbose"),
        ("The topology and all else", "pykbroker streams-groups describe word-count --json"),
    ),
)
@flags.to_describe(shown="the lag", verbose="Epochs, offsets and targets, too.")
def describe(shows_state: bool, **given: Any) -> None:
    """Show lag, members and tasks of streams groups; of all where none is named."""
    options = StreamsGroupOptions(**given, state="" if shows_state else None)
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
@flags.to_delete(_ALL_INTERNAL_TOPICS, noun="streams groups")
def delete(**given: Any) -> None:
    """Delete streams groups without members, with their committed offsets."""
    options = StreamsGroupOptions(**given)
    check_named(options, "delete")
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
@flags.to_reset(
    flags.topics_to_reset("--input-topic", "input topic", "all source topics"),
    _PLACES,
    _ALL_INTERNAL_TOPICS,
    noun="streams groups",
)
def reset_offsets(**given: Any) -> None:
    """Show where streams groups without members would go on, and move them there."""
    options = StreamsGroupOptions(**given)
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
@flags.to_delete_offsets(_INPUT_TOPIC, _ALL_INPUT_TOPICS)
def delete_offsets(group: str, **given: Any) -> None:
    """Delete the offsets that a streams group has committed."""
    options = StreamsGroupOptions(groups=(group,), **given)
    if bool(options.topics) == options.all_topics:
        raise CommandFailed("Say of which topics: --input-topic T or --all-input-topics")
    from .streams_group_offsets import delete_offsets

    _run(delete_offsets, options)
