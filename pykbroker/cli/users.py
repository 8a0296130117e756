"""`pykbroker users`: who can log in by SCRAM, in words, or with the flags and texts of `kafka-configs`.

A password need not stand on the command line, where other users of the machine see it: it is read from a file, from
standard input, or asked for at a terminal.
"""

from __future__ import annotations

from pathlib import Path

import click

from .client_flags import change_options
from .command import CommandFailed, bootstrap_options, reject
from .config_options import ConfigChanges
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .two_forms import TwoForms
from .user_options import UserOptions, change_of_flags
from .user_words import add_words


@click.group(
    "users",
    cls=TwoForms,
    like="kafka-configs",
    epilog=examples(
        ("Who can log in", "pykbroker users list"),
        ("A new user, whose password is asked for", "pykbroker users create alice"),
        ("The same by Kafka's flags", "pykbroker users --alter --user alice --add-config 'SCRAM-SHA-512=[]'"),
    ),
)
@bootstrap_options
@click.option("--describe", is_flag=True, help="Show users with their mechanisms.")
@click.option("--alter", is_flag=True, help="Set or delete a user's credentials.")
@click.option("--user", metavar="NAME", help="The user; with --describe all of them without it.")
@change_options
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="The password of mechanisms that --add-config gives none; - is standard input.",
)
@json_option
def command(
    bootstrap_server: str,
    command_config: Path | None,
    describe: bool,
    alter: bool,
    user: str | None,
    add_config: str | None,
    delete_config: str | None,
    password_file: Path | None,
    as_json: bool,
) -> None:
    """List, describe, create, alter and delete the users who log in by SCRAM.

    --add-config 'SCRAM-SHA-512=[iterations=8192]' asks for the password; so does 'SCRAM-SHA-256=[]'.
    """
    changes = ConfigChanges(add_config=add_config, delete_config=delete_config)
    changes.check(describe=describe, alter=alter)
    from . import user_actions

    if describe:
        reject({"--password-file": password_file}, "can be used with --alter only")
        names = () if user is None else (user,)
        options = UserOptions(bootstrap_server, command_config, names, as_json=as_json)
        run_on_cluster(user_actions.describe, options, client_id="users")
        return
    if not user:
        raise CommandFailed("--alter needs --user")
    change = change_of_flags(user, changes, password_file)
    options = UserOptions(bootstrap_server, command_config, (user,), change=change, as_json=as_json)
    run_on_cluster(user_actions.alter, options, client_id="users")


add_words(command)
