"""Arguments and options that `pykbroker groups`, `share-groups` and `streams-groups` share, as decorators.

Those of Kafka's flags are pieces, between which a command has its own; of each word there is one that takes the
word's own, `own`, in the order in which the help shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from .command import bootstrap_options
from .confirmation import yes_option
from .entries import json_option

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def together(*options: Decorator) -> Decorator:
    """Return one decorator for several, which the help shows in this order."""

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


# ---- where to reset to

_EARLIEST_AND_LATEST: Final = together(
    click.option("--to-earliest", is_flag=True, help="Reset offsets to the earliest offset."),
    click.option("--to-latest", is_flag=True, help="Reset offsets to the latest offset."),
)
_DATETIME: Final = click.option("--to-datetime", metavar="TIME", help="YYYY-MM-DDThh:mm:ss.sss, in UTC.")
_WILLS: Final = together(
    click.option("--dry-run", is_flag=True, help="Only show what would be reset."),
    click.option("--execute", is_flag=True, help="Do reset the offsets."),
)

places: Final = together(_EARLIEST_AND_LATEST, _DATETIME, _WILLS)
"""Options that say where to reset to."""

committed_places: Final = together(
    _EARLIEST_AND_LATEST,
    click.option("--to-current", is_flag=True, help="Reset offsets to the current offset."),
    click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="Reset offsets to this one."),
    click.option("--shift-by", type=int, metavar="N", help="Move offsets by N, forward or back."),
    _DATETIME,
    click.option("--by-duration", metavar="DURATION", help="PnDTnHnMnS before now."),
    click.option("--from-file", type=click.Path(path_type=Path), metavar="FILE", help="Offsets from CSV."),
    _WILLS,
    click.option("--export", is_flag=True, help="Show the plan as CSV, for --from-file."),
)
"""Options that say where to reset offsets to that groups have committed."""


# ---- Kafka's flags


def list_and_describe(noun: str, shown: str) -> Decorator:
    """`--list` and `--describe`. noun: `share groups`; shown: `offsets and lag`."""
    return together(
        bootstrap_options,
        click.option("--list", "list_", is_flag=True, help=f"List all {noun}."),
        click.option("--describe", is_flag=True, help=f"Describe groups, by default their {shown}."),
    )


def changes(reset_of: str, offsets_of: str) -> Decorator:
    """The actions that change something. reset_of, offsets_of: the groups that the last two are for."""
    return together(
        click.option("--delete", is_flag=True, help="Delete groups without members."),
        click.option("--reset-offsets", is_flag=True, help=f"Reset offsets of {reset_of}."),
        click.option("--delete-offsets", is_flag=True, help=f"Delete offsets of {offsets_of}."),
    )


def which_groups(kind: str, noun: str) -> Decorator:
    """`--group` and `--all-groups`. kind: `share group`; noun: `share groups`."""
    return together(
        click.option("--group", "groups", multiple=True, metavar="NAME", help=f"The {kind}; may be repeated."),
        click.option("--all-groups", is_flag=True, help=f"Apply to all {noun}."),
    )


def what_to_show(shown: str) -> Decorator:
    """The options of `--describe`. shown: `offsets and lag`."""
    return together(
        click.option("--offsets", is_flag=True, help=f"With --describe: {shown} (the default)."),
        click.option("--members", is_flag=True, help="With --describe: the members."),
        click.option(
            "--state",
            is_flag=False,
            flag_value="",
            metavar="[STATES]",
            help="With --describe: the group's state. With --list: show states, or only groups in these.",
        ),
    )


timeout: Final = click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(1, 2**31 - 1),
    metavar="MS",
    default=30_000,
    show_default=True,
    help="How long to try each request.",
)


# ---- words

_NAMES: Final = click.argument("groups", nargs=-1, metavar="[GROUP …]")
_GROUP: Final = click.argument("group", metavar="GROUP")


def _all_groups(noun: str) -> Decorator:
    return click.option("--all-groups", is_flag=True, help=f"All {noun}, in place of names.")


def to_list(*own: Decorator, states: str = "") -> Decorator:
    """The options of the word `list`. states: a list of them to end the help of `--state` with."""
    state = click.option("--state", metavar="STATE,…", help=f"Only groups in these states{states}.")
    return together(bootstrap_options, _NAMES, state, *own, json_option)


def to_describe(*own: Decorator, shown: str, verbose: str) -> Decorator:
    """The options of the word `describe`. shown: `offsets and lag`; verbose: a help of `--verbose`."""
    return together(
        bootstrap_options,
        _NAMES,
        click.option("--members", is_flag=True, help=f"The members, in place of {shown}."),
        click.option("--state", "shows_state", is_flag=True, help=f"The state, in place of {shown}."),
        click.option("--verbose", is_flag=True, help=verbose),
        *own,
        json_option,
    )


def to_delete(*own: Decorator, noun: str) -> Decorator:
    """The options of the word `delete`. noun: `share groups`."""
    if_exists = click.option("--if-exists", is_flag=True, help="A missing group is no error.")
    return together(bootstrap_options, _NAMES, _all_groups(noun), *own, if_exists, yes_option, json_option)


def to_reset(*own: Decorator, noun: str | None) -> Decorator:
    """The options of the word `reset-offsets`. noun: `streams groups`; None where it takes one group at a time."""
    groups = [_GROUP] if noun is None else [_NAMES, _all_groups(noun)]
    yes = click.option("--yes", is_flag=True, help="The same as --execute.")
    return together(bootstrap_options, *groups, *own, yes, json_option)


def to_delete_offsets(*own: Decorator) -> Decorator:
    """The options of the word `delete-offsets`."""
    return together(bootstrap_options, _GROUP, *own, yes_option, json_option)


def topics_to_reset(flag: str, noun: str, default: str) -> Decorator:
    """The topics of the word `reset-offsets`. flag: `--input-topic`; noun: `input topic`; default: those of none."""
    return click.option(
        flag,
        "topics",
        multiple=True,
        metavar="T[:P,P]",
        help=f"The {noun}, or some of its partitions. Default: {default}.",
    )
