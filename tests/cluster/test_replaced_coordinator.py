"""A coordinator that has not heard of its successor tells no offsets of before: it asks whether it still leads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.server.network.transport import Address
from pykbroker.sim.determinism import run_deterministic
from tests.coordination.stage import ORDERS, Lost, Wire, topic_of

from .nodes import BROKER_PORT, NODE_IDS, host
from .oracles.lives import Lives
from .plan import Kind, Plan
from .stage import ClusterStage

GROUP = "simple"
TOPIC, INDEX = topic_of(ORDERS[0])
SEED = 5
PLAN = replace(Plan.of(SEED), kind=Kind.KILLS, disks_fail=False, is_dynamic=False, has_elr=False, pace=1.0)

Trouble = Callable[[ClusterStage, int], None]


def cut_off(stage: ClusterStage, node_id: int) -> None:
    for other in others_of(node_id):
        stage.network.cut(host(node_id), host(other))


def silence(stage: ClusterStage, node_id: int) -> None:
    for other in others_of(node_id):
        stage.network.cut_one_way(host(node_id), host(other))


def others_of(node_id: int) -> list[int]:
    return [each for each in NODE_IDS if each != node_id]


def at(node_id: int) -> Address:
    return host(node_id), BROKER_PORT


class Scene:
    """Clients see every node, whatever becomes of the links between nodes."""

    def __init__(self, stage: ClusterStage) -> None:
        self.stage = stage
        self.wire = Wire(stage, "client")

    async def coordinator(self, asked: int) -> int | None:
        """Return who coordinates the group by the word of one node."""
        request = FindCoordinatorRequest(coordinator_keys=[GROUP], key_type=0)
        try:
            (found,) = (await self.wire.attempt(lambda: self.wire.ask_at(at(asked), request, 4))).coordinators
        except Lost:
            return None
        return None if found.error_code else int(found.node_id)

    async def set_up(self) -> int:
        """Commit an offset, and return who coordinates the group."""
        await self.commit(1_000)
        coordinator = None
        while coordinator is None:
            coordinator = await self.coordinator(NODE_IDS[0])
        assert await self.told(coordinator) == 1_000
        return coordinator

    async def until_replaced(self, node_id: int) -> int:
        asked = others_of(node_id)[0]
        successor = None
        while successor in (None, node_id):
            await trio.sleep(0.1)
            successor = await self.coordinator(asked)
        assert successor is not None
        return successor

    async def commit(self, offset: int) -> None:
        """Commit at whoever coordinates the group."""
        partition = OffsetCommitRequestPartition(partition_index=INDEX, committed_offset=offset, committed_metadata="")
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
        request = OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, member_id="", topics=topics)
        while True:
            try:
                response = await self.wire.ask(request, 8)
            except Lost:
                continue
            if response.topics[0].partitions[0].error_code == ErrorCode.NONE:
                return
            self.stage.forget_leaders()
            await trio.sleep(0.1)

    async def told(self, node_id: int) -> int | ErrorCode:
        """Return the offset that one node tells, or the error. Raises Lost."""
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[INDEX])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)])
        wire = Wire(self.stage, "observer")
        (group,) = (await wire.attempt(lambda: wire.ask_at(at(node_id), request, 8), timeout_s=60.0)).groups
        return ErrorCode(group.error_code) if group.error_code else int(group.topics[0].partitions[0].committed_offset)


def play(scenario: Callable[[Scene], Awaitable[None]]) -> None:
    lives = Lives()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            stage = ClusterStage(SEED, nursery, PLAN, lives)
            with trio.fail_after(300):
                await stage.cluster.start(nursery)
                await stage.prepare()
                await scenario(Scene(stage))
            stage.network.heal()
            nursery.cancel_scope.cancel()

    with lives.watching():
        run_deterministic(main, seed=SEED)


@pytest.mark.parametrize("trouble", [cut_off, silence], ids=lambda each: each.__name__)
def test_a_coordinator_that_was_replaced_behind_its_back_tells_no_offset(trouble: Trouble) -> None:
    async def scenario(scene: Scene) -> None:
        replaced = await scene.set_up()
        trouble(scene.stage, replaced)
        await scene.until_replaced(replaced)
        await scene.commit(2_000)
        assert await scene.told(replaced) is ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_a_coordinator_that_was_frozen_answers_what_came_meanwhile_with_no_offset_of_before() -> None:
    async def scenario(scene: Scene) -> None:
        replaced = await scene.set_up()
        node = scene.stage.cluster.nodes[replaced]
        node.pause()
        await scene.until_replaced(replaced)
        await scene.commit(2_000)
        answers: list[int | ErrorCode] = []

        async def ask() -> None:
            answers.append(await scene.told(replaced))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
            await trio.sleep(0.5)
            node.resume()
        assert set(answers) <= {2_000, ErrorCode.NOT_COORDINATOR}

    play(scenario)


def test_one_replica_that_has_died_and_is_in_sync_by_name_keeps_no_offset_from_being_told() -> None:
    async def scenario(scene: Scene) -> None:
        coordinator = await scene.set_up()
        await scene.stage.cluster.nodes[others_of(coordinator)[0]].kill()
        assert await scene.told(coordinator) == 1_000

    play(scenario)
