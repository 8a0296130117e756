"""A whole node in a simulated world: reproducible, and honest about what a crash loses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
import trio

from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.sim.node import SimulatedNode
from pykbroker.sim.process import ProcessDied
from tests.server.serving import Client
from tests.sim.whole_node import TOPIC, World, produce_crash_and_read, run_world
from tests.simulations import seed_groups, skip_when_time_is_up

ROOT = Path(__file__).parents[2]


def test_one_seed_gives_one_trace() -> None:
    first = run_world(produce_crash_and_read, seed=3)
    assert run_world(produce_crash_and_read, seed=3) == first
    assert run_world(produce_crash_and_read, seed=4) != first
    assert len(first) > 40


def test_one_seed_gives_one_trace_in_every_process() -> None:
    outputs = set()
    for hash_seed in ("0", "1", "12345"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.sim.whole_node", "5"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_crash_loses_only_what_was_not_synced() -> None:
    """What is left is a beginning of what was written, whole and at the same offsets; the topic itself was synced."""
    lost = []

    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        written = [b"value %d" % number for number in range(50)]
        for at in range(0, 50, 5):
            await world.produce(client, written[at : at + 5])
        await world.node.crash()
        client.transport.close()
        await world.start()
        client = await world.connect()
        left = await world.read_all(client)
        assert left == written[: len(left)]
        lost.append(len(written) - len(left))
        assert await world.produce(client, [b"after"]) == len(left)
        client.transport.close()

    for seed in range(20):
        run_world(scenario, seed)
    assert max(lost) > 0, "a crash that never loses anything is none"
    assert min(lost) < 50, "and one that always loses everything is none either"


def test_a_clean_shutdown_loses_nothing() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        written = [b"value %d" % number for number in range(20)]
        await world.produce(client, written)
        client.transport.close()
        await world.node.stop()
        world.node.disk.crash()
        await world.start()
        client = await world.connect()
        assert await world.read_all(client) == written
        client.transport.close()

    for seed in range(10):
        run_world(scenario, seed)


@seed_groups(2)
@pytest.mark.flaky(reruns=0)
def test_a_node_survives_many_crashes(seeds: range) -> None:
    skip_when_time_is_up()

    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        for number in range(10):
            await world.produce(client, [b"before crash %d" % number])
            with trio.move_on_after(world.rng.uniform(0, 0.02)):
                while True:
                    await world.produce(client, [b"more"])
            await world.node.crash()
            client.transport.close()
            await world.start()
            client = await world.connect()
            await world.read_all(client)
        client.transport.close()

    for seed in seeds:
        run_world(scenario, seed)


def test_two_nodes_in_one_process_share_nothing() -> None:
    async def scenario(world: World) -> None:
        other = SimulatedNode(world.rng, world.network, port=9093)
        ready = await other.start(world.nursery)
        assert ready.cluster_id not in world.trace[0]
        client = await world.connect()
        await world.create_topic(client)
        other_client = Client(await world.network.connect("127.0.0.1", 9093))
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        here = cast(MetadataResponse, await client.ask(request, 9))
        there = cast(MetadataResponse, await other_client.ask(request, 9))
        assert [topic.name for topic in here.topics] == [TOPIC]
        assert there.topics == []
        await other.crash()
        assert await world.produce(client, [b"still here"]) == 0
        client.transport.close()
        other_client.transport.close()

    run_world(scenario, seed=1)


def test_a_killed_process_loses_nothing_that_was_written() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        written = [b"value %d" % number for number in range(10)]
        await world.produce(client, written)
        await world.node.kill()
        assert await client.is_closed()
        await world.start()
        client = await world.connect()
        assert await world.read_all(client) == written
        client.transport.close()

    for seed in range(5):
        run_world(scenario, seed)


def live_until(change: int) -> int:
    """Dies in front of one of the changes of its disk, its start included. Returns how many the first life made."""
    changes = 0

    async def scenario(world: World) -> None:
        nonlocal changes
        await world.node.stop()
        written: list[bytes] = []
        try:
            await world.node.start(world.nursery, dies_at=change)
            client = await world.connect()
            await world.create_topic(client)
            for number in range(5):
                await world.produce(client, [b"value %d" % number])
                written.append(b"value %d" % number)
        except (ProcessDied, EOFError, trio.BrokenResourceError):
            assert world.node.process.is_dead
            assert world.node.process.changes == change
        changes = world.node.process.changes
        if not world.node.process.is_dead:
            await world.node.kill()
        await world.node.wait_until_ended()
        await world.start()
        client = await world.connect()
        await world.create_topic(client)
        found = await world.read_all(client)
        assert found[: len(written)] == written
        assert len(found) <= len(written) + 1
        client.transport.close()

    run_world(scenario, seed=1)
    return changes


def test_a_process_dies_in_front_of_any_change_of_its_disk_and_nothing_acknowledged_is_lost() -> None:
    changes = live_until(1_000)
    assert changes > 15
    for change in range(changes):
        assert live_until(change) == change
