"""A whole node that writes snapshots of its metadata all the time, and loses power again and again."""

from __future__ import annotations

from typing import cast

import pytest
import trio

from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.server.serving import Client
from tests.sim.whole_node import World, run_world
from tests.simulations import seed_groups, skip_when_time_is_up

DIRECTORY = "/data/__cluster_metadata-0"
OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "500",
    "metadata.max.retention.bytes": "1",
    "internal.metadata.log.segment.bytes": "10000",
    "internal.metadata.delete.delay.millis": "10",
}
CRASHES = 6


async def create_topics(world: World, client: Client, created: set[str]) -> None:
    """One after another, until it is cancelled; `created` are those whose answer came."""
    while True:
        name = f"topic-{world.rng.getrandbits(64):x}"
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        response = cast(CreateTopicsResponse, await client.ask(CreateTopicsRequest(topics=[topic]), 7))
        assert response.topics[0].error_code == 0
        created.add(name)
        await trio.sleep(world.rng.uniform(0, 0.03))


async def topics(client: Client) -> set[str]:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    response = cast(MetadataResponse, await client.ask(request, 9))
    return {topic.name or "" for topic in response.topics}


def snapshots(world: World) -> list[str]:
    return [name for name in world.node.disk.list_directory(DIRECTORY) if name.endswith(".checkpoint")]


async def remove_snapshots_but_the_last(world: World, created: set[str]) -> None:
    """Create topics until the node has removed all snapshots but the last. Raises trio.TooSlowError."""
    client = await world.connect()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(create_topics, world, client, created)
            while len(snapshots(world)) > 1:  # noqa: ASYNC110 - a directory has no event
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()
    client.transport.close()


@seed_groups(2)
@pytest.mark.flaky(reruns=0)
def test_every_topic_that_was_answered_is_there_after_every_crash(seeds: range) -> None:
    skip_when_time_is_up()
    begins: list[int] = []

    async def scenario(world: World) -> None:
        created: set[str] = set()
        for _ in range(CRASHES):
            client = await world.connect()
            with trio.move_on_after(world.rng.uniform(0.05, 0.2)):
                await create_topics(world, client, created)
            await world.node.crash()
            client.transport.close()
            await world.start()
            client = await world.connect()
            found = await topics(client)
            # The topic that was under way may be there or not; once seen it stays.
            assert created <= found
            assert len(found) <= len(created) + 1
            created = found
            client.transport.close()
        # Each crash may have come between the writing of a snapshot and the removal of those before it.
        await remove_snapshots_but_the_last(world, created)
        await world.node.stop()
        names = world.node.disk.list_directory(DIRECTORY)
        assert 1 <= len(snapshots(world)) <= 2
        begins.append(min(int(name.removesuffix(".log")) for name in names if name.endswith(".log")))

    for seed in seeds:
        run_world(scenario, seed, OFTEN)
    assert min(begins) > 0, "the log lost its beginning in every run"
