"""`pykbroker tokens`: in words, or with the flags and texts of `kafka-delegation-tokens`.

In words a token is named by its id. Its HMAC is a secret, which is printed when it is made; Kafka's `--describe`
prints it again, and so does the flag here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from .command import bootstrap_options
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .token_options import TokenOptions, action_of, check_principals, check_token
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

_OWNERS = click.option(
    "--owner-principal", "owner_principals", multiple=True, metavar="TYPE:NAME", help="Whose the token is."
)
_RENEWERS = click.option(
    "--renewer-principal", "renewer_principals", multiple=True, metavar="TYPE:NAME", help="Who may renew it besides."
)
_HMAC = click.option("--hmac", metavar="TEXT", help="The token's HMAC, as it was printed when the token was made.")
_TOKEN = click.argument("token_id", required=False, metavar="TOKEN-ID")


@click.group(
    "tokens",
    cls=TwoForms,
    like="kafka-delegation-tokens",
    epilog=examples(
        ("The tokens that the user may see", "pykbroker tokens list"),
        ("A new one", "pykbroker tokens create --renewer-principal User:scheduler"),
        ("The same by Kafka's flags", "pykbroker tokens --create --max-life-time-period -1"),
    ),
)
@bootstrap_options
@click.option("--create", is_flag=True, help="Create a delegation token, and print its HMAC: keep it secret.")
@click.option("--renew", is_flag=True, help="Let a token expire later, within its life time.")
@click.option("--expire", is_flag=True, help="Let a token expire earlier, or at once.")
@click.option("--describe", is_flag=True, help="Show the tokens that the user may see.")
@_OWNERS
@_RENEWERS
@click.option("--max-life-time-period", type=int, metavar="MS", help="With --create; -1 is the cluster's longest.")
@click.option("--renew-time-period", type=int, metavar="MS", help="With --renew; -1 is the cluster's.")
@click.option("--expiry-time-period", type=int, metavar="MS", help="With --expire; -1 is at once.")
@_HMAC
@json_option
def command(**flags: Any) -> None:
    """List, create, renew and expire delegation tokens."""
    options = TokenOptions(**flags)
    action = action_of(options)
    from . import token_actions

    actions = {
        "--create": token_actions.create,
        "--renew": token_actions.renew,
        "--expire": token_actions.expire,
        "--describe": token_actions.describe,
    }
    _run(actions[action], options)


def _run(action: Callable[[Cluster, TokenOptions], Awaitable[None]], options: TokenOptions) -> None:
    run_on_cluster(action, options, client_id="tokens")


@command.command(
    "list",
    epilog=examples(
        ("All that the user may see", "pykbroker tokens list"),
        ("Those of one owner, for a program", "pykbroker tokens list --owner-principal User:alice --json"),
    ),
)
@bootstrap_options
@_OWNERS
@json_option
def list_(**flags: Any) -> None:
    """List delegation tokens, without their HMACs."""
    options = TokenOptions(**flags)
    check_principals(options, one_owner=False)
    from .token_actions import list_all

    _run(list_all, options)


@command.command(
    "create",
    epilog=examples(
        ("One for the user who asks", "pykbroker tokens create"),
        ("One for a day, for a program", "pykbroker tokens create --max-life-time-period 86400000 --json"),
    ),
)
@bootstrap_options
@_OWNERS
@_RENEWERS
@click.option("--max-life-time-period", type=int, metavar="MS", help="Default: the cluster's longest.")
@json_option
def create(**flags: Any) -> None:
    """Create a delegation token, and print its HMAC: keep it secret, it is not shown again."""
    options = TokenOptions(**flags)
    check_principals(options, one_owner=True)
    from .token_actions import create

    _run(create, options)


@command.command(
    "renew",
    epilog=examples(
        ("For as long as the cluster allows", "pykbroker tokens renew 4uBYw5yXTvmUTeWJwQDhFQ"),
        ("For an hour", "pykbroker tokens renew 4uBYw5yXTvmUTeWJwQDhFQ --renew-time-period 3600000"),
    ),
)
@bootstrap_options
@_TOKEN
@_HMAC
@click.option("--renew-time-period", type=int, metavar="MS", help="Default: the cluster's.")
@json_option
def renew(**flags: Any) -> None:
    """Let a delegation token expire later, within its life time."""
    options = TokenOptions(**flags)
    check_token(options)
    from .token_actions import renew

    _run(renew, options)


@command.command(
    "expire",
    epilog=examples(
        ("At once", "pykbroker tokens expire 4uBYw5yXTvmUTeWJwQDhFQ"),
        ("In a minute", "pykbroker tokens expire 4uBYw5yXTvmUTeWJwQDhFQ --expiry-time-period 60000 --yes"),
    ),
)
@bootstrap_options
@_TOKEN
@_HMAC
@click.option("--expiry-time-period", type=int, metavar="MS", help="Default: at once.")
@yes_option
@json_option
def expire(**flags: Any) -> None:
    """Let a delegation token expire earlier, or at once."""
    options = TokenOptions(**flags)
    check_token(options)
    from .token_actions import expire

    _run(expire, options)
