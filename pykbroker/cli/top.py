"""`pykbroker top`: what a cluster does, live on a terminal, and as snapshots elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .command import ClientCommand, CommandFailed, bootstrap_options, run
from .examples import examples
from .perf_options import number_between


@click.command(
    "top",
    cls=ClientCommand,
    epilog=examples(
        ("Live, until q or Ctrl-C", "pykbroker top"),
        (
            "A broker elsewhere, every five seconds",
            "pykbroker top --bootstrap-server broker:9092 --interval 5 --metrics-url http://broker:9480/metrics",
        ),
        ("One snapshot", "pykbroker top --once"),
        ("Records a second, for a program", "pykbroker top --json --count 10 | jq .records_per_s"),
    ),
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
    from .top_run import show

    async def work() -> int:
        return await show(
            bootstrap_server,
            command_config,
            metrics_url,
            interval_s=interval,
            most=1 if once or (as_json and count is None) else count,
            as_json=as_json,
        )

    exit_code = run(work)
    if exit_code:
        raise SystemExit(exit_code)
