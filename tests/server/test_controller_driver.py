"""The controller on its raft log: commit before answer, restart, and what a crash leaves."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from crc32c import crc32c
from trio.testing import MockClock, wait_all_tasks_blocked

from pykbroker.config import BrokerConfig
from pykbroker.metadata.controller import Controller
from pykbroker.metadata.features import REGISTERED_FEATURES, SUPPORTED_FEATURES, bootstrap_records
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import BrokerHeartbeatRequest, BrokerRegistrationRequest, Feature
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message
from pykbroker.quotas.controller_mutations import ControllerMutations
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.raft.node import RaftNode, Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.voters import Voter, VoterSet
from pykbroker.server.network.host_addresses import HostAddresses
from pykbroker.server.network.node_connections import NodeConnections
from pykbroker.server.quorum import metadata_log
from pykbroker.server.quorum.controller_driver import ControllerDriver
from pykbroker.server.quorum.encoded_records import EncodedRecords
from pykbroker.server.quorum.metadata_log import MetadataLog
from pykbroker.server.quorum.metadata_publisher import PARTITIONS_AT_ONCE, MetadataPublisher
from pykbroker.server.quorum.raft_channel import RaftChannel
from pykbroker.server.quorum.raft_driver import RaftDriver
from pykbroker.server.runtime.clock import Clock, SystemClock
from pykbroker.server.runtime.threads import OnTheLoop, T, Ts
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.storage.files.disk import Disk, OsDisk
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.segments.log_config import LogConfig
from tests.server.gated_threads import GatedThreads

NODE_ID = 1
CLUSTER_ID = "rGKhQ5uFQ7WqXg2Vd1mY0A"
DIRECTORY = "/data/__cluster_metadata-0"


class Quorum:
    """A quorum of one: raft, the image and the controller on one metadata log."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        threads: OnTheLoop,
        append_linger_ms: int = 0,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        log = MetadataLog.open(disk, directory, LogConfig(), clean_shutdown=False, now_ms=0)
        voters = VoterSet([Voter(NODE_ID, "127.0.0.1", 9093)])
        replica = LocalReplica(NODE_ID, cluster_id=CLUSTER_ID)
        node = RaftNode(replica, voters, log.read_election([NODE_ID]), log, rng=random.Random(NODE_ID))
        channel = RaftChannel(
            NodeConnections(SimulatedNetwork(random.Random(1)), client_id="test", request_timeout_ms=1000)
        )
        self.raft = RaftDriver(node, log, channel, clock=clock, threads=threads, append_linger_ms=append_linger_ms)
        self.metadata = MetadataPublisher(self.raft, log)
        controller = Controller(BrokerConfig({}), node_id=NODE_ID, cluster_id=CLUSTER_ID, rng=random.Random(1))
        self.controller = ControllerDriver(
            self.raft,
            self.metadata,
            controller,
            clock=clock,
            bootstrap=bootstrap_records(),
            mutations=ControllerMutations(QuotaWindows()),
            hosts=HostAddresses(threads),
        )

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.raft.run)
            await nursery.start(self.metadata.run)
            await nursery.start(self.controller.run)
            task_status.started()


def open_quorum(disk: Disk, directory: str = DIRECTORY, *, threads: OnTheLoop | None = None) -> Quorum:
    return Quorum(disk, directory, threads or OnTheLoop())


def simulated_disk() -> SimulatedDisk:
    disk = SimulatedDisk(random.Random(7))
    disk.make_directory("/data")
    return disk


async def register_broker(quorum: Quorum, broker_id: int = NODE_ID) -> BrokerHeartbeatRequest:
    """Return the heartbeat that has unfenced the broker."""
    registration = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=bytes(range(16)),
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in REGISTERED_FEATURES.items()
        ],
        log_dirs=[bytes(range(1, 17))],
    )
    answer = await quorum.controller.submit(registration)
    assert answer.error_code == ErrorCode.NONE
    heartbeat = BrokerHeartbeatRequest(
        broker_id=broker_id, broker_epoch=answer.broker_epoch, current_metadata_offset=quorum.image.offset
    )
    assert (await quorum.controller.submit(heartbeat)).error_code == ErrorCode.NONE
    return heartbeat


async def create_topic(quorum: Quorum, name: str) -> CreateTopicsResponse:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1)])
    response = await quorum.controller.submit(request)
    assert isinstance(response, CreateTopicsResponse)
    return response


def test_topic_is_in_the_image_when_the_answer_comes() -> None:
    async def scenario() -> None:
        quorum = open_quorum(simulated_disk())
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            response = await create_topic(quorum, "orders")
            assert response.topics[0].error_code == ErrorCode.NONE
            topic = quorum.image.topic("orders")
            assert topic is not None
            assert [partition.leader for partition in topic.partitions.values()] == [NODE_ID, NODE_ID]
            nursery.cancel_scope.cancel()

    trio.run(scenario)


def test_nothing_is_answered_or_shown_before_it_is_durable() -> None:
    async def scenario() -> None:
        threads = GatedThreads()
        quorum = open_quorum(simulated_disk(), threads=threads)
        async with trio.open_nursery() as nursery:
            threads.open()
            await nursery.start(quorum.run)
            await register_broker(quorum)
            threads.shut()
            nursery.start_soon(create_topic, quorum, "first")
            nursery.start_soon(create_topic, quorum, "second")
            await wait_all_tasks_blocked()
            assert not quorum.image.topics
            assert len(nursery.child_tasks) == 3
            threads.open()
            await wait_all_tasks_blocked()
            assert set(quorum.image.topics) == {"first", "second"}
            assert len(nursery.child_tasks) == 1
            nursery.cancel_scope.cancel()

    trio.run(scenario)


def test_first_records_that_were_lost_with_their_leader_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-20839: the controller had them in its image already when it lost leadership and leads again.

    The leader's append does not come into the log here: as if its successor had truncated it.
    """

    async def scenario() -> None:
        quorum = open_quorum(simulated_disk())
        propose, lost = quorum.raft.propose, list[EncodedRecords]()

        def lose_first(records: EncodedRecords) -> int:
            if lost:
                return propose(records)
            lost.append(records)
            return quorum.raft.log_end_offset

        monkeypatch.setattr(quorum.raft, "propose", lose_first)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(quorum.run)
            await wait_all_tasks_blocked()
            assert lost
            assert not quorum.image.features
            quorum.raft._raft.resign()
            quorum.raft._work.set()
            with trio.fail_after(20):
                while not quorum.image.features:  # noqa: ASYNC110 - the election is a matter of time
                    await trio.sleep(0.01)
            await register_broker(quorum)
            greatest = {name: high for name, (_, high) in SUPPORTED_FEATURES.items() if high}
            assert quorum.image.features == greatest | {"metadata.version": 30, "share.version": 1}
            nursery.cancel_scope.cancel()

    trio.run(scenario)


class CountingThreads(OnTheLoop):
    def __init__(self) -> None:
        self.count = 0

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        self.count += 1
        return await super().run(fn, *args)


@pytest.mark.parametrize(("append_linger_ms", "flushes"), [(0, 2), (1000, 1)])
def test_a_leader_that_lingers_flushes_once_for_what_comes_meanwhile(append_linger_ms: int, flushes: int) -> None:
    async def scenario() -> None:
        threads = CountingThreads()
        quorum = Quorum(simulated_disk(), DIRECTORY, threads, append_linger_ms)
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            await trio.sleep(5)
            before = threads.count
            nursery.start_soon(create_topic, quorum, "first")
            await trio.sleep(0.5)
            await create_topic(quorum, "second")
            assert set(quorum.image.topics) == {"first", "second"}
            assert threads.count - before == flushes
            nursery.cancel_scope.cancel()

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


def test_what_was_answered_survives_a_crash() -> None:
    disk = simulated_disk()

    async def before_the_crash() -> MetadataImage:
        quorum = open_quorum(disk)
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            await create_topic(quorum, "orders")
            nursery.cancel_scope.cancel()
        return quorum.image

    async def after_the_crash() -> tuple[MetadataImage, int]:
        quorum = open_quorum(disk)
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            nursery.cancel_scope.cancel()
        return quorum.image, quorum.raft.epoch

    before = trio.run(before_the_crash)
    disk.crash()
    after, epoch = trio.run(after_the_crash)
    assert after == before
    assert epoch == 2


def test_listeners_hear_of_a_change_before_the_answer() -> None:
    async def scenario() -> None:
        quorum = open_quorum(simulated_disk())
        heard: list[str] = []

        def listen(image: MetadataImage, changes: ImageChanges) -> None:
            heard.extend(name for name in image.topics if changes.partitions)

        quorum.metadata.subscribe(listen)
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            await create_topic(quorum, "orders")
            assert heard == ["orders"]
            nursery.cancel_scope.cancel()

    trio.run(scenario)


def test_others_run_while_a_large_topic_is_created_and_its_answer_comes_last() -> None:
    async def scenario() -> None:
        quorum = open_quorum(simulated_disk())
        order: list[object] = []
        quorum.metadata.subscribe(lambda _, changes: order.append(len(changes.partitions)))

        async def count_turns() -> None:
            while True:
                await trio.lowlevel.checkpoint()
                order.append("another task")

        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            nursery.start_soon(count_turns)
            order.clear()
            topic = CreatableTopic(name="large", num_partitions=3 * PARTITIONS_AT_ONCE, replication_factor=1)
            await quorum.controller.submit(CreateTopicsRequest(topics=[topic]))
            nursery.cancel_scope.cancel()
        published = [index for index, what in enumerate(order) if what == PARTITIONS_AT_ONCE]
        assert len(published) == 3
        # Tasks that are ready run in any order, so that two portions may follow each other, but not three.
        assert "another task" in order[published[0] : published[2]]
        assert sum(what for what in order if isinstance(what, int)) == 3 * PARTITIONS_AT_ONCE

    trio.run(scenario)


def test_others_run_while_many_topics_are_created_by_one_request() -> None:
    async def scenario() -> None:
        quorum = open_quorum(simulated_disk())
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                await trio.lowlevel.checkpoint()
                turns += 1

        names = [f"topic-{number}" for number in range(1000)]
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            nursery.start_soon(count_turns)
            steps = handled_requests(quorum)
            topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
            response = await quorum.controller.submit(CreateTopicsRequest(topics=topics))
            nursery.cancel_scope.cancel()
        assert [(each.name, each.error_code) for each in response.topics] == [(name, 0) for name in names]
        assert all(quorum.image.topic(name) is not None for name in names)
        assert max(len(request.topics) for request in steps) < 100
        assert turns >= len(steps) > 10

    trio.run(scenario)


def handled_requests(quorum: Quorum) -> list[CreateTopicsRequest]:
    """What the controller is given from now on."""
    given: list[CreateTopicsRequest] = []
    controller = quorum.controller._controller
    handle = controller.handle_in_turns

    def note(request: Message, *args: Any, **values: Any) -> Any:
        assert isinstance(request, CreateTopicsRequest)
        given.append(request)
        return handle(request, *args, **values)

    controller.handle_in_turns = note  # type: ignore[method-assign]
    return given


class ClockThatIsSet(SystemClock):
    ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


def test_a_heartbeat_counts_from_its_arrival_and_not_from_its_step() -> None:
    async def scenario() -> None:
        clock = ClockThatIsSet()
        quorum = Quorum(simulated_disk(), DIRECTORY, OnTheLoop(), clock=clock)
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            heartbeat = await register_broker(quorum, broker_id=2)
            controller = quorum.controller._controller
            handle = controller.handle_in_turns
            session_ends = [controller.next_deadline_ms()]

            def note(*args: Any, **values: Any) -> Any:
                session_ends.append(controller.next_deadline_ms())
                return handle(*args, **values)

            controller.handle_in_turns = note  # type: ignore[method-assign]
            clock.ahead_ms += 4_000
            await quorum.controller.submit(heartbeat)
            nursery.cancel_scope.cancel()
        first, at_its_step = session_ends
        assert first is not None
        assert at_its_step is not None
        assert at_its_step - first >= 4_000

    trio.run(scenario)


def test_a_fault_of_the_rules_is_told_to_whoever_asked_and_the_controller_goes_on() -> None:
    async def scenario() -> None:
        quorum = open_quorum(simulated_disk())
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            controller = quorum.controller._controller
            handle = controller.handle_in_turns

            def fail_once(*args: Any, **values: Any) -> Any:
                controller.handle_in_turns = handle  # type: ignore[method-assign]
                yield 1
                raise ZeroDivisionError

            controller.handle_in_turns = fail_once  # type: ignore[method-assign]
            with pytest.raises(ZeroDivisionError):
                await create_topic(quorum, "orders")
            assert quorum.image.topic("orders") is None
            await create_topic(quorum, "orders")
            assert quorum.image.topic("orders") is not None
            nursery.cancel_scope.cancel()

    trio.run(scenario)


def test_what_people_ask_for_is_a_line_in_the_log_and_what_nodes_ask_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        quorum = open_quorum(simulated_disk())
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            await register_broker(quorum)
            await create_topic(quorum, "orders")
            bad_name = CreatableTopic(name="a\nb", num_partitions=1, replication_factor=1)
            good_name = CreatableTopic(name="parcels", num_partitions=1, replication_factor=1)
            await quorum.controller.submit(CreateTopicsRequest(topics=[bad_name, good_name]))
            await quorum.controller.submit(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]))
            nursery.cancel_scope.cancel()

    with caplog.at_level(logging.INFO, "pykbroker.server.quorum.controller_driver"):
        trio.run(scenario)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(": ")[2] for line in lines if line.startswith("metadata records")] == [
        "CreateTopics orders",
        r"CreateTopics a\nb, parcels",
        "DeleteTopics orders",
    ]


def test_a_cancelled_caller_loses_the_answer_and_not_the_effect() -> None:
    async def scenario() -> None:
        threads = GatedThreads()
        quorum = open_quorum(simulated_disk(), threads=threads)
        async with trio.open_nursery() as nursery:
            threads.open()
            await nursery.start(quorum.run)
            await register_broker(quorum)
            threads.shut()
            async with trio.open_nursery() as callers:
                callers.start_soon(create_topic, quorum, "orders")
                await wait_all_tasks_blocked()
                callers.cancel_scope.cancel()
            threads.open()
            await wait_all_tasks_blocked()
            assert "orders" in quorum.image.topics
            nursery.cancel_scope.cancel()

    trio.run(scenario)


def test_a_bad_record_in_the_log_is_named(tmp_path: Path) -> None:
    disk = OsDisk()
    log = MetadataLog.open(disk, str(tmp_path / "log"), LogConfig(), clean_shutdown=False, now_ms=0)
    log.append_records(bootstrap_records(), 1, 0)
    log.flush()
    (segment,) = (tmp_path / "log").glob("*.log")
    batch = bytearray(segment.read_bytes())
    frame_version = batch.index(b"\x01\x0c")
    batch[frame_version] = 9
    log.abandon()

    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    segment.write_bytes(batch)
    damaged = MetadataLog.open(disk, str(tmp_path / "log"), LogConfig(), clean_shutdown=False, now_ms=0)
    with pytest.raises(CorruptLog, match="offset 0: metadata record with frame version 9"):
        list(damaged.read())
    damaged.abandon()


def test_a_log_is_read_in_pieces_that_may_end_within_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "READ_BYTES", 1000)
    log = MetadataLog.open(OsDisk(), str(tmp_path / "log"), LogConfig(), clean_shutdown=False, now_ms=0)
    written = bootstrap_records() * 20
    for first in range(0, len(written), 3):
        log.append_records(written[first : first + 3], 1, 0)
    assert [record.message for record in log.read()] == written
    log.abandon()


def test_the_quorum_state_names_the_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(OsDisk(), str(tmp_path / "log"))
        async with trio.open_nursery() as nursery:
            await nursery.start(quorum.run)
            assert quorum.raft.role is Role.LEADER
            nursery.cancel_scope.cancel()

    trio.run(scenario)
    assert (tmp_path / "log" / "quorum-state").read_text() == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
