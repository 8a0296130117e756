"""`pykbroker groups`: in words, or with the flags, texts and columns of `kafka-consumer-groups`.

What fails for a group ends with exit code 1, where Kafka's tool prints its error and ends with 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .command import CommandFailed, bootstrap_options
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option, print_json
from .examples import examples
from .group_options import GroupOptions, action_of, check_describe, check_named, check_reset_words
from .printable import printable
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

T = TypeVar("T")

_NAMES = click.argument("groups", nargs=-1, metavar="[GROUP …]")
_TOPIC = click.option(
    "--topic", "topics", multiple=True, metavar="T[:P,P]", help="The topic, or some of its partitions."
)
_ALL_GROUPS = click.option("--all-groups", is_flag=True, help="All consumer groups, in place of names.")


def _places(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say where to reset to."""
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
        )
    ):
        function = option(function)
    return function


@click.group(
    "groups",
    cls=TwoForms,
    like="kafka-consumer-groups",
    epilog=examples(
        ("All groups with their states", "pykbroker groups list"),
        ("Lag of one group", "pykbroker groups describe readers"),
        ("The same by Kafka's flags", "pykbroker groups --describe --group readers"),
    ),
)
@bootstrap_options
@click.option("--list", "list_", is_flag=True, help="List all consumer groups.")
@click.option("--describe", is_flag=True, help="Describe groups, by default their offsets and lag.")
@click.option("--validate-regex", metavar="REGEX", help="Say whether it is a regular expression of RE2.")
@click.option("--delete", is_flag=True, help="Delete groups without members.")
@click.option("--reset-offsets", is_flag=True, help="Reset offsets of groups without members.")
@click.option("--delete-offsets", is_flag=True, help="Delete offsets of a group.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="The group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="Apply to all consumer groups.")
@_TOPIC
@click.option("--all-topics", is_flag=True, help="All topics that the group has offsets of.")
@click.option("--offsets", is_flag=True, help="With --describe: offsets and lag (the default).")
@click.option("--members", is_flag=True, help="With --describe: the members.")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="[STATES]",
    help="With --describe: the group's state. With --list: show states, or only groups in these.",
)
@click.option(
    "--type", "type_", is_flag=False, flag_value="", metavar="[TYPES]", help="With --list: as --state, for types."
)
@click.option("--verbose", is_flag=True, help="With --describe --members: the assignments too.")
@click.option("--lag-above", type=click.IntRange(min=0), metavar="N", help="With --describe: as with the word.")
@_places
@click.option("--all-types", is_flag=True, help="With --list: groups of every type, as kafka-groups does.")
@click.option("--group-type", metavar="TYPE", help="With --all-types: classic, consumer, share or streams.")
@click.option("--protocol", metavar="NAME", help="With --all-types: only groups of this protocol.")
@click.option("--consumer", is_flag=True, help="With --all-types: only groups of consumers.")
@click.option("--share", is_flag=True, help="With --all-types: only share groups.")
@click.option("--streams", is_flag=True, help="With --all-types: only streams groups.")
@yes_option
@json_option
def command(**flags: Any) -> None:
    """List, describe, reset and delete consumer groups."""
    options = GroupOptions(**flags)
    action = action_of(options)
    if action == "--validate-regex":
        if not print_validity(options.validate_regex or "", as_json=options.as_json):
            raise SystemExit(1)
        return
    from . import group_actions, group_deletion, group_reset

    if action == "--describe":
        _describe(options)
        return
    actions = {
        "--list": group_actions.list_as_kafka_groups if options.all_types else group_actions.list_names,
        "--delete": group_deletion.delete,
        "--reset-offsets": group_reset.reset,
        "--delete-offsets": group_deletion.delete_some_offsets,
    }
    _run(actions[action], options)


def print_validity(expression: str, *, as_json: bool) -> bool:
    """Say whether a subscription's regular expression is one of RE2, as brokers read it, and return that."""
    from pykbroker.groups.consumer.regular_expressions import LONGEST, MOST_PROGRAM_BYTES
    from pykbroker.linear_expressions import full_match

    error = None
    try:
        full_match(expression, longest=LONGEST, most_program_bytes=MOST_PROGRAM_BYTES)
    except ValueError as invalid:
        error = str(invalid)
    if as_json:
        print_json([{"regex": expression, "valid": error is None, "error": error}])
    elif error is None:
        click.echo(f"The regular expression `{printable(expression)}` is valid.")
    else:
        click.echo(f"The regular expression `{printable(expression)}` is invalid: {printable(error)}.")
    return error is None


def _run(action: Callable[[Cluster, GroupOptions], Awaitable[T]], options: GroupOptions) -> T:
    return run_on_cluster(action, options, client_id="consumer-groups")


@command.command(
    "list",
    epilog=examples(
        ("Groups of every kind", "pykbroker groups list"),
        ("Groups without members, for a script", "pykbroker groups list --state empty --json"),
        ("Groups of the new protocol", "pykbroker groups list --type consumer"),
    ),
)
@bootstrap_options
@_NAMES
@click.option("--state", metavar="STATE,…", help="Only groups in these states.")
@click.option("--type", "type_", metavar="TYPE,…", help="Only classic, consumer, share or streams groups.")
@json_option
def list_(**flags: Any) -> None:
    """List groups of every kind."""
    from .group_actions import list_all

    _run(list_all, GroupOptions(**flags))


@command.command(
    "describe",
    epilog=examples(
        ("Offsets and lag of every partition", "pykbroker groups describe readers"),
        ("Who reads what", "pykbroker groups describe readers --members --verbose"),
        ("Exit code 1 where a group is more than 1000 records behind", "pykbroker groups describe --lag-above 1000"),
    ),
)
@bootstrap_options
@_NAMES
@click.option("--members", is_flag=True, help="The members, in place of offsets and lag.")
@click.option("--state", "shows_state", is_flag=True, help="The state, in place of offsets and lag.")
@click.option("--verbose", is_flag=True, help="With --members: the assignments too.")
@click.option(
    "--lag-above",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only groups that lag by more than N records in all; the exit code is 1 where there are any.",
)
@json_option
def describe(shows_state: bool, **flags: Any) -> None:
    """Show offsets, lag and members of groups; of all consumer groups where none is named."""
    options = GroupOptions(**flags, state="" if shows_state else None)
    check_describe(options)
    _describe(options)


def _describe(options: GroupOptions) -> None:
    from .group_actions import describe

    if _run(describe, options) and options.lag_above is not None:
        raise SystemExit(1)


@command.command(
    "delete",
    epilog=examples(
        ("One group; at a terminal it is asked for", "pykbroker groups delete readers"),
        ("All of them, from a script", "pykbroker groups delete --all-groups --yes"),
    ),
)
@bootstrap_options
@_NAMES
@_ALL_GROUPS
@click.option("--if-exists", is_flag=True, help="A missing group is no error.")
@yes_option
@json_option
def delete(**flags: Any) -> None:
    """Delete groups without members, with their committed offsets."""
    options = GroupOptions(**flags)
    check_named(options, "delete")
    from .group_deletion import delete_existing

    _run(delete_existing, options)


@command.command(
    "reset-offsets",
    epilog=examples(
        ("Read everything again", "pykbroker groups reset-offsets readers --to-earliest"),
        ("What an hour back would be", "pykbroker groups reset-offsets readers --by-duration PT1H --dry-run"),
        (
            "Two partitions, from a script",
            "pykbroker groups reset-offsets readers --topic t:0,1 --to-offset 5 --execute",
        ),
    ),
)
@bootstrap_options
@_NAMES
@_ALL_GROUPS
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
def reset_offsets(**flags: Any) -> None:
    """Show where offsets of groups without members would be, and move them there."""
    options = GroupOptions(**flags)
    check_reset_words(options)
    from .group_reset import reset_in_words

    _run(reset_in_words, options)


@command.command(
    "delete-offsets",
    epilog=examples(
        ("Of one topic", "pykbroker groups delete-offsets readers --topic orders"),
        ("Of two partitions, without a question", "pykbroker groups delete-offsets readers --topic orders:0,1 --yes"),
    ),
)
@bootstrap_options
@click.argument("group", metavar="GROUP")
@_TOPIC
@yes_option
@json_option
def delete_offsets(group: str, **flags: Any) -> None:
    """Delete the offsets that a group has committed in topics."""
    options = GroupOptions(groups=(group,), **flags)
    if not options.topics:
        raise CommandFailed("Say of which topics: --topic T, or --topic T:0,1 for some partitions")
    from .group_deletion import delete_offsets_of_existing

    _run(delete_offsets_of_existing, options)
