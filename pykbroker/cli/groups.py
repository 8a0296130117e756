"""`pykbroker groups`: the flags, texts and columns of `kafka-consumer-groups`.

What fails for a group ends with exit code 1, where Kafka's tool prints its error and ends with 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import group_actions
from .command import ClientCommand, bootstrap_options
from .connect import run_on_cluster
from .group_options import GroupOptions, action_of

_ACTIONS = {
    "--list": group_actions.list_all,
    "--describe": group_actions.describe,
    "--delete": group_actions.delete,
    "--reset-offsets": group_actions.reset,
    "--delete-offsets": group_actions.delete_some_offsets,
}


@click.command("groups", cls=ClientCommand)
@bootstrap_options
@click.option("--list", "list_", is_flag=True, help="List all consumer groups.")
@click.option("--describe", is_flag=True, help="Describe groups, by default their offsets and lag.")
@click.option("--delete", is_flag=True, help="Delete groups without members.")
@click.option("--reset-offsets", is_flag=True, help="Reset offsets of groups without members.")
@click.option("--delete-offsets", is_flag=True, help="Delete offsets of a group.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="The group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="Apply to all consumer groups.")
@click.option("--topic", "topics", multiple=True, metavar="T[:P,P]", help="The topic, or some of its partitions.")
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
@click.option("--to-earliest", is_flag=True, help="Reset offsets to the earliest offset.")
@click.option("--to-latest", is_flag=True, help="Reset offsets to the latest offset.")
@click.option("--to-current", is_flag=True, help="Reset offsets to the current offset.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="Reset offsets to a specific offset.")
@click.option("--shift-by", type=int, metavar="N", help="Move offsets by N, forward or back.")
@click.option("--to-datetime", metavar="TIME", help="YYYY-MM-DDThh:mm:ss.sss, in UTC.")
@click.option("--by-duration", metavar="DURATION", help="PnDTnHnMnS before now.")
@click.option("--from-file", type=click.Path(path_type=Path), metavar="FILE", help="Offsets from a CSV file.")
@click.option("--dry-run", is_flag=True, help="Only show what would be reset (the default).")
@click.option("--execute", is_flag=True, help="Do reset the offsets.")
@click.option("--export", is_flag=True, help="Show the plan as CSV, for --from-file.")
def command(**flags: Any) -> None:
    """List, describe, reset and delete consumer groups."""
    options = GroupOptions(**flags)
    run_on_cluster(_ACTIONS[action_of(options)], options, client_id="consumer-groups")
