"""`pykbroker acls`: in words, or with the flags and texts of `kafka-acls`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from .acl_options import OPERATIONS, AclOptions, action_of, check
from .command import CommandFailed, bootstrap_options
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

Decorated = Callable[..., None]

_PRINCIPALS = click.option(
    "--principal", "principals", multiple=True, metavar="TYPE:NAME", help="Only the ACLs of these; with --list."
)
_FORCE = click.option("--force", "--yes", "force", is_flag=True, help="Remove without asking.")


def _all_of(*options: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    def decorate(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_resources = _all_of(
    click.option("--cluster", is_flag=True, help="The cluster as the resource."),
    click.option("--topic", "topics", multiple=True, metavar="NAME", help="Topics; * is all of them."),
    click.option("--group", "groups", multiple=True, metavar="NAME", help="Consumer groups; * is all of them."),
    click.option("--transactional-id", "transactional_ids", multiple=True, metavar="ID", help="* is all of them."),
    click.option("--delegation-token", "delegation_tokens", multiple=True, metavar="ID", help="* is all of them."),
    click.option(
        "--user-principal", "user_principals", multiple=True, metavar="TYPE:NAME", help="Whose tokens are made or seen."
    ),
    click.option(
        "--resource-pattern-type",
        default="literal",
        show_default=True,
        metavar="TYPE",
        help="literal, prefixed; to list and to remove also any and match.",
    ),
)
_entries = _all_of(
    click.option(
        "--operation", "operations", multiple=True, metavar="NAME", help=f"{', '.join(OPERATIONS)}. Default: All."
    ),
    click.option("--allow-principal", "allow_principals", multiple=True, metavar="TYPE:NAME", help="User:alice."),
    click.option(
        "--deny-principal", "deny_principals", multiple=True, metavar="TYPE:NAME", help="Denied, whatever allows."
    ),
    click.option("--allow-host", "allow_hosts", multiple=True, metavar="ADDRESS", help="Default: *, from everywhere."),
    click.option("--deny-host", "deny_hosts", multiple=True, metavar="ADDRESS", help="Default: *, from everywhere."),
    click.option("--producer", is_flag=True, help="What a producer needs: WRITE, DESCRIBE, CREATE of its topics."),
    click.option("--consumer", is_flag=True, help="What a consumer needs: READ, DESCRIBE of topics, READ of a group."),
    click.option("--idempotent", is_flag=True, help="With --producer: IDEMPOTENT_WRITE of the cluster, too."),
)


@click.group(
    "acls",
    cls=TwoForms,
    like="kafka-acls",
    epilog=examples(
        ("Who may do what", "pykbroker acls list"),
        ("Let alice write", "pykbroker acls add --allow-principal User:alice --producer --topic orders"),
        ("The same by Kafka's flags", "pykbroker acls --add --allow-principal User:alice --producer --topic orders"),
    ),
)
@bootstrap_options
@click.option("--add", is_flag=True, help="Add ACLs.")
@click.option("--remove", is_flag=True, help="Remove ACLs; without a principal all those of the resources.")
@click.option("--list", "list_", is_flag=True, help="List the ACLs of the resources, or all.")
@_entries
@_PRINCIPALS
@_resources
@_FORCE
@json_option
def command(**flags: Any) -> None:
    """Add, remove and list ACLs: who may do what."""
    options = AclOptions(**flags)
    action = action_of(options)
    from . import acl_actions

    actions = {"--list": acl_actions.list_all, "--add": acl_actions.add, "--remove": acl_actions.remove}
    _run(actions[action], options)


def _run(action: Callable[[Cluster, AclOptions], Awaitable[None]], options: AclOptions) -> None:
    run_on_cluster(_saying_what_to_set(action), options, client_id="acls")


def _saying_what_to_set(
    action: Callable[[Cluster, AclOptions], Awaitable[None]],
) -> Callable[[Cluster, AclOptions], Awaitable[None]]:
    """Do an action, and say what a broker without ACLs lacks."""

    async def act(cluster: Cluster, options: AclOptions) -> None:
        from pykbroker.client.errors import KafkaError
        from pykbroker.protocol.errors import ErrorCode

        try:
            await action(cluster, options)
        except KafkaError as error:
            if error.error_code is not ErrorCode.SECURITY_DISABLED:
                raise
            raise CommandFailed(
                f"{str(error).rstrip('.')}: it needs authorizer.class.name, or start --secure"
            ) from None

    return act


@command.command(
    "list",
    epilog=examples(
        ("All of them", "pykbroker acls list"),
        ("What holds for a topic, patterns too", "pykbroker acls list --topic orders --resource-pattern-type match"),
        ("What alice may do, for a program", "pykbroker acls list --principal User:alice --json"),
    ),
)
@bootstrap_options
@_resources
@_PRINCIPALS
@json_option
def list_(**flags: Any) -> None:
    """List the ACLs of resources, or all, one a line."""
    options = AclOptions(**flags)
    check(options, "--list")
    from .acl_actions import list_entries

    _run(list_entries, options)


@command.command(
    "add",
    epilog=examples(
        ("Let alice write", "pykbroker acls add --allow-principal User:alice --producer --topic orders"),
        ("Let bob read", "pykbroker acls add --allow-principal User:bob --consumer --topic orders --group readers"),
        (
            "Topics by the beginning of their names",
            "pykbroker acls add --allow-principal User:bob --topic eu- --resource-pattern-type prefixed",
        ),
    ),
)
@bootstrap_options
@_entries
@_resources
@json_option
def add(**flags: Any) -> None:
    """Add ACLs: who may, or may not, do what with which resources."""
    options = AclOptions(**flags)
    check(options, "--add")
    from .acl_actions import add

    _run(add, options)


@command.command(
    "remove",
    epilog=examples(
        ("What alice needed to write", "pykbroker acls remove --allow-principal User:alice --producer --topic orders"),
        ("All ACLs of a topic, without a question", "pykbroker acls remove --topic orders --yes"),
    ),
)
@bootstrap_options
@_entries
@_resources
@_FORCE
@json_option
def remove(**flags: Any) -> None:
    """Remove ACLs, and print what is gone; without a principal all those of the resources."""
    options = AclOptions(**flags)
    check(options, "--remove")
    from .acl_actions import remove_in_words

    _run(remove_in_words, options)
