"""`pykbroker wait`: until a topic is there or has records, a group is stable or has caught up; for scripts.

Exit code 0: it is so. 1: it is not so within the time, or cannot be; one line says what there is instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command import ClientCommand, CommandFailed, bootstrap_options
from .connect import run_on_cluster
from .entries import json_option, print_json
from .examples import examples
from .progress import stages

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """The wish of a command line. wanted: the names of `client.conditions.Wanted` that are given."""

    bootstrap_server: str
    command_config: Path | None
    timeout_s: float
    wanted: dict[str, Any]
    as_json: bool = False


@click.command(
    "wait",
    cls=ClientCommand,
    epilog=examples(
        ("Until a topic has 100 records", "pykbroker wait --topic orders --records 100"),
        ("Until a group has caught up", "pykbroker wait --group readers --lag 0 --timeout 2m"),
        ("Until it has two members", "pykbroker wait --group readers --members 2"),
    ),
)
@bootstrap_options
@click.option("--topic", metavar="NAME", help="A topic; alone: until each of its partitions has a leader.")
@click.option("--partitions", type=click.IntRange(min=1), metavar="N", help="With --topic: it has so many, or more.")
@click.option(
    "--records",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --topic: a consumer with read_committed has seen so many from the beginning, or more.",
)
@click.option("--group", metavar="ID", help="A group; alone: until it is stable.")
@click.option("--state", metavar="STATE", help="With --group: it is in this state; dead is one that does not exist.")
@click.option("--members", type=click.IntRange(min=0), metavar="N", help="With --group: it has just so many.")
@click.option(
    "--lag",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --group: it lags by so much, or less; with --topic in all partitions of that topic.",
)
@click.option("--timeout", default="30s", show_default=True, metavar="TIME", help="500ms, 30s, 5m, 1h.")
@json_option
def command(bootstrap_server: str, command_config: Path | None, timeout: str, as_json: bool, **wanted: Any) -> None:
    """Wait until a topic or a group is as it should be."""
    given = {name: value for name, value in wanted.items() if value is not None}
    options = WaitOptions(bootstrap_server, command_config, seconds_of(timeout), given, as_json)
    run_on_cluster(_wait, options, client_id="wait")


def seconds_of(text: str) -> float:
    """Return a duration in seconds; a number alone is in seconds. Raises CommandFailed."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise CommandFailed(f"'{text}' is not a time like 500ms, 30s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2] or "s"]


async def _wait(cluster: Cluster, options: WaitOptions) -> None:
    import trio

    from pykbroker.client.conditions import conditions_of, wait_until

    began = trio.current_time()
    conditions = conditions_of(**options.wanted)
    with stages(1) as under_way:
        under_way.begin("Waiting")
        await wait_until(cluster, conditions, options.timeout_s)
    if options.as_json:
        waited_ms = round((trio.current_time() - began) * 1000)
        print_json([{**options.wanted, "waited_ms": waited_ms}])
