"""Looks of `pykbroker top`: live on a terminal, and as snapshots elsewhere.

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

from .command import one_line
from .connect import open_cluster, read_client_properties
from .interrupt import run_until_signal
from .output import stdout_is_terminal
from .top_observation import Observation, observe
from .top_rates import view_of
from .top_requests import RequestMetrics, metrics_urls
from .top_text import Snapshot, now_utc

_LIMIT_S: Final = 5.0
"""How long a broker may take for its part of one look, whatever the interval."""
_REQUEST_TIMEOUT_MS: Final = 2_000
"""Below the limit, so that the metadata may come from another broker than the one that does not answer."""


async def show(
    bootstrap_server: str,
    command_config: Path | None,
    metrics_url: str | None,
    *,
    interval_s: float,
    most: int | None,
    as_json: bool,
) -> int:
    """Show the cluster to the end, and return the exit code. most: how many snapshots; None for no end."""
    properties = read_client_properties(command_config)
    for key in ("request.timeout.ms", "default.api.timeout.ms"):
        properties.setdefault(key, str(_REQUEST_TIMEOUT_MS))
    metrics = RequestMetrics(metrics_urls(metrics_url, bootstrap_server))
    is_live = most is None and not as_json and _is_screen()
    async with open_cluster(bootstrap_server, properties, client_id="top") as cluster:
        await cluster.any_connection()  # in the client's own time: a look has a limit of its own
        snapshots = look_again(cluster, metrics, interval_s, at_once=is_live)
        if not is_live:
            return await run_until_signal(lambda: _print(snapshots, most, as_json=as_json))
        from .top_live import LiveScreen

        return await run_until_signal(lambda: LiveScreen(interval_s).run(snapshots))


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
