"""`pykbroker transactions`: the sub-commands, flags and columns of `kafka-transactions`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from . import transaction_actions
from .command import ClientGroup, bootstrap_options
from .connect import run_on_cluster

CLIENT_ID = "transactions"
DEFAULT_MAX_TIMEOUT_MINUTES = 15


@dataclass(frozen=True, slots=True)
class _Where:
    bootstrap_server: str
    command_config: Path | None


@click.group("transactions", cls=ClientGroup)
@bootstrap_options
@click.pass_context
def command(context: click.Context, bootstrap_server: str, command_config: Path | None) -> None:
    """List, describe and find transactions, and abort those that hang."""
    context.obj = _Where(bootstrap_server, command_config)


def _run(action: transaction_actions.Action, where: _Where, **flags: Any) -> None:
    options = transaction_actions.TransactionOptions(where.bootstrap_server, where.command_config, flags)
    run_on_cluster(action, options, client_id=CLIENT_ID)


@command.command("list")
@click.option("--duration-filter", type=click.IntRange(min=0), metavar="MS", help="Only those that run longer.")
@click.option("--transactional-id-pattern", metavar="REGEX", help="Only ids that match (RE2).")
@click.pass_obj
def list_(where: _Where, /, **flags: Any) -> None:
    """List transactions."""
    _run(transaction_actions.list_all, where, **flags)


@command.command("describe")
@click.option("--transactional-id", required=True, metavar="ID")
@click.pass_obj
def describe(where: _Where, /, **flags: Any) -> None:
    """Describe the state of one transactional id."""
    _run(transaction_actions.describe, where, **flags)


@command.command("producers")
@click.option("--topic", required=True, metavar="NAME")
@click.option("--partition", required=True, type=click.IntRange(min=0), metavar="N")
@click.option("--broker-id", type=int, metavar="ID", help="A broker other than the partition's leader.")
@click.pass_obj
def producers(where: _Where, /, **flags: Any) -> None:
    """Describe the producers of a partition, as its log knows them."""
    _run(transaction_actions.producers, where, **flags)


@command.command("find-hanging")
@click.option("--broker-id", type=int, metavar="ID", help="Only partitions that this broker leads.")
@click.option("--topic", metavar="NAME", help="Only partitions of this topic.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="With --topic: only this one.")
@click.option(
    "--max-transaction-timeout",
    type=click.IntRange(min=0),
    default=DEFAULT_MAX_TIMEOUT_MINUTES,
    show_default=True,
    metavar="MINUTES",
    help="How long a transaction may be without a record before it is suspicious.",
)
@click.pass_obj
def find_hanging(where: _Where, /, **flags: Any) -> None:
    """Find transactions that are open in a log, and that no coordinator knows of."""
    _run(transaction_actions.hanging, where, **flags)


@command.command("abort")
@click.option("--topic", required=True, metavar="NAME")
@click.option("--partition", required=True, type=click.IntRange(min=0), metavar="N")
@click.option("--start-offset", type=click.IntRange(min=0), metavar="N", help="Where the transaction begins.")
@click.option("--producer-id", type=int, metavar="ID")
@click.option("--producer-epoch", type=int, metavar="N")
@click.option("--coordinator-epoch", type=int, metavar="N")
@click.pass_obj
def abort(where: _Where, /, **flags: Any) -> None:
    """Abort a transaction that hangs in one partition: by its start offset, or by producer id and epochs."""
    _run(transaction_actions.abort, where, **flags)
