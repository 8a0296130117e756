"""`pykbroker tokens`: the flags and texts of `kafka-delegation-tokens`."""

from __future__ import annotations

from typing import Any

import click

from . import token_actions
from .command import ClientCommand, bootstrap_options
from .connect import run_on_cluster
from .token_actions import TokenOptions, action_of

_ACTIONS = {
    "--create": token_actions.create,
    "--renew": token_actions.renew,
    "--expire": token_actions.expire,
    "--describe": token_actions.describe,
}


@click.command("tokens", cls=ClientCommand)
@bootstrap_options
@click.option("--create", is_flag=True, help="Create a delegation token, and print its HMAC: keep it secret.")
@click.option("--renew", is_flag=True, help="Let a token expire later, within its life time.")
@click.option("--expire", is_flag=True, help="Let a token expire earlier, or at once.")
@click.option("--describe", is_flag=True, help="Show the tokens that the user may see.")
@click.option("--owner-principal", "owner_principals", multiple=True, metavar="TYPE:NAME", help="Whose the token is.")
@click.option(
    "--renewer-principal", "renewer_principals", multiple=True, metavar="TYPE:NAME", help="Who may renew it besides."
)
@click.option("--max-life-time-period", type=int, metavar="MS", help="With --create; -1 is the cluster's longest.")
@click.option("--renew-time-period", type=int, metavar="MS", help="With --renew; -1 is the cluster's.")
@click.option("--expiry-time-period", type=int, metavar="MS", help="With --expire; -1 is at once.")
@click.option("--hmac", metavar="TEXT", help="The token, as --create has printed it.")
def command(**flags: Any) -> None:
    """Create, renew, expire and describe delegation tokens."""
    options = TokenOptions(**flags)
    run_on_cluster(_ACTIONS[action_of(options)], options, client_id="tokens")
