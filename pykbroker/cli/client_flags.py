"""Flags that `configs`, `users` and `quotas` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
T = TypeVar("T")


def client_entity_options(function: Callable[P, T]) -> Callable[P, T]:
    """The users, clients and addresses that have quotas, with the short flags of `kafka-configs`."""
    for option in (
        click.option("--ip-defaults", is_flag=True, help="The default of all addresses."),
        click.option("--ip", metavar="ADDRESS", help="An address that connections come from."),
        click.option("--client-defaults", is_flag=True, help="The default of all client ids."),
        click.option("--client", metavar="ID", help="A client id, as clients name themselves."),
        click.option("--user-defaults", is_flag=True, help="The default of all users."),
        click.option("--user", metavar="NAME", help="A user, without the type: alice, not User:alice."),
    ):
        function = option(function)
    return function


def change_options(function: Callable[P, T]) -> Callable[P, T]:
    """`--add-config` and `--delete-config`."""
    function = click.option("--delete-config", metavar="K,…", help="Configs to remove.")(function)
    return click.option(
        "--add-config", metavar="K=V,…", help="Configs to set; [a,b] keeps a value with commas together."
    )(function)
