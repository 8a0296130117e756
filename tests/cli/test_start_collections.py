"""While a node starts, as while it serves, no allocation sets off a full pass of the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import trio

from pykbroker.cli import start
from pykbroker.cli.start_web import StartWeb
from pykbroker.cli.stop_requests import StopRequests
from pykbroker.config import BrokerConfig
from pykbroker.security.sasl.process_options import NO_OPTIONS
from tests.collector import needs_full_passes


class ShortLivedNode:
    """Stops as soon as it has started."""

    def __init__(self) -> None:
        self.thresholds: list[int] = []
        self.stopped = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[str]) -> None:
        self.thresholds.append(gc.get_threshold()[2])
        task_status.started("ready")
        await trio.lowlevel.checkpoint()
        self.thresholds.append(gc.get_threshold()[2])
        self.stopped.set()

    def stop(self) -> None:
        raise AssertionError


@pytest.fixture
def collector() -> Iterator[None]:
    yield
    gc.unfreeze()


@needs_full_passes
@pytest.mark.usefixtures("collector")
def test_no_full_collection_comes_while_a_node_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a tenth of a second where there are 10,000 partitions, and peers wait for votes."""
    before = gc.get_threshold()
    node = ShortLivedNode()
    monkeypatch.setattr(start, "make_node", lambda start_, on_loading: node)
    config = BrokerConfig({"console.listener": ""})
    started = start.Start(
        config,
        NO_OPTIONS,
        secure=None,
        port_file=None,
        is_ephemeral=False,
        offer=None,
        ctl=None,
        web=StartWeb(config),
    )
    trio.run(start._serve_until_stopped, started, StopRequests())
    assert min(node.thresholds) > 1_000_000
    assert gc.get_threshold() == before
