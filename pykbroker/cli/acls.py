"""`pykbroker acls`: the flags and texts of `kafka-acls`."""

from __future__ import annotations

from typing import Any

import click

from . import acl_actions
from .acl_options import OPERATIONS, AclOptions, action_of
from .command import ClientCommand, bootstrap_options
from .connect import run_on_cluster

_ACTIONS = {"--list": acl_actions.list_all, "--add": acl_actions.add, "--remove": acl_actions.remove}


@click.command("acls", cls=ClientCommand)
@bootstrap_options
@click.option("--add", is_flag=True, help="Add ACLs.")
@click.option("--remove", is_flag=True, help="Remove ACLs; without a principal all those of the resources.")
@click.option("--list", "list_", is_flag=True, help="List the ACLs of the resources, or all.")
@click.option(
    "--operation", "operations", multiple=True, metavar="NAME", help=f"{', '.join(OPERATIONS)}. Default: All."
)
@click.option("--allow-principal", "allow_principals", multiple=True, metavar="TYPE:NAME", help="User:alice; User:*.")
@click.option(
    "--deny-principal", "deny_principals", multiple=True, metavar="TYPE:NAME", help="Denied, whatever allows."
)
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="ADDRESS", help="Default: *, from everywhere.")
@click.option("--deny-host", "deny_hosts", multiple=True, metavar="ADDRESS", help="Default: *, from everywhere.")
@click.option("--principal", "principals", multiple=True, metavar="TYPE:NAME", help="With --list: only their ACLs.")
@click.option("--producer", is_flag=True, help="What a producer needs: WRITE, DESCRIBE, CREATE of its topics.")
@click.option("--consumer", is_flag=True, help="What a consumer needs: READ, DESCRIBE of topics, READ of its group.")
@click.option("--idempotent", is_flag=True, help="With --producer: IDEMPOTENT_WRITE of the cluster, too.")
@click.option("--cluster", is_flag=True, help="The cluster as the resource.")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Topics; * is all of them.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Consumer groups; * is all of them.")
@click.option("--transactional-id", "transactional_ids", multiple=True, metavar="ID", help="* is all of them.")
@click.option("--delegation-token", "delegation_tokens", multiple=True, metavar="ID", help="* is all of them.")
@click.option(
    "--user-principal", "user_principals", multiple=True, metavar="TYPE:NAME", help="Whose tokens are made or seen."
)
@click.option(
    "--resource-pattern-type",
    default="literal",
    show_default=True,
    metavar="TYPE",
    help="literal, prefixed; with --list and --remove also any and match.",
)
@click.option("--force", is_flag=True, help="Remove without asking.")
def command(**flags: Any) -> None:
    """Add, remove and list ACLs: who may do what."""
    options = AclOptions(**flags)
    run_on_cluster(_ACTIONS[action_of(options)], options, client_id="acls")
