"""`pykbroker groups`: in words, or with the flags, texts and columns of `kafka-consumer-groups`.

What fails for a group ends with exit code 1, where Kafka's tool prints its error and ends with 0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import group_flags as flags
from .command import CommandFailed
from .common_group_options import check_named, check_reset_words
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option, print_json
from .examples import examples
from .group_options import GroupOptions, action_of, check_describe
from .printable import printable
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

T = TypeVar("T")

_TOPIC = click.option(
    "--topic", "topics", multiple=True, metavar="T[:P,P]", help="The topic, or some of its partitions."
)


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
@flags.list_and_describe("consumer groups", "offsets and lag")
@click.option("--validate-regex", metavar="REGEX", help="Say whether it is a regular expression of RE2.")
@flags.changes("groups without members", "a group")
@flags.which_groups("group", "consumer groups")
@_TOPIC
@click.option("--all-topics", is_flag=True, help="All topics that the group has offsets of.")
@flags.what_to_show("offsets and lag")
@click.option(
    "--type", "type_", is_flag=False, flag_value="", metavar="[TYPES]", help="With --list: as --state, for types."
)
@click.option("--verbose", is_flag=True, help="With --describe --members: the assignments too.")
@click.option("--lag-above", type=click.IntRange(min=0), metavar="N", help="With --describe: as with the word.")
@flags.committed_places
@click.option("--all-types", is_flag=True, help="With --list: groups of every type, as kafka-groups does.")
@click.option("--group-type", metavar="TYPE", help="With --all-types: classic, consumer, share or streams.")
@click.option("--protocol", metavar="NAME", help="With --all-types: only groups of this protocol.")
@click.option("--consumer", is_flag=True, help="With --all-types: only groups of consumers.")
@click.option("--share", is_flag=True, help="With --all-types: only share groups.")
@click.option("--streams", is_flag=True, help="With --all-types: only streams groups.")
@yes_option
@json_option
def command(**given: Any) -> None:
    """List, describe, reset and delete consumer groups."""
    options = GroupOptions(**given)
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
@flags.to_list(
    click.option("--type", "type_", metavar="TYPE,…", help="Only classic, consumer, share or streams groups.")
)
def list_(**given: Any) -> None:
    """List groups of every kind."""
    from .group_actions import list_all

    _run(list_all, GroupOptions(**given))


@command.command(
    "describe",
    epilog=examples(
        ("Offsets and lag of every partition", "pykbroker groups describe readers"),
        ("Who reads what", "pykbroker groups describe readers --members --verbose"),
        ("Exit code 1 where a group is more than 1000 records behind", "pykbroker groups describe --lag-above 1000"),
    ),
)
@flags.to_describe(
    click.option(
        "--lag-above",
        type=click.IntRange(min=0),
        metavar="N",
        help="Only groups that lag by more than N records in all; the exit code is 1 where there are any.",
    ),
    shown="offsets and lag",
    verbose="With --members: the assignments too.",
)
def describe(shows_state: bool, **given: Any) -> None:
    """Show offsets, lag and members of groups; of all consumer groups where none is named."""
    options = GroupOptions(**given, state="" if shows_state else None)
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
@flags.to_delete(noun="consumer groups")
def delete(**given: Any) -> None:
    """Delete groups without members, with their committed offsets."""
    options = GroupOptions(**given)
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
@flags.to_reset(
    flags.topics_to_reset("--topic", "topic", "all that the group has offsets of"),
    flags.committed_places,
    noun="consumer groups",
)
def reset_offsets(**given: Any) -> None:
    """Show where offsets of groups without members would be, and move them there."""
    options = GroupOptions(**given)
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
@flags.to_delete_offsets(_TOPIC)
def delete_offsets(group: str, **given: Any) -> None:
    """Delete the offsets that a group has committed in topics."""
    options = GroupOptions(groups=(group,), **given)
    if not options.topics:
        raise CommandFailed("Say of which topics: --topic T, or --topic T:0,1 for some partitions")
    from .group_deletion import delete_offsets_of_existing

    _run(delete_offsets_of_existing, options)
