"""Flags that `configs`, `users` and `quotas` have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

from .config_options import ClientEntityFlags

P = ParamSpec("P")
T = TypeVar("T")


def client_entity_options(function: Callable[..., None]) -> Callable[..., None]:
    """The users, clients and addresses that have quotas, with the short flags of `kafka-configs`.

    They come as the argument `clients`.
    """

    @wraps(function)
    def with_clients(
        user: str | None,
        user_defaults: bool,
        client: str | None,
        client_defaults: bool,
        ip: str | None,
        ip_defaults: bool,
        **options: Any,
    ) -> None:
        clients = ClientEntityFlags(
            user=user,
            user_defaults=user_defaults,
            client=client,
            client_defaults=client_defaults,
            ip=ip,
            ip_defaults=ip_defaults,
        )
        function(clients=clients, **options)

    decorated: Callable[..., None] = with_clients
    for option in (
        click.option("--ip-defaults", is_flag=True, help="The default of all addresses."),
        click.option("--ip", metavar="ADDRESS", help="An address that connections come from."),
        click.option("--client-defaults", is_flag=True, help="The default of all client ids."),
        click.option("--client", metavar="ID", help="A client id, as clients name themselves."),
        click.option("--user-defaults", is_flag=True, help="The default of all users."),
        click.option("--user", metavar="NAME", help="A user, without the type: alice, not User:alice."),
    ):
        decorated = option(decorated)
    return decorated


def change_options(function: Callable[P, T]) -> Callable[P, T]:
    """`--add-config` and `--delete-config`."""
    function = click.option("--delete-config", metavar="K,…", help="Configs to remove.")(function)
    return click.option(
        "--add-config", metavar="K=V,…", help="Configs to set; [a,b] keeps a value with commas together."
    )(function)
