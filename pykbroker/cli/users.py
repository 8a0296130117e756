"""`pykbroker users`: who can log in by SCRAM, with the flags and texts of `kafka-configs`.

A password need not stand on the command line, where other users of the machine see it: it is read from a file, from
standard input, or asked for at a terminal.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from pykbroker.client.cluster import Cluster
from pykbroker.quotas.entities import USER
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .client_entities import ClientChange, ClientEntity, change_of, make, print_scram_users
from .client_flags import change_options
from .command import ClientCommand, CommandFailed, bootstrap_options, reject
from .config_options import ConfigChanges
from .connect import run_on_cluster
from .scram_password import has_password, with_password

_MOST_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class _Users:
    bootstrap_server: str
    command_config: Path | None
    user: str | None
    change: ClientChange | None


@click.command("users", cls=ClientCommand)
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
def command(
    bootstrap_server: str,
    command_config: Path | None,
    describe: bool,
    alter: bool,
    user: str | None,
    add_config: str | None,
    delete_config: str | None,
    password_file: Path | None,
) -> None:
    """Describe and alter the users who log in by SCRAM.

    --add-config 'SCRAM-SHA-512=[iterations=8192]' asks for the password; so does 'SCRAM-SHA-256=[]'.
    """
    changes = ConfigChanges(add_config=add_config, add_config_file=None, delete_config=delete_config)
    changes.check(describe=describe, alter=alter)
    if describe:
        reject({"--password-file": password_file}, "can be used with --alter only")
    change = None
    if alter:
        if not user:
            raise CommandFailed("--alter needs --user")
        change = _change(user, changes, password_file)
    run_on_cluster(
        _describe if describe else _alter, _Users(bootstrap_server, command_config, user, change), client_id="users"
    )


async def _describe(cluster: Cluster, options: _Users) -> None:
    await print_scram_users(cluster, options.user)


async def _alter(cluster: Cluster, options: _Users) -> None:
    assert options.change is not None
    await make(cluster, options.change)
    click.echo(f"Completed updating {options.change.entity}.")


def _change(user: str, changes: ConfigChanges, password_file: Path | None) -> ClientChange:
    to_set = changes.to_set()
    foreign = [key for key in (*to_set, *changes.to_delete()) if key not in MECHANISMS]
    if foreign:
        raise CommandFailed(f"'{foreign[0][:40]}' is no mechanism of SCRAM; {', '.join(MECHANISMS)} are")
    if not all(map(has_password, to_set.values())):
        password = _password(user, password_file)
        to_set = {key: with_password(value, password) for key, value in to_set.items()}
    elif password_file is not None:
        raise CommandFailed("--password-file is for mechanisms that --add-config gives no password")
    return change_of(ClientEntity({USER: user}), to_set, changes.to_delete())


def _password(user: str, file: Path | None) -> str:
    """The one line of the file, or of standard input; or what is typed twice. Raises CommandFailed."""
    if file is None:
        if not sys.stdin.isatty():
            raise CommandFailed("A password is missing: give --password-file, or - for standard input")
        password: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True)
        return password
    try:
        text = sys.stdin.read(_MOST_CHARACTERS + 2) if str(file) == "-" else _read(file)
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandFailed("The password is no text in UTF-8") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if not password or "\n" in password or len(password) > _MOST_CHARACTERS:
        raise CommandFailed(f"The password must be one line of 1 to {_MOST_CHARACTERS} characters")
    return password


def _read(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return lines.read(_MOST_CHARACTERS + 2)
