"""A start tells a node's parts of everything that stands in the metadata log, however many partitions that are."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from pykbroker.replication.partition import Partition
from pykbroker.server.logs.hosted_logs import HostedLogs
from tests.api.api_node import ApiNode
from tests.server.test_log_loading import restarted
from tests.server.work_per_step import WorkPerStep
from tests.sim.whole_node import World, run_world

PARTITIONS = 2500
MOST_PER_STEP = 1200
"""The found logs are looked for in turns of 4,000 steps, of which each is four."""


def test_others_run_while_a_node_takes_up_many_partitions_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    work = WorkPerStep(monkeypatch, at_least=PARTITIONS, most=MOST_PER_STEP)
    work.count(HostedLogs, "find")
    work.count(Partition, "apply_state")

    async def scenario(world: World) -> None:
        client = await world.connect()
        await world.create_topic(client)
        client.transport.close()
        await world.node.stop()
        with work.watching():
            await world.start()
        assert set(work.total) == {"find", "apply_state"}

    run_world(scenario, 1, {"num.partitions": str(PARTITIONS)})


def test_what_is_found_is_put_aside_only_when_the_whole_of_the_first_image_is_applied(tmp_path: Path) -> None:
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    node.create_topic("apples", 4, retention_ms="7")
    image, changes = restarted(node, clean=True)
    trio.run(node.replicas.prepare, image, changes)
    portions = list(changes.portions(1))
    assert len(portions) == 4
    for portion in portions:
        node.replicas.apply(image, portion)
    assert all(node.partition("apples", index).log.config.retention_ms == 7 for index in range(4))
    assert not list(tmp_path.glob("*/*-stray"))
    node.create_topic("beets")
    assert node.partition("beets").is_leader


def test_a_log_that_is_lost_is_missed_in_each_portion_of_the_first_image(tmp_path: Path) -> None:
    """Nobody leads it with an empty log, be its partition the last one that is applied."""
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    lost = next(each for each in node.directories if each.path.endswith("two"))
    node.create_topic("apples", 4, directory=lost.directory_id)
    image, changes = restarted(node, clean=True)
    node.replicas.logs.take_offline(next(each for each in node.directories if each.path.endswith("two")))
    trio.run(node.replicas.prepare, image, changes)
    for portion in changes.portions(1):
        node.replicas.apply(image, portion)
    assert list(node.replicas.partitions()) == []
