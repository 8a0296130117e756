"""Dead letters of node 1 on their way to broker 2, which leads their topic, answers with errors, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
)
from pykbroker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.listener import Listener
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.receive_buffer import BufferPool
from pykbroker.server.runtime.log_lines import RateLimitedLog
from pykbroker.server.runtime.turns import Turn
from pykbroker.server.sharing.led_share_partition import LedSharePartition
from pykbroker.server.sharing.share_partitions import outcome_of
from pykbroker.sharing.dead_letters import MOST_LETTERS
from pykbroker.sharing.partition.values import Acknowledgement, AcquireMode, FetchedBatch
from pykbroker.sharing.persister import NO_LEADER_EPOCH, Initialization, Reading, SharePartitionKey
from pykbroker.sharing.sessions import TopicIdPartition
from pykbroker.sim.clock import SimulatedClock
from tests.api.api_node import ApiNode, in_virtual_time
from tests.server.serving import connection_quotas, dispatcher_of, limits, refusals_log

HERE, THERE, DEAF = 1, 2, 3
GROUP = "readers"
REJECT = 3
ARCHIVED = 4
PASSING = ErrorCode.NOT_LEADER_OR_FOLLOWER
Letter = tuple[int, bytes | None, str]
"""Offset of the record, its value, and the reason."""


class Topics:
    """Broker 2. letters: what was written, batch by batch. told: errors that answer the next requests."""

    def __init__(self) -> None:
        self.letters: list[list[Letter]] = []
        self.told: list[ErrorCode] = []

    @property
    def offsets(self) -> list[int]:
        return [offset for batch in self.letters for offset, _, _ in batch]

    def _handlers(self, *, is_deaf: bool) -> HandlerTable[Any]:
        table: HandlerTable[Any] = HandlerTable("broker")

        @table.handles(ApiVersionsRequest, needs=NOTHING)
        async def api_versions(context: RequestContext[Any], request: ApiVersionsRequest) -> ApiVersionsResponse:
            rows = [
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, low, high in ((18, 0, 4), (0, 3, 13))
            ]
            return ApiVersionsResponse(api_keys=rows)

        @table.handles(ProduceRequest, needs=NOTHING)
        async def produce(context: RequestContext[Any], request: ProduceRequest) -> ProduceResponse:
            if is_deaf:
                await trio.sleep_forever()
            (topic,) = request.topic_data
            (data,) = topic.partition_data
            assert (request.acks, data.index) == (-1, 0)
            error = self.told.pop(0) if self.told else ErrorCode.NONE
            if error is ErrorCode.NONE:
                assert data.records is not None
                (batch,) = iter_batches(bytes(data.records))
                batch.ensure_valid()
                self.letters.append([_letter(record) for record in iter_records(batch)])
            row = PartitionProduceResponse(index=0, error_code=error, base_offset=0)
            answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[row])
            return ProduceResponse(responses=[answer])

        return table

    @asynccontextmanager
    async def serving(self, node: ApiNode, host: str = "there", *, is_deaf: bool = False) -> AsyncIterator[None]:
        acceptor = await node.network.listen(host, 9093)
        clock = SimulatedClock()
        listener = Listener(
            "PLAINTEXT",
            acceptor,
            dispatcher_of(self._handlers(is_deaf=is_deaf)),
            limits(),
            BufferPool(),
            RateLimitedLog(refusals_log, clock),
            connection_quotas("PLAINTEXT", clock),
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve)
            yield
            listener.stop()
            nursery.cancel_scope.cancel()


def _letter(record: Any) -> Letter:
    headers = {name: value.decode() for name, value in record.headers}
    assert (headers["__dlq.errors.topic"], headers["__dlq.errors.group"]) == ("books", GROUP)
    return int(headers["__dlq.errors.offset"]), record.value, headers["__dlq.errors.message"]


class Scene:
    """A share group of node 1 that reads `books`, and whose letters go to broker 2."""

    def __init__(self, path: Path) -> None:
        self.node = ApiNode(path)
        self.topics = Topics()
        self.node.replay(
            FeatureLevelRecord(name="share.version", feature_level=2),
            RegisterBrokerRecord(
                broker_id=DEAF, end_points=[BrokerEndpoint(name="PLAINTEXT", host="deaf", port=9093)], fenced=False
            ),
        )
        self.topic_id = self.node.create_topic("books")
        for name, leader in (("dlq.books", THERE), ("dlq.deaf", DEAF)):
            self.node.create_topic(name, leader=leader)
            enabled = "errors.deadletterqueue.group.enable"
            self.node.replay(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=enabled, value="true"))
        self.configure("share.auto.offset.reset", "earliest")
        self.configure("errors.deadletterqueue.topic.name", "dlq.books")
        self.shares = self.node.broker.share_partitions

    def configure(self, name: str, value: str, group: str = GROUP) -> None:
        self.node.replay(ConfigRecord(resource_type=GROUP_RESOURCE, resource_name=group, name=name, value=value))

    def key(self, group: str = GROUP) -> SharePartitionKey:
        return SharePartitionKey(group, self.topic_id, 0)

    async def led(self, group: str = GROUP) -> LedSharePartition:
        (led,) = await self.shares.load([self.key(group)], Turn())
        assert isinstance(led, LedSharePartition)
        while led.active is None:
            assert led.error is None, led.error
            await trio.sleep(0.01)
        return led

    async def acquire(self, records: int, group: str = GROUP) -> int:
        """Have the member acquire all that there is; return the first offset."""
        led = await self.led(group)
        assert led.active is not None
        offset = led.active.next_fetch_offset()
        led.active.acquire(
            "anna",
            AcquireMode.BATCH_OPTIMIZED,
            records,
            records,
            offset,
            [FetchedBatch(offset, offset + records - 1)],
            self.shares.limits(group),
            self.node.clock.monotonic_ms(),
        )
        self.shares.schedule(led)
        return offset

    async def reject(self, records: int, group: str = GROUP) -> object:
        """Return why that was not done; None where it was."""
        first = await self.acquire(records, group)
        words = [Acknowledgement(first, first + records - 1, [REJECT])]
        (outcome,) = await self.shares.begin_to_acknowledge(
            group, "anna", [(TopicIdPartition(self.topic_id, 0), words)], Turn()
        )
        return await outcome_of(outcome)

    def counts(self) -> tuple[int, int, int]:
        """Return how many letters were written, by how many requests, and how often some were given up."""
        counts = self.shares.traffic.letters[GROUP]
        return counts.letters, counts.requests, counts.failed

    async def start_offset(self, group: str = GROUP) -> int:
        led = await self.led(group)
        assert led.active is not None
        return led.active.start_offset

    async def until(self, condition: Callable[[], bool], within_s: float = 300) -> None:
        with trio.fail_after(within_s):
            while not condition():  # noqa: ASYNC110 - of virtual time
                await trio.sleep(0.05)

    async def until_settled(self, offset: int, group: str = GROUP) -> None:
        led = await self.led(group)
        await self.until(lambda: led.active is not None and led.active.start_offset == offset and not led.is_writing)


def at_work(scene: Scene, test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        scene.node.persister.state.initialize([Initialization(scene.key(), 1, 0)])
        async with trio.open_nursery() as nursery:
            await nursery.start(scene.shares.run)
            await test()
            nursery.cancel_scope.cancel()
        await scene.node.transactions.inter_broker.aclose()

    in_virtual_time(run)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_letters_are_written_in_order_a_bounded_batch_at_a_time_and_records_settled_behind_them(scene: Scene) -> None:
    scene.configure("share.partition.max.record.locks", "1000")

    async def test() -> None:
        async with scene.topics.serving(scene.node):
            assert await scene.reject(1000) is None
            await scene.until_settled(1000)
            assert scene.topics.offsets == list(range(1000))
            assert {len(batch) for batch in scene.topics.letters} == {MOST_LETTERS}
            assert {reason for batch in scene.topics.letters for *_, reason in batch} == {"Offset rejected by client."}
            assert scene.counts() == (1000, 1000 // MOST_LETTERS, 0)

    at_work(scene, test)


def test_copies_have_the_records_value(scene: Scene) -> None:
    scene.configure("errors.deadletterqueue.copy.record.enable", "true")
    scene.node.append("books", b"a", b"b")
    scene.node.append("books", b"c")

    async def test() -> None:
        async with scene.topics.serving(scene.node):
            assert await scene.reject(3) is None
            await scene.until_settled(3)
        assert [value for batch in scene.topics.letters for _, value, _ in batch] == [b"a", b"b", b"c"]

    at_work(scene, test)


def test_what_fails_for_a_while_is_tried_again(scene: Scene) -> None:
    scene.topics.told = [PASSING, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_ID, PASSING]

    async def test() -> None:
        async with scene.topics.serving(scene.node):
            began = trio.current_time()
            assert await scene.reject(2) is None
            await scene.until_settled(2)
            assert scene.topics.offsets == [0, 1]
            assert 15 <= trio.current_time() - began < 20

    at_work(scene, test)


def test_behind_five_failures_letters_are_given_up_but_not_those_that_came_later(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.topics.told = [PASSING] * 5

    async def test() -> None:
        async with scene.topics.serving(scene.node):
            assert await scene.reject(2) is None
            await scene.until(lambda: len(scene.topics.told) < 4)
            assert await scene.reject(3) is None
            await scene.until_settled(5)
            assert scene.topics.offsets == [2, 3, 4]
            assert scene.counts() == (3, 6, 1)

    at_work(scene, test)
    (line,) = [each.getMessage() for each in caplog.records if "without a dead letter" in each.getMessage()]
    assert line.startswith("2 records of <share partition readers:books-0 ACTIVE> from offset 0 on are archived")


def test_letters_that_are_refused_are_given_up_at_once(scene: Scene) -> None:
    scene.topics.told = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]

    async def test() -> None:
        async with scene.topics.serving(scene.node):
            began = trio.current_time()
            assert await scene.reject(2) is None
            await scene.until_settled(2)
            assert scene.topics.offsets == []
            assert trio.current_time() - began < 1
            assert await scene.reject(1) is None
            await scene.until_settled(3)
            assert scene.topics.offsets == [2]
            assert scene.counts() == (1, 2, 1)

    at_work(scene, test)


def test_who_leads_next_writes_the_letters_that_are_not_written(scene: Scene) -> None:
    async def test() -> None:
        assert await scene.reject(3) is None, "nobody answers at broker 2"
        await trio.sleep(2)
        scene.node.change_partition("books", 0, leader=THERE, isr=[HERE, THERE])
        await trio.sleep(60)
        scene.node.change_partition("books", 0, leader=HERE)
        async with scene.topics.serving(scene.node):
            assert not scene.shares.traffic.letters, "the group was forgotten here"
            await scene.led()
            await scene.until_settled(3)
            assert scene.topics.offsets == [0, 1, 2]
            (state,) = await scene.node.persister.read([Reading(scene.key(), NO_LEADER_EPOCH)])
            assert {each.delivery_state for each in state.batches} <= {ARCHIVED}

    at_work(scene, test)


def test_where_nobody_writes_letters_records_are_settled_at_once_and_those_of_an_earlier_leader_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's `NoOpShareGroupDLQManager`."""

    async def test() -> None:
        assert await scene.reject(3) is None, "nobody answers at broker 2"
        monkeypatch.setattr(scene.shares, "_writes_letters", False)
        scene.node.change_partition("books", 0, leader=THERE, isr=[HERE, THERE])
        await trio.sleep(60)
        scene.node.change_partition("books", 0, leader=HERE)
        await scene.led()
        await scene.until_settled(3)
        assert await scene.reject(5) is None
        await scene.until_settled(8)
        assert not scene.topics.letters

    at_work(scene, test)


def test_there_is_no_letter_before_it_is_persisted_that_nobody_gets_the_record(scene: Scene) -> None:
    scene.configure("share.record.lock.duration.ms", "15000")
    scene.configure("share.delivery.count.limit", "2")

    async def test() -> None:
        async with scene.topics.serving(scene.node):
            await scene.led()
            scene.node.persister.errors.append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            refused = await scene.reject(1)
            assert getattr(refused, "code", None) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            await trio.sleep(0.5)
            assert scene.topics.offsets == []
            await trio.sleep(16)  # the lock is over
            await scene.acquire(1)
            scene.node.persister.errors += [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
            await trio.sleep(16)
            assert scene.topics.offsets == []
            await scene.until_settled(1)
            assert [letter for batch in scene.topics.letters for letter in batch] == [
                (0, None, "Offset delivery count exceeded the threshold.")
            ]

    at_work(scene, test)


def test_groups_whose_topic_is_led_by_a_deaf_broker_keep_no_others_waiting(scene: Scene) -> None:
    others = [f"group-{number}" for number in range(60)]
    for group in others:
        scene.configure("share.auto.offset.reset", "earliest", group)
        scene.configure("errors.deadletterqueue.topic.name", "dlq.deaf", group)
        scene.node.persister.state.initialize([Initialization(scene.key(group), 1, 0)])

    async def test() -> None:
        async with scene.topics.serving(scene.node), scene.topics.serving(scene.node, "deaf", is_deaf=True):
            for group in others:
                assert await scene.reject(1, group) is None
            await trio.sleep(1)
            began = trio.current_time()
            assert await scene.reject(5) is None
            await scene.until_settled(5)
            assert scene.topics.offsets == [0, 1, 2, 3, 4]
            assert trio.current_time() - began < 1

    at_work(scene, test)


def test_letters_without_a_topic_for_them_are_given_up(scene: Scene) -> None:
    scene.node.create_topic("dlq.plain")
    for topic in ("dlq.plain", "dlq.missing", "books"):
        scene.configure("errors.deadletterqueue.topic.name", topic)

    async def test() -> None:
        for number, topic in enumerate(("dlq.plain", "dlq.missing", "books"), 1):
            scene.configure("errors.deadletterqueue.topic.name", topic)
            assert await scene.reject(1) is None
            await scene.until_settled(number)

    at_work(scene, test)


def test_letters_that_wait_for_a_place_get_one_where_others_in_front_of_them_have_ended(scene: Scene) -> None:
    groups = [*(f"group-{number}" for number in range(11)), GROUP]
    for group in groups:
        scene.configure("share.auto.offset.reset", "earliest", group)
        scene.configure("errors.deadletterqueue.topic.name", "dlq.deaf", group)
        scene.node.persister.state.initialize([Initialization(scene.key(group), 1, 0)])

    async def test() -> None:
        async with scene.topics.serving(scene.node), scene.topics.serving(scene.node, "deaf", is_deaf=True):
            for group in groups:
                assert await scene.reject(1, group) is None
            await trio.sleep(1)  # four requests are in flight, and eight groups wait for a place
            for group in groups[:-1]:
                (await scene.led(group)).end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            scene.node.change_partition("dlq.deaf", 0, leader=THERE, isr=[THERE])
            await scene.until(lambda: scene.topics.offsets == [0])

    at_work(scene, test)
