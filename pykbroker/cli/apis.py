"""`pykbroker apis`: what brokers serve, as `kafka-broker-api-versions` tells, and what this client uses of it."""

from __future__ import annotations

from typing import Any

import click

from .command import ClientCommand, bootstrap_options
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples


@click.command(
    "apis",
    cls=ClientCommand,
    epilog=examples(
        ("All brokers", "pykbroker apis"),
        ("One broker, for a program", "pykbroker apis --broker 1 --json"),
    ),
)
@bootstrap_options
@click.option("--broker", "brokers", type=int, multiple=True, metavar="ID", help="Only this broker; may be repeated.")
@json_option
def command(**flags: Any) -> None:
    """Show which APIs brokers serve, in which versions, and which of these this client uses.

    On a terminal a table has a line for each range of versions with the brokers that have it; elsewhere the texts are
    those of kafka-broker-api-versions.
    """
    from .api_actions import ApiOptions, show

    if run_on_cluster(show, ApiOptions(**flags), client_id="apis"):
        raise SystemExit(1)
