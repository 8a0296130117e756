"""`pykbroker topics`: the flags, texts and columns of `kafka-topics`."""

from __future__ import annotations

from typing import Any

import click

from . import topic_actions
from .command import ClientCommand, bootstrap_options
from .connect import run_on_cluster
from .topic_options import TopicOptions, action_of

_ACTIONS = {
    "--list": topic_actions.list_all,
    "--describe": topic_actions.describe,
    "--create": topic_actions.create,
    "--alter": topic_actions.alter,
    "--delete": topic_actions.delete,
}


@click.command("topics", cls=ClientCommand)
@bootstrap_options
@click.option("--create", is_flag=True, help="Create a new topic.")
@click.option("--list", "list_", is_flag=True, help="List all available topics.")
@click.option("--describe", is_flag=True, help="List details for the given topics.")
@click.option("--alter", is_flag=True, help="Raise the number of partitions.")
@click.option("--delete", is_flag=True, help="Delete a topic.")
@click.option("--topic", metavar="NAME", help="The topic; a regular expression too, except with --create.")
@click.option("--partitions", type=int, metavar="N", help="With --create and --alter. Default: the broker's.")
@click.option("--replication-factor", type=int, metavar="N", help="With --create. Default: the broker's.")
@click.option("--replica-assignment", metavar="B:B,B:B", help="Broker ids for each partition, by hand.")
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="With --create; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="With --create: an existing topic is no error.")
@click.option("--if-exists", is_flag=True, help="With --alter, --delete, --describe: a missing topic is no error.")
@click.option("--exclude-internal", is_flag=True, help="With --list, --describe: leave out internal topics.")
@click.option("--under-replicated-partitions", is_flag=True, help="With --describe: only these partitions.")
@click.option("--unavailable-partitions", is_flag=True, help="With --describe: only those without a leader.")
@click.option("--under-min-isr-partitions", is_flag=True, help="With --describe: only these partitions.")
@click.option("--at-min-isr-partitions", is_flag=True, help="With --describe: only these partitions.")
@click.option("--topics-with-overrides", is_flag=True, help="With --describe: only topics with own configs.")
def command(**flags: Any) -> None:
    """Create, list, describe, alter and delete topics."""
    options = TopicOptions(**flags)
    run_on_cluster(_ACTIONS[action_of(options)], options, client_id="topics")
