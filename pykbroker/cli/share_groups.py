"""`pykbroker share-groups`: in words, or with the flags, texts and columns of `kafka-share-groups`.

What fails for a group ends with exit code 1, where Kafka's tool prints its error and ends with 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .command import CommandFailed, bootstrap_options
from .confirmation import yes_option
from .entries import json_option
from .examples import examples
from .share_group_options import ShareGroupOptions, action_of, check_reset_words
from .two_forms import TwoForms
from .typed_groups import run_on_groups

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

T = TypeVar("T")

_NAMES = click.argument("groups", nargs=-1, metavar="[GROUP …]")
_GROUP = click.argument("group", metavar="GROUP")


def _places(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say where to reset to."""
    for option in reversed(
        (
            click.option("--to-earliest", is_flag=True, help="Reset offsets to the earliest offset."),
            click.option("--to-latest", is_flag=True, help="Reset offsets to the latest offset."),
            click.option("--to-datetime", metavar="TIME", help="YYYY-MM-DDThh:mm:ss.sss, in UTC."),
            click.option("--dry-run", is_flag=True, help="Only show what would be reset."),
            click.option("--execute", is_flag=True, help="Do reset the offsets."),
        )
    ):
        function = option(function)
    return function


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
@bootstrap_options
@click.option("--list", "list_", is_flag=True, help="List all share groups.")
@click.option("--describe", is_flag=True, help="Describe groups, by default their offsets and lag.")
@click.option("--delete", is_flag=True, help="Delete groups without members.")
@click.option("--reset-offsets", is_flag=True, help="Reset offsets of a group without members.")
@click.option("--delete-offsets", is_flag=True, help="Delete offsets of a group without members.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="The share group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="Apply to all share groups.")
@click.option("--topic", "topics", multiple=True, metavar="T[:P,P]", help="The topic; to reset, or some partitions.")
@click.option("--all-topics", is_flag=True, help="With --reset-offsets: all topics of the group.")
@click.option("--offsets", is_flag=True, help="With --describe: offsets and lag (the default).")
@click.option("--members", is_flag=True, help="With --describe: the members.")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="[STATES]",
    help="With --describe: the group's state. With --list: show states, or only groups in these.",
)
@click.option("--verbose", is_flag=True, help="With --describe: epochs, too.")
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
@yes_option
@json_option
def command(**flags: Any) -> None:
    """List, describe, reset and delete share groups."""
    options = ShareGroupOptions(**flags)
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
    return run_on_groups(action, options, client_id="share-groups")


@command.command(
    "list",
    epilog=examples(
        ("All share groups", "pykbroker share-groups list"),
        ("Those that nobody is in, for a script", "pykbroker share-groups list --state empty --json"),
    ),
)
@bootstrap_options
@_NAMES
@click.option("--state", metavar="STATE,…", help="Only groups in these states: Empty, Stable, Dead.")
@json_option
def list_(**flags: Any) -> None:
    """List share groups with their states."""
    from .share_group_actions import list_in_words

    _run(list_in_words, ShareGroupOptions(**flags))


@command.command(
    "describe",
    epilog=examples(
        ("Start offsets and lag of every partition", "pykbroker share-groups describe workers"),
        ("Who reads what", "pykbroker share-groups describe workers --members"),
        ("The state of all of them, with epochs", "pykbroker share-groups describe --state --verbose"),
    ),
)
@bootstrap_options
@_NAMES
@click.option("--members", is_flag=True, help="The members, in place of offsets and lag.")
@click.option("--state", "shows_state", is_flag=True, help="The state, in place of offsets and lag.")
@click.option("--verbose", is_flag=True, help="Epochs, too.")
@json_option
def describe(shows_state: bool, **flags: Any) -> None:
    """Show offsets, lag and members of share groups; of all where none is named."""
    options = ShareGroupOptions(**flags, state="" if shows_state else None)
    from .share_group_actions import describe
    from .share_group_options import check_describe

    check_describe(options)
    _run(describe, options)


@command.command(
    "delete",
    epilog=examples(
        ("One group; at a terminal it is asked for", "pykbroker share-groups delete workers"),
        ("All of them, from a script", "pykbroker share-groups delete --all-groups --yes"),
    ),
)
@bootstrap_options
@_NAMES
@click.option("--all-groups", is_flag=True, help="All share groups, in place of names.")
@click.option("--if-exists", is_flag=True, help="A missing group is no error.")
@yes_option
@json_option
def delete(**flags: Any) -> None:
    """Delete share groups without members, with their offsets."""
    options = ShareGroupOptions(**flags)
    if bool(options.groups) == options.all_groups:
        raise CommandFailed("delete takes either names of groups or --all-groups")
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
@bootstrap_options
@_GROUP
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="T[:P,P]",
    help="The topic, or some of its partitions. Default: all that the group has offsets of.",
)
@_places
@click.option("--yes", is_flag=True, help="The same as --execute.")
@json_option
def reset_offsets(group: str, **flags: Any) -> None:
    """Show where a share group without members would begin, and move it there."""
    options = ShareGroupOptions(groups=(group,), **flags)
    check_reset_words(options)
    from .share_group_actions import reset_in_words

    _run(reset_in_words, options)


@command.command(
    "delete-offsets",
    epilog=examples(
        ("Of one topic", "pykbroker share-groups delete-offsets workers --topic orders"),
        ("Without a question", "pykbroker share-groups delete-offsets workers --topic orders --yes"),
    ),
)
@bootstrap_options
@_GROUP
@click.option("--topic", "topics", multiple=True, metavar="T", help="The topic; may be repeated.")
@yes_option
@json_option
def delete_offsets(group: str, **flags: Any) -> None:
    """Forget topics of a share group without members: it begins there anew."""
    options = ShareGroupOptions(groups=(group,), **flags)
    if not options.topics:
        raise CommandFailed("Say of which topics: --topic T")
    from .share_group_actions import delete_offsets_of_existing

    _run(delete_offsets_of_existing, options)
