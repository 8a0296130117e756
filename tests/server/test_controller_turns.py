"""However many partitions a step of the controller is about: others have their turn, and nobody sees a part of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.metadata import configs
from pykbroker.metadata.elections import PartitionElections
from pykbroker.metadata.features import REGISTERED_FEATURES
from pykbroker.metadata.image import TOPIC_RESOURCE, MetadataImage
from pykbroker.metadata.partition_index import PartitionIndex
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    Feature,
)
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.reassignments import ElectLeadersRequest
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message
from pykbroker.server.quorum import encoded_records, metadata_log
from tests.metadata.cluster import directory_id
from tests.server.test_controller_driver import CLUSTER_ID, NODE_ID, Quorum, open_quorum, simulated_disk
from tests.server.work_per_step import WorkPerStep

PARTITIONS = 3000
MOST_PER_STEP = 1200
"""Of any work on one partition. A turn has 4,000 steps, and the cheapest of these works counts as four."""

Scenario = Callable[[Quorum], Awaitable[None]]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> WorkPerStep:
    return WorkPerStep(monkeypatch, at_least=PARTITIONS, most=MOST_PER_STEP)


def run(scenario: Scenario) -> None:
    async def main() -> None:
        quorum = open_quorum(simulated_disk())
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await scenario(quorum)
            nursery.cancel_scope.cancel()

    trio.run(main)


async def join(quorum: Quorum, broker_id: int) -> None:
    registration = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=bytes([broker_id]) * 16,
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in REGISTERED_FEATURES.items()
        ],
        log_dirs=[directory_id(broker_id)],
    )
    assert (await quorum.controller.submit(registration)).error_code == ErrorCode.NONE
    assert not (await beat(quorum, broker_id)).is_fenced


async def beat(quorum: Quorum, broker_id: int, **wants: bool) -> BrokerHeartbeatResponse:
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=quorum.image.brokers[broker_id].epoch,
        current_metadata_offset=quorum.image.offset,
        **wants,
    )
    response: BrokerHeartbeatResponse = await quorum.controller.submit(request)
    assert response.error_code == ErrorCode.NONE
    return response


def creation(name: str, partitions: int = PARTITIONS, replicas: int = 1) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)]
    )


async def create(quorum: Quorum, name: str, partitions: int = PARTITIONS, replicas: int = 1) -> None:
    response = await quorum.controller.submit(creation(name, partitions, replicas))
    assert response.topics[0].error_code == ErrorCode.NONE


def partitions_of(image: MetadataImage, name: str) -> int:
    topic = image.topic(name)
    return 0 if topic is None else len(topic.partitions)


def count_replays(work: WorkPerStep) -> None:
    work.count(MetadataImage, "_apply")
    work.count(encoded_records, "encode_record")


def test_others_run_while_a_topic_of_many_partitions_is_decided_recorded_and_shown(work: WorkPerStep) -> None:
    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        count_replays(work)
        work.count(PartitionState, "to_record")
        with work.watching():
            await create(quorum, "large")

    run(scenario)


def test_others_run_while_partitions_are_added(work: WorkPerStep) -> None:
    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        names = [f"grows-{number}" for number in range(10)]
        for name in names:
            await create(quorum, name, 1)
        count_replays(work)
        work.count(PartitionState, "to_record")
        count = PARTITIONS // len(names) + 1
        wanted = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in names]
        with work.watching():
            await quorum.controller.submit(CreatePartitionsRequest(topics=wanted))
        assert all(partitions_of(quorum.image, name) == count for name in names)

    run(scenario)


@pytest.mark.parametrize("want", ["want_fence", "want_shut_down"])
def test_others_run_while_what_a_broker_led_gets_other_leaders(work: WorkPerStep, want: str) -> None:
    async def scenario(quorum: Quorum) -> None:
        for broker_id in (NODE_ID, 2):
            await join(quorum, broker_id)
        await create(quorum, "large", replicas=2)
        count_replays(work)
        work.count(PartitionElections, "change")
        with work.watching():
            await beat(quorum, 2, **{want: True})
        topic = quorum.image.topic("large")
        assert topic is not None
        assert {(each.leader, each.isr) for each in topic.partitions.values()} == {(NODE_ID, (NODE_ID,))}

    run(scenario)


def test_others_run_while_partitions_get_leaders_again(work: WorkPerStep) -> None:
    async def scenario(quorum: Quorum) -> None:
        for broker_id in (NODE_ID, 2):
            await join(quorum, broker_id)
        await create(quorum, "large")
        await beat(quorum, 2, want_fence=True)
        count_replays(work)
        work.count(PartitionElections, "change")
        with work.watching(at_least=PARTITIONS // 2):
            await beat(quorum, 2)
        topic = quorum.image.topic("large")
        assert topic is not None
        assert {each.leader for each in topic.partitions.values()} == {NODE_ID, 2}

    run(scenario)


def test_others_run_while_leaders_are_elected_for_all_partitions(work: WorkPerStep) -> None:
    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        await create(quorum, "large")
        work.count(MetadataImage, "topic")
        with work.watching():
            await quorum.controller.submit(ElectLeadersRequest(election_type=0, topic_partitions=None))

    run(scenario)


def test_others_run_while_a_request_that_repeats_one_name_is_refused(work: WorkPerStep) -> None:
    """Whatever is said of one name is said in one step of the controller."""

    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        await create(quorum, "t", 1)
        alteration = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="t")
        work.count(configs, "check_named_once")
        with work.watching():
            request = IncrementalAlterConfigsRequest(resources=[alteration] * PARTITIONS)
            response = await quorum.controller.submit(request)
        assert [each.error_code for each in response.responses] == [ErrorCode.INVALID_REQUEST] * PARTITIONS

    run(scenario)


def test_others_run_while_a_topic_of_many_partitions_is_forgotten(work: WorkPerStep) -> None:
    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        await create(quorum, "large")
        work.count(PartitionIndex, "_remove")
        with work.watching():
            await quorum.controller.submit(DeleteTopicsRequest(topics=[DeleteTopicState(name="large")]))
            await beat(quorum, NODE_ID)  # whose step comes when the one before is over
        assert not quorum.image.topics

    run(scenario)


def test_others_run_while_a_node_reads_the_log_at_its_start(work: WorkPerStep) -> None:
    disk = simulated_disk()

    async def start(create_topics: bool) -> None:
        quorum = open_quorum(disk)
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            if create_topics:
                await join(quorum, NODE_ID)
                await create(quorum, "large")
                for number in range(100):
                    await create(quorum, f"small-{number}", 20)
            assert partitions_of(quorum.image, "large") == PARTITIONS
            nursery.cancel_scope.cancel()

    async def start_anew() -> None:
        work.count(metadata_log, "decode_record")
        work.count(MetadataImage, "_apply")
        work.count(PartitionIndex, "_add")
        with work.watching():
            await start(create_topics=False)

    trio.run(start, True)
    trio.run(start_anew)


def test_readers_see_a_large_batch_as_a_whole() -> None:
    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        seen = set()
        told = []
        quorum.metadata.subscribe(lambda image, changes: told.append(partitions_of(image, "large")))

        async def read() -> None:
            while True:
                seen.add(partitions_of(quorum.image, "large"))
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await create(quorum, "large")
            nursery.cancel_scope.cancel()
        assert seen == {0, PARTITIONS}
        assert set(told) == {PARTITIONS}

    run(scenario)


def handled(quorum: Quorum) -> list[Message]:
    """The requests that the controller is given from now on."""
    given: list[Message] = []
    controller = quorum.controller._controller
    handle = controller.handle_in_turns

    def note(request: Message, *args: Any, **values: Any) -> Any:
        given.append(request)
        return handle(request, *args, **values)

    controller.handle_in_turns = note  # type: ignore[method-assign]
    return given


def test_what_a_broker_asks_comes_before_what_clients_ask() -> None:
    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        given = handled(quorum)
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(create, quorum, f"topic-{number}", 600)
            while not given:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(beat, quorum, NODE_ID)
        kinds = [type(each) for each in given]
        assert kinds == [CreateTopicsRequest, BrokerHeartbeatRequest, *[CreateTopicsRequest] * 4]

    run(scenario)


def test_what_waits_for_its_step_goes_with_whoever_asked_for_it() -> None:
    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        given = handled(quorum)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(create, quorum, "first")
            while not given:
                await trio.lowlevel.checkpoint()
            with trio.move_on_after(0):
                await create(quorum, "second")
        await wait_all_tasks_blocked()
        assert len(given) == 1
        assert set(quorum.image.topics) == {"first"}

    run(scenario)


@pytest.mark.parametrize("turns", [0, 1, 8, 20, 35, 50, 58, 64, 70, 90, 120])
def test_a_controller_that_resigns_within_a_step_has_all_of_its_records_or_none(turns: int) -> None:
    """A quorum of one elects itself again, in another epoch."""

    async def scenario(quorum: Quorum) -> None:
        await join(quorum, NODE_ID)
        given = handled(quorum)
        answers = []
        active_again = trio.Event()

        def look() -> None:
            if quorum.controller.is_active:
                active_again.set()

        async def ask() -> None:
            answers.append((await quorum.controller.submit(creation("large"))).topics[0].error_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            while not given:
                await trio.lowlevel.checkpoint()
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            quorum.controller.watch(look)
            quorum.raft._raft.resign()
            quorum.raft._work.set()
        with trio.fail_after(60):
            await active_again.wait()
        assert answers[0] in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER)
        await create(quorum, "later", 10)
        await beat(quorum, NODE_ID)  # whose step comes when the one before is over
        assert partitions_of(quorum.image, "large") in (0, PARTITIONS)
        assert answers[0] != ErrorCode.NONE or partitions_of(quorum.image, "large") == PARTITIONS
        assert quorum.controller._controller.image == quorum.image

    run(scenario)
