"""`pykbroker share-groups`: in words, or with the flags, texts and columns of `kafka-share-groups`.

What fails for a group ends with exit code 1, where Kafka's tool prints its error and ends with 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import group_flags as flags
from .command import CommandFailed
from .common_group_options import check_describe, check_named, check_reset_word
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .share_group_options import ShareGroupOptions, action_of
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

T = TypeVar("T")


@click.group(
    "share-groups",
    cls=TwoForms,
    like="kafka-share-groups",
    epilog=examples(
        ("All share groups with their states", "pykbroker share-groups list"),
        ("Start offsets and lag of one group", "pykbroker share-groups describe workers"),
        ("The same by Kafka's flags", "pykbroker share-groups --describe --group workers"),
    ),
)
@flags.list_and_describe("share groups", "offsets and lag")
@flags.changes("a group without members", "a group without members")
@flags.which_groups("share group", "share groups")
@click.option("--topic", "topics", multiple=True, metavar="T[:P,P]", help="The topic; to reset, or some partitions.")
@click.option("--all-topics", is_flag=True, help="With --reset-offsets: all topics of the group.")
@flags.what_to_show("offsets and lag")
@click.option("--verbose", is_flag=True, help="With --describe: epochs, too.")
@flags.timeout
@flags.places
@yes_option
@json_option
def command(**given: Any) -> None:
    """List, describe, reset and delete share groups."""
    options = ShareGroupOptions(**given)
    action = action_of(options)
    from . import share_group_actions as actions

    chosen = {
        "--list": actions.list_names,
        "--describe": actions.describe,
        "--delete": actions.delete,
        "--reset-offsets": actions.reset,
        "--delete-offsets": actions.delete_offsets,
    }
    _run(chosen[action], options)


def _run(action: Callable[[Cluster, ShareGroupOptions], Awaitable[T]], options: ShareGroupOptions) -> T:
    return run_on_cluster(action, options, client_id="share-groups", timeout_ms=options.timeout_ms)


@command.command(
    "list",
    epilog=examples(
        ("All share groups", "pykbroker share-groups list"),
        ("Those that nobody is in, for a script", "pykbroker share-groups list --state empty --json"),
    ),
)
@flags.to_list(states=": Empty, Stable, Dead")
def list_(**given: Any) -> None:
    """List share groups with their states."""
    from .share_group_actions import list_in_words

    _run(list_in_words, ShareGroupOptions(**given))


@command.command(
    "describe",
    epilog=examples(
        ("Start offsets and lag of every partition", "pykbroker share-groups describe workers"),
        ("Who reads what", "pykbroker share-groups describe workers --members"),
        ("The state of all of them, with epochs", "pykbroker share-groups describe --state --verbose"),
    ),
)
@flags.to_describe(shown="offsets and lag", verbose="Epochs, too.")
def describe(shows_state: bool, **given: Any) -> None:
    """Show offsets, lag and members of share groups; of all where none is named."""
    options = ShareGroupOptions(**given, state="" if shows_state else None)
    check_describe(options)
    from .share_group_actions import describe

    _run(describe, options)


@command.command(
    "delete",
    epilog=examples(
        ("One group; at a terminal it is asked for", "pykbroker share-groups delete workers"),
        ("All of them, from a script", "pykbroker share-groups delete --all-groups --yes"),
    ),
)
@flags.to_delete(noun="share groups")
def delete(**given: Any) -> None:
    """Delete share groups without members, with their offsets."""
    options = ShareGroupOptions(**given)
    check_named(options, "delete")
    from .share_group_actions import delete_existing

    _run(delete_existing, options)


@command.command(
    "reset-offsets",
    epilog=examples(
        ("Deliver everything again", "pykbroker share-groups reset-offsets workers --to-earliest"),
        ("Skip what is there", "pykbroker share-groups reset-offsets workers --to-latest --execute"),
        (
            "What one partition would be, at a time",
            "pykbroker share-groups reset-offsets workers --topic t:0 --to-datetime 2026-11-29T10:00:00.000 --dry-run",
        ),
    ),
)
@flags.to_reset(flags.topics_to_reset("--topic", "topic", "all that the group has offsets of"), flags.places, noun=None)
def reset_offsets(group: str, **given: Any) -> None:
    """Show where a share group without members would begin, and move it there."""
    options = ShareGroupOptions(groups=(group,), **given)
    check_reset_word(options)
    from .share_group_actions import reset_in_words

    _run(reset_in_words, options)


@command.command(
    "delete-offsets",
    epilog=examples(
        ("Of one topic", "pykbroker share-groups delete-offsets workers --topic orders"),
        ("Without a question", "pykbroker share-groups delete-offsets workers --topic orders --yes"),
    ),
)
@flags.to_delete_offsets(
    click.option("--topic", "topics", multiple=True, metavar="T", help="The topic; may be repeated.")
)
def delete_offsets(group: str, **given: Any) -> None:
    """Forget topics of a share group without members: it begins there anew."""
    options = ShareGroupOptions(groups=(group,), **given)
    if not options.topics:
        raise CommandFailed("Say of which topics: --topic T")
    from .share_group_actions import delete_offsets_of_existing

    _run(delete_offsets_of_existing, options)
