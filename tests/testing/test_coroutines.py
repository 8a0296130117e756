"""`async with Broker()` in programs of Trio, asyncio and anyio, whose loops go on meanwhile."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from pykbroker.testing import Broker, BrokerNotRunning, Cluster, ConditionNotMet

RUNNERS: dict[str, Callable[[Callable[[], Awaitable[None]]], None]] = {
    "trio": lambda main: trio.run(main),
    "asyncio": lambda main: asyncio.run(main()),  # type: ignore[arg-type]
    "anyio on asyncio": lambda main: anyio.run(main, backend="asyncio"),
    "anyio on trio": lambda main: anyio.run(main, backend="trio"),
}


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_broker_serves_coroutines(runner: str) -> None:
    async def main() -> None:
        async with Broker() as broker:
            topic = await broker.create_topic("t", partitions=2)
            await topic.produce("a", "b", key="k")
            await broker.wait_for(topic="t", records=2)
            assert await topic.values() == [b"a", b"b"]
            assert await broker.topics() == ["t"]
            group = broker.group("g")
            await group.commit({("t", partition): offset for partition, offset in (await topic.end_offsets()).items()})
            assert await group.lag() == 0
            await broker.restart()
            assert await topic.values() == [b"a", b"b"]
            with pytest.raises(ConditionNotMet, match="there are 2"):
                await broker.wait_for(topic="t", records=3, timeout=0.2)
            await broker.kill()
            with pytest.raises(BrokerNotRunning):
                await topic.values()

    RUNNERS[runner](main)


@pytest.mark.parametrize("runner", ["trio", "anyio on asyncio"])
def test_a_wait_that_is_cancelled_ends_and_the_broker_goes_on(runner: str) -> None:
    async def main() -> None:
        async with Broker() as broker:
            with anyio.move_on_after(0.1):
                await broker.wait_for(group="nobody", timeout=60)
            await broker.create_topic("t")
            assert await broker.topics() == ["t"]

    RUNNERS[runner](main)


@pytest.mark.parametrize("runner", ["trio", "anyio on asyncio"])
def test_a_start_that_is_cancelled_leaves_nothing(runner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where no other test has brokers
    broker = Broker()

    async def main() -> None:
        with anyio.move_on_after(0.001):
            async with broker:
                await anyio.sleep(60)

    RUNNERS[runner](main)
    broker.close()  # waits for the thread that closes it
    assert not broker.is_open
    assert os.listdir(tmp_path) == []


def test_a_start_that_is_cancelled_before_it_begins_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that opens the broker comes later than the one that closes it."""
    broker, is_closed = Broker(), threading.Event()
    real_open, real_close = broker.open, broker.close

    def late_open() -> None:
        assert is_closed.wait(20)
        real_open()

    def close() -> None:
        real_close()
        is_closed.set()

    monkeypatch.setattr(broker, "open", late_open)
    monkeypatch.setattr(broker, "close", close)

    async def main() -> None:
        with trio.move_on_after(0.01):
            await broker.open_async()

    trio.run(main)
    for thread in threading.enumerate():
        if thread.name == "pykbroker call":
            thread.join(20)
    assert not broker.is_open


def test_the_hosts_loop_runs_while_the_broker_starts_and_works() -> None:
    async def main() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async with Broker() as broker:
            assert ticks
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                await producer.send_and_wait("t", b"one")
            async with AIOKafkaConsumer(
                "t", bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
            ) as consumer:
                assert (await asyncio.wait_for(consumer.getone(), 30)).value == b"one"
                await consumer.commit()
                await broker.wait_for(group="g", state="stable", members=1)
                await broker.wait_for(group="g", lag=0)
        ticking.cancel()

    asyncio.run(main())


def test_a_cluster_serves_coroutines() -> None:
    async def main() -> None:
        async with Cluster(brokers=3) as cluster:
            topic = await cluster.create_topic("t")
            await topic.produce("one")
            await cluster.broker(1).kill()
            await topic.produce("two")
            await cluster.broker(1).start()
            assert [broker.is_running for broker in cluster.brokers] == [True] * 3
            assert await topic.values() == [b"one", b"two"]

    trio.run(main)


def test_what_blocks_is_refused_in_the_brokers_own_thread() -> None:
    with Broker() as broker:

        async def ask(*_: object) -> None:
            broker.topics()

        with pytest.raises(RuntimeError, match="would wait for itself"):
            broker.call(ask)
