"""`pykbroker log-dirs`: what lies in which log directory, in words, or with the flags and JSON of `kafka-log-dirs`."""

from __future__ import annotations

from typing import Any

import click

from .command import CommandFailed, bootstrap_options
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .two_forms import TwoForms

CLIENT_ID = "log-dirs"


@click.group(
    "log-dirs",
    cls=TwoForms,
    like="kafka-log-dirs",
    epilog=examples(
        ("A table of directories", "pykbroker log-dirs describe"),
        ("JSON of kafka-log-dirs", "pykbroker log-dirs --describe --topic-list orders"),
    ),
)
@bootstrap_options
@click.option("--describe", "describes", is_flag=True, help="Describe log directories.")
@click.option("--broker-list", metavar="ID,ID", help="The brokers to ask. Default: all.")
@click.option("--topic-list", metavar="NAME,NAME", help="Only these topics. Default: all.")
def command(describes: bool, **flags: Any) -> None:
    """Describe the log directories of brokers: what lies where, and how large it is."""
    if not describes:
        raise CommandFailed('Missing required argument "--describe"')
    from . import log_dir_actions

    if run_on_cluster(log_dir_actions.print_as_kafka, log_dir_actions.LogDirOptions(**flags), client_id=CLIENT_ID):
        raise SystemExit(1)


@command.command(
    "describe",
    epilog=examples(
        ("The directories of all brokers", "pykbroker log-dirs describe"),
        ("The ten largest topics", "pykbroker log-dirs describe --top 10"),
        ("One topic on two brokers, for a program", "pykbroker log-dirs describe orders --broker-list 1,2 --json"),
    ),
)
@bootstrap_options
@click.argument("topics", nargs=-1, metavar="[TOPIC …]")
@click.option("--broker-list", metavar="ID,ID", help="The brokers to ask. Default: all.")
@click.option("--topic-list", metavar="NAME,NAME", help="Only these topics, as names alone do.")
@click.option("--by-topic", is_flag=True, help="A row for each topic of a directory, the largest first.")
@click.option("--top", type=click.IntRange(1), metavar="N", help="As --by-topic, the N largest only.")
@json_option
def describe(**flags: Any) -> None:
    """Show sizes by directory, or by topic; with exit code 1 where a directory is offline, or a broker is."""
    from . import log_dir_actions

    if run_on_cluster(log_dir_actions.describe, log_dir_actions.LogDirOptions(**flags), client_id=CLIENT_ID):
        raise SystemExit(1)
