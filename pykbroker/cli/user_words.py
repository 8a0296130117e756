"""The words of `pykbroker users`: list, describe, create, alter, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pykbroker.security.sasl.scram_credential import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS

from .command import bootstrap_options
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .user_options import UserOptions, change_of_word

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

_DEFAULT_MECHANISM = "SCRAM-SHA-512"
_MECHANISM = click.Choice(list(MECHANISMS), case_sensitive=False)


def add_words(group: click.Group) -> None:
    """Add the words to the group."""
    for each in (_list, _describe, _create, _alter, _delete):
        group.add_command(each)


def _run(action: Callable[[Cluster, UserOptions], Awaitable[None]], options: UserOptions) -> None:
    run_on_cluster(action, options, client_id="users")


def _password_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--password-file",
            type=click.Path(path_type=Path, allow_dash=True),
            metavar="FILE",
            help="The password, in one line; - is standard input. Without it a terminal asks.",
        ),
        click.option(
            "--iterations", type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS), metavar="N", help="Of hashing."
        ),
        click.option(
            "--mechanism",
            "mechanisms",
            type=_MECHANISM,
            multiple=True,
            default=[_DEFAULT_MECHANISM],
            show_default=True,
            help="May be repeated.",
        ),
    ):
        function = option(function)
    return function


@click.command(
    "list",
    epilog=examples(
        ("Who can log in, and how", "pykbroker users list"), ("For a program", "pykbroker users list --json")
    ),
)
@bootstrap_options
@json_option
def _list(**flags: Any) -> None:
    """List users with their mechanisms."""
    from .user_actions import list_all

    _run(list_all, UserOptions(**flags))


@click.command(
    "describe",
    epilog=examples(
        ("One user", "pykbroker users describe alice"), ("For a program", "pykbroker users describe alice bob --json")
    ),
)
@bootstrap_options
@click.argument("names", nargs=-1, required=True, metavar="USER …")
@json_option
def _describe(**flags: Any) -> None:
    """Show the mechanisms of users."""
    from .user_actions import list_all

    _run(list_all, UserOptions(**flags))


@click.command(
    "create",
    epilog=examples(
        ("At a terminal the password is asked for", "pykbroker users create alice"),
        ("In a script", "pykbroker users create alice --password-file secret.txt"),
        ("For old clients", "pykbroker users create alice --mechanism SCRAM-SHA-256 --iterations 8192"),
    ),
)
@bootstrap_options
@click.argument("name", metavar="USER")
@_password_options
@json_option
def _create(**flags: Any) -> None:
    """Create a user with a password."""
    options = _with_password(**flags)
    from .user_actions import create

    _run(create, options)


@click.command(
    "alter",
    epilog=examples(
        ("A new password, which is asked for", "pykbroker users alter alice"),
        (
            "A new one for both mechanisms",
            "pykbroker users alter alice --mechanism SCRAM-SHA-256 --mechanism SCRAM-SHA-512",
        ),
    ),
)
@bootstrap_options
@click.argument("name", metavar="USER")
@_password_options
@json_option
def _alter(**flags: Any) -> None:
    """Set a new password of a user."""
    options = _with_password(**flags)
    from .user_actions import set_password

    _run(set_password, options)


def _with_password(
    bootstrap_server: str,
    command_config: Path | None,
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int | None,
    password_file: Path | None,
    as_json: bool,
) -> UserOptions:
    change = change_of_word(name, mechanisms, iterations, password_file)
    return UserOptions(bootstrap_server, command_config, (name,), change, as_json=as_json)


@click.command(
    "delete",
    epilog=examples(
        ("At a terminal it is asked for", "pykbroker users delete alice"),
        ("One mechanism alone", "pykbroker users delete alice --mechanism SCRAM-SHA-256 --yes"),
    ),
)
@bootstrap_options
@click.argument("names", nargs=-1, required=True, metavar="USER …")
@click.option("--mechanism", "mechanisms", type=_MECHANISM, multiple=True, help="Only this one; may be repeated.")
@click.option("--if-exists", is_flag=True, help="A missing user is no error.")
@yes_option
@json_option
def _delete(**flags: Any) -> None:
    """Delete the passwords of users, who can then no longer log in by them."""
    from .user_actions import delete

    _run(delete, UserOptions(**flags))
