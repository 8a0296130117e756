"""The metrics of the process: its event loop and its version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker import __version__

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.server.node.broker import ClusterNode
    from pykbroker.server.runtime.loop_monitor import LoopMonitor


def read_loop(monitor: LoopMonitor, readings: Readings) -> None:
    rounds = monitor.rounds.copy()
    rounds.counts[0] += monitor.short_rounds
    rounds.sum_ns += int(monitor.short_rounds_s * 1e9)
    readings.add_histogram("pykbroker_loop_delay_ms", rounds)
    readings.add("pykbroker_loop_holds", monitor.holds)
    readings.add("pykbroker_loop_longest_hold_ms", 0.0 if monitor.longest is None else monitor.longest.cpu_ms)
    readings.add("pykbroker_gc_seconds", monitor.collected_s)


def read_build(node: ClusterNode, readings: Readings) -> None:
    readings.add("pykbroker_build_info", 1, __version__, str(node.node_id), node.cluster_id)
