"""`pykbroker quorum`: the words, flags and texts of `kafka-metadata-quorum`, and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .confirmation import yes_option
from .connect import run_on_cluster
from .controller_options import Where, controller_options
from .entries import json_option
from .examples import examples
from .two_forms import Words

CLIENT_ID = "quorum"
_dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


@click.group(
    "quorum", cls=Words, epilog=examples(("Leader, voters, and how far behind they are", "pykbroker quorum describe"))
)
@controller_options
def command(**flags: Any) -> None:
    """Describe the quorum of the controllers, and add and remove voters."""


@command.command(
    "describe",
    epilog=examples(
        ("Leader, voters, observers and how far behind they are", "pykbroker quorum describe"),
        ("As kafka-metadata-quorum prints it", "pykbroker quorum describe --status"),
        ("Asked of the controllers", "pykbroker quorum describe --bootstrap-controller localhost:9093 --json"),
    ),
)
@controller_options
@click.option("--status", is_flag=True, help="A summary, as kafka-metadata-quorum prints it.")
@click.option("--replication", is_flag=True, help="The replicas, as kafka-metadata-quorum prints them.")
@click.option("--human-readable", is_flag=True, help="With --replication: times as `12 ms ago`.")
@json_option
def describe(
    bootstrap_server: str, bootstrap_controller: str | None, command_config: Path | None, **flags: Any
) -> None:
    """Show the quorum; with exit code 1 where nobody leads it."""
    from . import quorum_actions

    options = quorum_actions.QuorumOptions(Where(bootstrap_server, bootstrap_controller, command_config), **flags)
    if run_on_cluster(quorum_actions.describe, options, client_id=CLIENT_ID):
        raise SystemExit(1)


@command.command(
    "replication", epilog=examples(("Each voter and observer, with its lag", "pykbroker quorum replication"))
)
@controller_options
@json_option
def replication(
    bootstrap_server: str, bootstrap_controller: str | None, command_config: Path | None, as_json: bool
) -> None:
    """Show each voter and observer with its lag; with exit code 1 where nobody leads."""
    from . import quorum_actions

    options = quorum_actions.QuorumOptions(
        Where(bootstrap_server, bootstrap_controller, command_config), as_json=as_json
    )
    if run_on_cluster(quorum_actions.replication, options, client_id=CLIENT_ID):
        raise SystemExit(1)


@command.command(
    "add-controller",
    epilog=examples(
        (
            "The controller whose properties these are becomes a voter",
            "pykbroker quorum add-controller --command-config controller.properties",
        ),
    ),
)
@controller_options
@_dry_run
@json_option
def add_controller(
    bootstrap_server: str, bootstrap_controller: str | None, command_config: Path | None, **flags: Any
) -> None:
    """Make the controller with the properties of --command-config a voter; run it on that controller's host."""
    from . import voter_actions

    options = voter_actions.VoterOptions(Where(bootstrap_server, bootstrap_controller, command_config), **flags)
    new = voter_actions.read_new_voter(command_config)
    run_on_cluster(lambda cluster, given: voter_actions.add(cluster, given, new), options, client_id=CLIENT_ID)


@command.command(
    "remove-controller",
    epilog=examples(
        (
            "A voter becomes an observer; quorum replication tells the directory id",
            "pykbroker quorum remove-controller -i 3 -d Kjkd1c2oRUOx6z4qmZ3yWA",
        ),
    ),
)
@controller_options
@click.option("-i", "--controller-id", required=True, type=click.IntRange(0, 2**31 - 1), metavar="ID")
@click.option("-d", "--controller-directory-id", required=True, metavar="ID", help="As `quorum replication` tells it.")
@_dry_run
@yes_option
@json_option
def remove_controller(
    bootstrap_server: str, bootstrap_controller: str | None, command_config: Path | None, **flags: Any
) -> None:
    """Make a voter an observer."""
    from . import voter_actions

    options = voter_actions.VoterOptions(Where(bootstrap_server, bootstrap_controller, command_config), **flags)
    run_on_cluster(voter_actions.remove, options, client_id=CLIENT_ID)
