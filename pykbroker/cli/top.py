"""`pykbroker top`: what a cluster does, live on a terminal, and as snapshots elsewhere.

Looks follow each other and never overlap. A cluster that cannot be seen for a while stays on the screen as it was, with
a line that says so; before the first look it is an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError

from .command import ClientCommand, CommandFailed, bootstrap_options, one_line, run
from .connect import open_cluster, read_client_properties
from .interrupt import run_until_signal
from .output import stdout_is_terminal
from .perf_options import number_between
from .top_observation import Observation, observe
from .top_rates import view_of
from .top_requests import RequestMetrics, metrics_urls
from .top_text import Snapshot, now_utc

_LIMIT_S: Final = 5.0
"""How long a broker may take for its part of one look, whatever the interval."""
_REQUEST_TIMEOUT_MS: Final = 4_000
"""Below the limit, so that the metadata may come from another broker than the one that does not answer."""


@click.command(
    "top",
    cls=ClientCommand,
    epilog="""\b
Examples:
  pykbroker top
  pykbroker top --bootstrap-server broker:9092 --interval 5 --metrics-url http://broker:9480/metrics
  pykbroker top --once
  pykbroker top --json --count 10 | jq .records_per_s""",
)
@bootstrap_options
@click.option(
    "--interval",
    default="2",
    callback=number_between(1, 3_600),
    show_default=True,
    metavar="S",
    help="Seconds between two looks, from 1 on.",
)
@click.option("--once", is_flag=True, help="Print one snapshot after one interval.")
@click.option("--count", type=click.IntRange(1, 2**31 - 1), metavar="N", help="Print N snapshots, one an interval.")
@click.option("--json", "as_json", is_flag=True, help="Print snapshots as JSON, one a line; one without --count.")
@click.option(
    "--metrics-url",
    metavar="URL[,…]",
    help="Where brokers tell of requests and their latency. Default: http://127.0.0.1:9480/metrics for a broker here.",
)
def command(
    bootstrap_server: str,
    command_config: Path | None,
    interval: float,
    once: bool,
    count: int | None,
    as_json: bool,
    metrics_url: str | None,
) -> None:
    """Show throughput by topic, lag by group, replicas, brokers, disks, requests and their latency, live.

    Keys: q or Ctrl-C to end, r, b, s and n to sort topics by records, bytes, size and name, up and down to scroll.
    Without a terminal a snapshot is printed at each interval. Rates are those of the last interval; what is not allowed
    or not reachable is left out and said.
    """
    if once and count not in (None, 1):
        raise CommandFailed("--once and --count exclude each other")
    if sys.stdout is None:
        raise CommandFailed("Standard output is closed")
    properties = read_client_properties(command_config)
    for key in ("request.timeout.ms", "default.api.timeout.ms"):
        properties.setdefault(key, str(_REQUEST_TIMEOUT_MS))
    metrics = RequestMetrics(metrics_urls(metrics_url, bootstrap_server))
    most = 1 if once or (as_json and count is None) else count
    is_live = most is None and not as_json and _is_screen()

    async def work() -> int:
        async with open_cluster(bootstrap_server, properties, client_id="top") as cluster:
            snapshots = look_again(cluster, metrics, interval, at_once=is_live)
            if not is_live:
                return await run_until_signal(lambda: _print(snapshots, most, as_json=as_json))
            from .top_live import LiveScreen

            return await run_until_signal(lambda: LiveScreen(interval).run(snapshots))

    exit_code = run(work)
    if exit_code:
        raise SystemExit(exit_code)


def _is_screen() -> bool:
    """Tell whether standard output is a terminal that can be drawn on."""
    if sys.stdout is None or not stdout_is_terminal():
        return False
    from rich.console import Console

    return not Console().is_dumb_terminal


async def look_again(
    cluster: Cluster, metrics: RequestMetrics, interval_s: float, *, at_once: bool
) -> AsyncGenerator[Snapshot, None]:
    """Look at each interval, without an end. at_once: the first look, which knows no rates, is a snapshot, too.

    Raises ClientError where the first look fails.
    """
    before: Observation | None = None
    latest: Snapshot | None = None
    due = trio.current_time()
    while True:
        began = trio.current_time()
        is_first = before is None
        try:
            now = await observe(cluster, _LIMIT_S)
        except ClientError as error:
            if latest is None:
                raise
            latest = replace(latest, failure=f"not seen since {latest.at:%H:%M:%S} UTC: {one_line(error)}")
        else:
            requests = await metrics.look(_LIMIT_S, now.cluster_id)
            took_s = trio.current_time() - began
            latest = Snapshot(now_utc(), view_of(before, now), requests, notes=_slowness(took_s, interval_s))
            before = now
        if at_once or not is_first:
            yield latest
        due = max(due + interval_s, trio.current_time())
        await trio.sleep_until(due)


def _slowness(took_s: float, interval_s: float) -> tuple[str, ...]:
    if took_s <= interval_s:
        return ()
    return (f"a look took {took_s:.1f} s, longer than the interval of {interval_s:g} s",)


async def _print(snapshots: AsyncGenerator[Snapshot, None], most: int | None, *, as_json: bool) -> None:
    printed = 0
    async with aclosing(snapshots):
        async for snapshot in snapshots:
            if as_json:
                click.echo(json.dumps(snapshot.as_json()))
            else:
                click.echo("\n".join([*([""] if printed else []), *snapshot.lines()]))
            sys.stdout.flush()
            printed += 1
            if printed == most:
                return
