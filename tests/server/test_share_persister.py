"""The persister of node 1, where another broker coordinates share partitions, or this one, or nobody for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.metadata.topic_names import SHARE_STATE_TOPIC
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykbroker.server.coordinators.share_persister import PATIENCE_MS
from pykbroker.server.coordinators.share_state_questions import QUESTIONS, WRITE, Question
from pykbroker.server.coordinators.share_state_queues import MOST_READINGS, Queued, ShareStateQueue
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.listener import Listener
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.receive_buffer import BufferPool
from pykbroker.server.runtime.log_lines import RateLimitedLog
from pykbroker.sharing.coordinator.requests import Delete, Initialize, Read, ReadSummary, Write
from pykbroker.sharing.persister import (
    Initialization,
    Outcome,
    PartitionState,
    Reading,
    SharePartitionKey,
    StateBatch,
    Writing,
)
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.network import SimulatedNetwork
from tests.api.api_node import ApiNode, in_virtual_time
from tests.server.serving import connection_quotas, dispatcher_of, limits, refusals_log
from tests.sharing.memory_persister import MemoryShareState

HERE, ELSEWHERE = 1, 2
NONE = ErrorCode.NONE


class OtherCoordinator:
    """Broker 2 with the rules of a share coordinator.

    asked: the kinds of the requests and how many share partitions each has. told: errors that answer the next requests,
    as a whole. takes_s: how long an answer takes. leaves_out: rows of its answers.
    """

    def __init__(self) -> None:
        self.state = MemoryShareState()
        self.asked: list[tuple[str, int]] = []
        self.told: list[ErrorCode] = []
        self.takes_s = 0.0
        self.leaves_out = 0

    def _answers(self, question: Question[Any, Any], asked: Sequence[Any]) -> Any:
        if self.told:
            error_code = self.told.pop(0)
            return [question.failed(question.key(each), error_code, None) for each in asked]
        answer = {
            Initialize: self.state.initialize,
            Read: self.state.read,
            Write: self.state.write,
            Delete: self.state.delete,
            ReadSummary: self.state.read_summary,
        }[question.request]  # type: ignore[index]
        return answer(asked)

    def _handlers(self) -> HandlerTable[Any]:
        table: HandlerTable[Any] = HandlerTable("broker")

        @table.handles(ApiVersionsRequest, needs=NOTHING)
        async def api_versions(context: RequestContext[Any], request: ApiVersionsRequest) -> ApiVersionsResponse:
            served = {18: (0, 4), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1)}
            rows = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in served.items()]
            return ApiVersionsResponse(api_keys=rows)

        for request_type, question in QUESTIONS.items():
            self._serve(table, request_type, question)
        return table

    def _serve(self, table: HandlerTable[Any], request_type: Any, question: Question[Any, Any]) -> None:
        @table.handles(request_type, needs=NOTHING)
        async def answer(context: RequestContext[Any], request: Any) -> Any:
            asked = list(question.asked_in(request))
            self.asked.append((question.verb.split()[0], len(asked)))
            await trio.sleep(self.takes_s)
            topics: dict[bytes, dict[int, Any]] = {}
            for each in self._answers(question, asked)[self.leaves_out :]:
                topics.setdefault(each.key.topic_id, {})[each.key.partition] = question.result(each)
            return question.response(topics)

    @asynccontextmanager
    async def serving(self, network: SimulatedNetwork) -> AsyncIterator[None]:
        acceptor = await network.listen("there", 9093)
        clock = SimulatedClock()
        listener = Listener(
            "PLAINTEXT",
            acceptor,
            dispatcher_of(self._handlers()),
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


class Cluster:
    def __init__(self, node: ApiNode, other: OtherCoordinator) -> None:
        self.node = node
        self.other = other
        self.persister = node.sharing.persister
        self.topic_id = b"orders" + bytes(10)
        node.add_topic("orders", self.topic_id, 300, [ELSEWHERE], ELSEWHERE)

    def key(self, partition: int = 0, group_id: str = "group") -> SharePartitionKey:
        return SharePartitionKey(group_id, self.topic_id, partition)

    def lead(self, leader: int) -> None:
        """Have the state of all share partitions led by another node, from now on."""
        self.node.change_partition(SHARE_STATE_TOPIC, 0, leader=leader, isr=[leader])


def clustered(tmp_path: Path, main: Callable[[Cluster], Awaitable[None]], leader: int = ELSEWHERE) -> None:
    async def run() -> None:
        node = ApiNode(tmp_path)
        node.create_topic(SHARE_STATE_TOPIC, 1, replicas=[HERE, ELSEWHERE], leader=leader)
        node.change_partition(SHARE_STATE_TOPIC, 0, isr=[leader])
        cluster = Cluster(node, OtherCoordinator())
        async with trio.open_nursery() as nursery:
            await nursery.start(node.sharing.run)
            await main(cluster)
            nursery.cancel_scope.cancel()
        await node.transactions.inter_broker.aclose()
        node.close()

    in_virtual_time(run)


def writing(key: SharePartitionKey, *batches: StateBatch, start_offset: int = -1) -> Writing:
    return Writing(key, 1, 0, start_offset, 4, batches)


def test_another_broker_is_asked_by_the_protocol(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        key, second = cluster.key(), cluster.key(1)
        async with cluster.other.serving(cluster.node.network):
            persister = cluster.persister
            initialized = await persister.initialize([Initialization(key, 1, 3), Initialization(second, 1, -1)])
            assert initialized == [Outcome(key), Outcome(second)]
            assert await persister.write([writing(key, StateBatch(3, 5, 2, 1))]) == [Outcome(key)]
            assert await persister.read([Reading(second, 0), Reading(key, 0)]) == [
                PartitionState(second, state_epoch=1, start_offset=-1),
                PartitionState(key, state_epoch=1, start_offset=3, batches=(StateBatch(3, 5, 2, 1),)),
            ]
            assert await persister.read_summary([Reading(key, 0)]) == [PartitionState(key, 1, 0, 3, 4)]
            assert await persister.delete([key]) == [Outcome(key)]
            (state,) = await persister.read([Reading(key, 0)])
            assert state.error_code is ErrorCode.INVALID_REQUEST
            assert state.error_message == "Read operation on uninitialized share partition not allowed."
        kinds = [kind for kind, _ in cluster.other.asked]
        assert kinds == ["initialize", "write", "read", "read", "delete", "read"]

    clustered(tmp_path, main)


def test_what_waits_for_one_broker_goes_in_few_requests(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        keys = [cluster.key(index) for index in range(300)]
        cluster.other.takes_s = 0.1
        async with cluster.other.serving(cluster.node.network):
            await cluster.persister.initialize([Initialization(key, 1, 0) for key in keys])
            cluster.other.asked.clear()
            async with trio.open_nursery() as nursery:
                for key in keys:
                    nursery.start_soon(cluster.persister.write, [writing(key)])
            assert sum(count for _, count in cluster.other.asked) == len(keys)
            assert len(cluster.other.asked) <= 6
            cluster.other.asked.clear()
            states = await cluster.persister.read([Reading(key, 0) for key in keys])
            assert [state.key for state in states] == keys
            assert {count for _, count in cluster.other.asked} == {MOST_READINGS}

    clustered(tmp_path, main)


def test_groups_have_requests_of_their_own(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        keys = [cluster.key(index, group) for index in range(3) for group in ("a", "b")]
        async with cluster.other.serving(cluster.node.network):
            outcomes = await cluster.persister.initialize([Initialization(key, 1, 0) for key in keys])
        assert outcomes == [Outcome(key) for key in keys]
        assert cluster.other.asked == [("initialize", 3), ("initialize", 3)]

    clustered(tmp_path, main)


@pytest.mark.parametrize("passing", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_errors_that_pass_are_tried_again(tmp_path: Path, passing: ErrorCode) -> None:
    async def main(cluster: Cluster) -> None:
        cluster.other.told = [passing] * 4
        async with cluster.other.serving(cluster.node.network):
            assert await cluster.persister.initialize([Initialization(cluster.key(), 1, 0)]) == [Outcome(cluster.key())]
        assert len(cluster.other.asked) == 5

    clustered(tmp_path, main)


@pytest.mark.parametrize("told", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH])
def test_fenced_requests_are_answered_at_once(tmp_path: Path, told: ErrorCode) -> None:
    async def main(cluster: Cluster) -> None:
        cluster.other.told = [told]
        async with cluster.other.serving(cluster.node.network):
            (outcome,) = await cluster.persister.write([writing(cluster.key())])
        assert outcome.error_code is told
        assert len(cluster.other.asked) == 1

    clustered(tmp_path, main)


def test_broker_that_is_not_there_is_given_up_in_time(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        began = trio.current_time()
        (outcome,) = await cluster.persister.write([writing(cluster.key())])
        assert outcome.error_code is ErrorCode.NETWORK_EXCEPTION
        assert trio.current_time() - began <= PATIENCE_MS / 1000

    clustered(tmp_path, main)


def test_coordinator_that_moves_here_is_asked_here(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        key = cluster.key()

        async def move() -> None:
            await trio.sleep(3)
            cluster.lead(HERE)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(move)
            assert await cluster.persister.initialize([Initialization(key, 1, 8)]) == [Outcome(key)]
        coordinator = cluster.node.sharing.coordinator
        shard = coordinator.shard(0)
        assert shard is not None
        assert shard.states[key].start_offset == 8

    clustered(tmp_path, main)


def test_coordinator_that_moves_elsewhere_is_asked_there(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        key = cluster.key()
        assert await cluster.persister.initialize([Initialization(key, 1, 8)]) == [Outcome(key)]
        cluster.lead(ELSEWHERE)
        cluster.other.state.initialize([Initialization(key, 1, 9)])
        async with cluster.other.serving(cluster.node.network):
            (state,) = await cluster.persister.read([Reading(key, 0)])
        assert state.start_offset == 9

    clustered(tmp_path, main, leader=HERE)


def test_later_write_waits_for_an_earlier_one_that_is_tried_again(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        key, other_key = cluster.key(), cluster.key(1)
        ended: list[str] = []

        async def write(name: str, key: SharePartitionKey, start_offset: int) -> None:
            assert await cluster.persister.write([writing(key, start_offset=start_offset)]) == [Outcome(key)]
            ended.append(name)

        async with cluster.other.serving(cluster.node.network), trio.open_nursery() as nursery:
            await cluster.persister.initialize([Initialization(each, 1, 0) for each in (key, other_key)])
            cluster.other.told = [ErrorCode.NOT_COORDINATOR] * 2
            nursery.start_soon(write, "first", key, 5)
            await trio.sleep(0.01)
            nursery.start_soon(write, "second", key, 7)
            await trio.sleep(0.06)
            nursery.start_soon(write, "elsewhere", other_key, 1)
        assert ended == ["elsewhere", "first", "second"]
        assert cluster.other.state.shard.states[key].start_offset == 7

    clustered(tmp_path, main)


def test_write_waits_for_an_earlier_one_also_where_nobody_waits_for_one_in_between(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        key = cluster.key()
        ended: list[str] = []

        async def write(name: str, start_offset: int, given_up: trio.CancelScope) -> None:
            with given_up:
                assert await cluster.persister.write([writing(key, start_offset=start_offset)]) == [Outcome(key)]
                ended.append(name)

        async with cluster.other.serving(cluster.node.network), trio.open_nursery() as nursery:
            await cluster.persister.initialize([Initialization(key, 1, 0)])
            cluster.other.told = [ErrorCode.NOT_COORDINATOR] * 4
            given_up = trio.CancelScope()
            nursery.start_soon(write, "first", 5, trio.CancelScope())
            await trio.sleep(0.01)
            nursery.start_soon(write, "second", 6, given_up)
            await trio.sleep(0.01)
            nursery.start_soon(write, "third", 7, trio.CancelScope())
            await trio.sleep(0.01)
            given_up.cancel()
            await trio.sleep(0.01)
            nursery.start_soon(write, "fourth", 8, trio.CancelScope())
        assert ended == ["first", "third", "fourth"]
        assert cluster.other.state.shard.states[key].start_offset == 8

    clustered(tmp_path, main)


def test_queue_of_many_groups_is_not_gone_through_for_each_of_them() -> None:
    class Looked:
        def __init__(self) -> None:
            self.count = 0

    looked = Looked()

    class Waiting(Queued):
        def __getattribute__(self, name: str) -> Any:
            if name == "group_id":
                looked.count += 1
            return super().__getattribute__(name)

    queue = ShareStateQueue()
    many = 2_000
    for number in range(many):
        key = SharePartitionKey(f"group-{number}", bytes(16), 0)
        queue.put(Waiting(WRITE, key.group_id, [writing(key)], 1))

    async def main() -> None:
        for number in range(many):
            (taken,) = await queue.take()
            assert taken.group_id == f"group-{number}"

    trio.run(main)
    assert looked.count < 10 * many


def test_what_nobody_waits_for_any_more_is_not_sent(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        cluster.other.takes_s = 1.0
        async with cluster.other.serving(cluster.node.network), trio.open_nursery() as nursery:
            for index in range(3):
                nursery.start_soon(cluster.persister.read_summary, [Reading(cluster.key(index), 0)])
                await trio.sleep(0.1)
            with trio.move_on_after(0.2):
                await cluster.persister.write([writing(cluster.key())])
        assert cluster.other.asked == [("read", 1)] * 3

    clustered(tmp_path, main)


def test_row_that_is_left_out_is_an_error(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        cluster.other.leaves_out = 1
        async with cluster.other.serving(cluster.node.network):
            first, second = await cluster.persister.read_summary([Reading(cluster.key(index), 0) for index in (0, 1)])
        assert first.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert second.error_code is NONE

    clustered(tmp_path, main)


def test_nothing_is_asked_where_nothing_is_wanted(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        persister = cluster.persister
        assert await persister.initialize([]) == await persister.write([]) == await persister.delete([]) == []
        assert await persister.read([]) == await persister.read_summary([]) == []

    clustered(tmp_path, main)
