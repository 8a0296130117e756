"""Who held the loop, and for how long: told by the CPU, whatever the wall clock says."""

from __future__ import annotations

import gc
import logging
import time

import pytest
import trio

from compat_tests.loop_holds import loop_holds
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.runtime import loop_monitor
from pykbroker.server.runtime.clock import SystemClock
from pykbroker.server.runtime.loop_monitor import Hold, LoopMonitor, logging_holds
from tests.loops import no_holds
from tests.server.serving import Served, Server


def compute(cpu_ms: float) -> None:
    end_s = time.thread_time() + cpu_ms / 1000
    while time.thread_time() < end_s:
        pass


def test_the_task_that_held_the_loop_is_named() -> None:
    holds: list[Hold] = []

    async def greedy() -> None:
        await trio.lowlevel.checkpoint()
        compute(60)
        await trio.lowlevel.checkpoint()

    async def modest() -> None:
        for _ in range(100):
            await trio.lowlevel.checkpoint()

    async def scenario() -> None:
        with LoopMonitor(50, holds.append).watching():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(modest)
                nursery.start_soon(greedy)

    trio.run(scenario)
    (hold,) = holds
    assert hold.task.endswith("greedy")
    assert hold.cpu_ms >= 50


def test_many_short_steps_are_no_hold() -> None:
    holds: list[Hold] = []

    async def scenario() -> None:
        with LoopMonitor(200, holds.append).watching():
            for _ in range(150):
                compute(2)
                await trio.lowlevel.checkpoint()

    trio.run(scenario)
    assert not holds


def test_a_wait_in_a_step_is_no_cpu() -> None:
    holds: list[Hold] = []

    async def scenario() -> None:
        with LoopMonitor(50, holds.append).watching():
            time.sleep(0.08)  # noqa: ASYNC251 - as a disk that lets the loop wait
            await trio.lowlevel.checkpoint()

    trio.run(scenario)
    assert not holds


def test_the_share_of_the_garbage_collector_is_told() -> None:
    holds: list[Hold] = []

    async def scenario() -> None:
        with LoopMonitor(0.001, holds.append).watching():
            cycles = [[each] for each in range(50_000)]
            gc.collect()
            await trio.lowlevel.checkpoint()
            assert cycles

    trio.run(scenario)
    assert any(hold.collecting_ms > 0 for hold in holds)
    assert max(hold.collecting_ms - hold.cpu_ms for hold in holds) <= 0


def test_rounds_of_the_loop_are_counted_by_how_long_they_were() -> None:
    times_s = iter([100.0, 100.00005, 200.0, 200.02, 300.0, 300.3])
    monitor = LoopMonitor(1000, lambda hold: None, wall_s=lambda: next(times_s))
    monitor.after_io_wait(0)
    monitor.before_io_wait(0)
    assert (monitor.short_rounds, sum(monitor.rounds.counts)) == (1, 0)
    assert monitor.short_rounds_s == pytest.approx(0.00005, rel=0.01)
    for _ in range(2):
        monitor.after_io_wait(0)
        monitor.before_io_wait(0)
    assert (monitor.short_rounds, sum(monitor.rounds.counts)) == (1, 2)
    assert monitor.rounds.sum_ns == pytest.approx(320_000_000, rel=0.01)


def test_a_collection_in_another_thread_is_not_the_loops() -> None:
    holds: list[Hold] = []

    async def scenario() -> None:
        with LoopMonitor(0.001, holds.append).watching():
            cycles = [[each] for each in range(200_000)]
            await trio.to_thread.run_sync(gc.collect)
            compute(5)
            await trio.lowlevel.checkpoint()
            assert cycles

    gc.disable()
    try:
        trio.run(scenario)
    finally:
        gc.enable()
    assert holds
    assert not any(hold.collecting_ms for hold in holds)


def test_the_request_of_a_step_is_named_also_in_tasks_of_its_handler(
    real_server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = HandlerTable("broker")

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(compute_in_a_task)
        return HeartbeatResponse()

    async def compute_in_a_task() -> None:
        await trio.lowlevel.checkpoint()
        compute(60)

    async def scenario(served: Served) -> None:
        with logging_holds(SystemClock()):
            client = await served.connect()
            await client.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
            client.transport.close()

    monkeypatch.setenv(loop_monitor.BOUND_VARIABLE, "50")
    caplog.set_level(logging.INFO, loop_monitor.__name__)
    real_server.run(table, scenario)
    held = [record.getMessage() for record in caplog.records if "held the event loop" in record.getMessage()]
    assert any("compute_in_a_task with Heartbeat version 4 of client test at 127.0.0.1" in line for line in held)
    assert caplog.messages[-1].startswith("longest step: ")


def test_of_very_many_holds_the_longest_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        with logging_holds(SystemClock()):
            for cpu_ms in (*[3] * 40, 30):
                compute(cpu_ms)
                await trio.lowlevel.checkpoint()

    monkeypatch.setenv(loop_monitor.BOUND_VARIABLE, "2")
    caplog.set_level(logging.INFO, loop_monitor.__name__)
    trio.run(scenario)
    held = [line for line in caplog.messages if "held the event loop" in line and not line.startswith("longest")]
    assert len(held) < 40
    assert max(hold.cpu_ms for hold in loop_holds("\n".join(held))) >= 30


def test_a_test_fails_whose_loop_was_held(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        await trio.lowlevel.checkpoint()
        compute(60)

    with pytest.raises(AssertionError, match="held for more than 50 ms"), no_holds(monkeypatch, 50):
        trio.run(scenario)
