"""`pykbroker transactions`: the sub-commands, flags and columns of `kafka-transactions`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command import bootstrap_options
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .transaction_options import TransactionOptions
from .two_forms import Words

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

DEFAULT_MAX_TIMEOUT_MINUTES = 15


@click.group(
    "transactions",
    cls=Words,
    other_names={"describe-producers": "producers"},
    epilog=examples(
        ("Transactions that run for more than a minute", "pykbroker transactions list --duration-filter 60000"),
        ("What holds up consumers that read committed records", "pykbroker transactions find-hanging --topic orders"),
    ),
)
@bootstrap_options
def command(**_given: Any) -> None:
    """List, describe and find transactions, and abort those that hang."""


def _run(
    action: Callable[[Cluster, TransactionOptions], Awaitable[None]],
    bootstrap_server: str,
    command_config: Path | None,
    **flags: Any,
) -> None:
    run_on_cluster(action, TransactionOptions(bootstrap_server, command_config, flags), client_id="transactions")


@command.command(
    "list",
    epilog=examples(
        ("All of them", "pykbroker transactions list"),
        (
            "Those of one service, for a program",
            "pykbroker transactions list --transactional-id-pattern 'billing-.*' --json",
        ),
    ),
)
@bootstrap_options
@click.option("--duration-filter", type=click.IntRange(min=0), metavar="MS", help="Only those that run longer.")
@click.option("--transactional-id-pattern", metavar="REGEX", help="Only ids that match (RE2).")
@json_option
def list_(**flags: Any) -> None:
    """List transactions."""
    from .transaction_actions import list_all as action

    _run(action, **flags)


@command.command(
    "describe",
    epilog=examples(
        ("State, start and partitions", "pykbroker transactions describe --transactional-id billing-1"),
        ("For a program", "pykbroker transactions describe --transactional-id billing-1 --json"),
    ),
)
@bootstrap_options
@click.option("--transactional-id", required=True, metavar="ID")
@json_option
def describe(**flags: Any) -> None:
    """Describe the state of one transactional id."""
    from .transaction_actions import describe as action

    _run(action, **flags)


@command.command(
    "producers",
    epilog=examples(
        ("Who has written to a partition", "pykbroker transactions producers --topic orders --partition 0"),
        ("As another replica knows it", "pykbroker transactions producers --topic orders --partition 0 --broker-id 2"),
    ),
)
@bootstrap_options
@click.option("--topic", required=True, metavar="NAME")
@click.option("--partition", required=True, type=click.IntRange(min=0), metavar="N")
@click.option("--broker-id", type=int, metavar="ID", help="A broker other than the partition's leader.")
@json_option
def producers(**flags: Any) -> None:
    """Describe the producers of a partition, as its log knows them."""
    from .transaction_actions import producers as action

    _run(action, **flags)


@command.command(
    "find-hanging",
    epilog=examples(
        ("In one topic", "pykbroker transactions find-hanging --topic orders"),
        ("In all partitions that a broker leads", "pykbroker transactions find-hanging --broker-id 1 --json"),
    ),
)
@bootstrap_options
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
@json_option
def find_hanging(**flags: Any) -> None:
    """Find transactions that are open in a log, and that no coordinator knows of."""
    from .transaction_actions import find_hanging as action

    _run(action, **flags)


@command.command(
    "abort",
    epilog=examples(
        (
            "The transaction that begins at an offset",
            "pykbroker transactions abort --topic orders --partition 0 --start-offset 42",
        ),
        ("Without a question", "pykbroker transactions abort --topic orders --partition 0 --start-offset 42 --yes"),
    ),
)
@bootstrap_options
@click.option("--topic", required=True, metavar="NAME")
@click.option("--partition", required=True, type=click.IntRange(min=0), metavar="N")
@click.option("--start-offset", type=click.IntRange(min=0), metavar="N", help="Where the transaction begins.")
@click.option("--producer-id", type=int, metavar="ID")
@click.option("--producer-epoch", type=int, metavar="N")
@click.option("--coordinator-epoch", type=int, metavar="N")
@yes_option
@json_option
def abort(**flags: Any) -> None:
    """Abort a transaction that hangs in one partition: by its start offset, or by producer id and epochs."""
    from .transaction_actions import abort as action

    _run(action, **flags)
