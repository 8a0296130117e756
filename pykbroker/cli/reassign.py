"""`pykbroker reassign`: moves of partitions, in words, or with the flags and texts of `kafka-reassign-partitions`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command import CommandFailed
from .confirmation import yes_option
from .connect import run_on_cluster
from .controller_options import Where, controller_options
from .entries import json_option
from .examples import examples
from .reassign_options import ReassignOptions, action_of
from .two_forms import TwoForms

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

CLIENT_ID = "reassign"
_path = click.Path(path_type=Path)
_plan_file = click.option(
    "--reassignment-json-file",
    type=_path,
    metavar="FILE",
    help='{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}]}',
)
_throttle = click.option(
    "--throttle", type=click.IntRange(-1), metavar="BYTES", help="The most traffic between brokers, a second."
)
_directory_throttle = click.option(
    "--replica-alter-log-dirs-throttle",
    type=click.IntRange(-1),
    metavar="BYTES",
    help="The most between log directories, a second.",
)
_additional = click.option(
    "--additional", is_flag=True, help="On top of moves that are under way, or to throttle them."
)
_preserve = click.option("--preserve-throttles", is_flag=True, help="Leave throttles as they are.")
_no_racks = click.option("--disable-rack-aware", is_flag=True, help="Do not look at racks.")
_same_factor = click.option(
    "--disallow-replication-factor-change", is_flag=True, help="Refuse a target with more or fewer replicas."
)
_timeout = click.option(
    "--timeout",
    type=click.IntRange(0, 86_400_000),
    default=10_000,
    show_default=True,
    metavar="MS",
    help="For moves between log directories to begin.",
)
_names = click.argument("names", nargs=-1, metavar="[TOPIC …]")
_pattern = click.option("--topic", metavar="REGEX", help="Topics whose whole names match.")
_brokers = click.option("--brokers", "broker_list", metavar="ID,ID", help="The brokers to spread over. Default: all.")
_replicas = click.option("--replicas", metavar="ID,ID", help="Just these brokers for each partition, the leader first.")
_factor = click.option(
    "--replication-factor", type=click.IntRange(1, 32767), metavar="N", help="Replicas of each. Default: as before."
)


@click.group(
    "reassign",
    cls=TwoForms,
    like="kafka-reassign-partitions",
    epilog=examples(
        ("What would move?", "pykbroker reassign plan orders --brokers 1,2,3"),
        ("Move it, and wait", "pykbroker reassign start orders --brokers 1,2,3 --wait"),
        ("As by kafka-reassign-partitions", "pykbroker reassign --verify --reassignment-json-file plan.json"),
    ),
)
@controller_options
@click.option("--generate", is_flag=True, help="Propose where partitions of topics go; nothing moves.")
@click.option("--execute", is_flag=True, help="Start the moves of a file.")
@click.option("--verify", is_flag=True, help="Say how far they are; clear throttles when they are done.")
@click.option("--list", "list_", is_flag=True, help="List moves that are under way.")
@click.option("--cancel", is_flag=True, help="End the moves of a file.")
@_plan_file
@click.option("--topics-to-move-json-file", type=_path, metavar="FILE", help='{"topics": [{"topic": "t"}]}')
@click.option("--broker-list", metavar="ID,ID", help="With --generate: the brokers to spread over.")
@_throttle
@_directory_throttle
@_timeout
@_additional
@_preserve
@_no_racks
@_same_factor
def command(bootstrap_server: str, bootstrap_controller: str | None, command_config: Path | None, **flags: Any) -> None:
    """Move partitions to other brokers, or to other log directories."""
    options = ReassignOptions(Where(bootstrap_server, bootstrap_controller, command_config), **flags)
    action = action_of(options)
    from . import reassign_as_kafka

    actions = {
        "--generate": reassign_as_kafka.generate,
        "--execute": reassign_as_kafka.execute,
        "--verify": reassign_as_kafka.verify,
        "--list": reassign_as_kafka.list_,
        "--cancel": reassign_as_kafka.cancel,
    }
    if run_on_cluster(actions[action], options, client_id=CLIENT_ID):
        raise SystemExit(1)


def _run(
    action: Callable[[Cluster, ReassignOptions], Awaitable[bool]],
    bootstrap_server: str,
    bootstrap_controller: str | None,
    command_config: Path | None,
    **flags: Any,
) -> None:
    options = ReassignOptions(Where(bootstrap_server, bootstrap_controller, command_config), **flags)
    if run_on_cluster(action, options, client_id=CLIENT_ID):
        raise SystemExit(1)


def _run_on_brokers(action: Callable[[Cluster, ReassignOptions], Awaitable[bool]], **flags: Any) -> None:
    if flags["bootstrap_controller"] is not None:
        raise CommandFailed("Controllers list and cancel moves alone: give --bootstrap-server")
    _run(action, **flags)


@command.command(
    "plan",
    epilog=examples(
        ("Spread a topic over all brokers, and see what that moves", "pykbroker reassign plan orders"),
        (
            "The same as a file, for start",
            "pykbroker reassign plan --topic 'clicks.*' --brokers 1,2,3 --output plan.json",
        ),
    ),
)
@controller_options
@_names
@_pattern
@_brokers
@_replicas
@_factor
@_no_racks
@click.option("--output", type=_path, metavar="FILE", help="Write the plan there, too.")
@json_option
def plan(**flags: Any) -> None:
    """Propose where the partitions of topics go, as those of new topics: over brokers and racks; nothing moves."""
    from . import reassign_planning

    _run_on_brokers(reassign_planning.plan, **flags)


@command.command(
    "start",
    epilog=examples(
        ("Spread a topic over these brokers", "pykbroker reassign start orders --brokers 1,2,3 --wait"),
        (
            "What a file says, at 10 MB a second",
            "pykbroker reassign start --reassignment-json-file plan.json --throttle 10000000",
        ),
    ),
)
@controller_options
@_names
@_pattern
@_brokers
@_replicas
@_factor
@_no_racks
@_plan_file
@_throttle
@_directory_throttle
@_timeout
@_additional
@_same_factor
@click.option("--wait", is_flag=True, help="Wait until all is done, then clear throttles.")
@click.option(
    "--wait-timeout", default="1h", show_default=True, metavar="TIME", help="With --wait: 500ms, 30s, 5m, 1h."
)
@yes_option
@json_option
def start(wait_timeout: str, **flags: Any) -> None:
    """Move the partitions of topics, or those of a file, to other brokers."""
    from . import reassign_words
    from .wait import seconds_of

    if flags["reassignment_json_file"] is not None:
        others = ("names", "topic", "broker_list", "replicas", "replication_factor", "disable_rack_aware")
        if any(flags[each] for each in others):
            raise CommandFailed("--reassignment-json-file says all of it: give no topics and no brokers")
    _run_on_brokers(reassign_words.start, wait_s=seconds_of(wait_timeout), **flags)


@command.command(
    "verify",
    epilog=examples(("How far is it?", "pykbroker reassign verify --reassignment-json-file plan.json")),
)
@controller_options
@click.option("--reassignment-json-file", type=_path, required=True, metavar="FILE", help="As for start.")
@_preserve
@json_option
def verify(**flags: Any) -> None:
    """Show how far a plan is, and clear throttles when it is done; with exit code 1 where it is not."""
    from . import reassign_words

    _run_on_brokers(reassign_words.verify, **flags)


@command.command("list", epilog=examples(("What moves?", "pykbroker reassign list --json")))
@controller_options
@json_option
def list_(**flags: Any) -> None:
    """List moves that are under way."""
    from . import reassign_words

    _run(reassign_words.list_, **flags)


@command.command(
    "cancel",
    epilog=examples(
        ("The moves of a topic", "pykbroker reassign cancel orders"),
        ("All moves", "pykbroker reassign cancel --all --yes"),
    ),
)
@controller_options
@_names
@_plan_file
@click.option("--all", "all_", is_flag=True, help="All moves that are under way.")
@_preserve
@_timeout
@yes_option
@json_option
def cancel(**flags: Any) -> None:
    """End moves before they are done; partitions stay where they are."""
    from . import reassign_words

    _run(reassign_words.cancel, **flags)


@command.command(
    "clear-throttles",
    epilog=examples(
        ("Throttles that are left, of brokers and topics", "pykbroker reassign clear-throttles --yes"),
        ("Of one topic", "pykbroker reassign clear-throttles orders"),
    ),
)
@controller_options
@_names
@yes_option
@json_option
def clear_throttles(**flags: Any) -> None:
    """Take away throttles that moves have left behind, and show which they were; while moves go on they stay."""
    from . import reassignment_throttles

    _run_on_brokers(reassignment_throttles.clear, **flags)
