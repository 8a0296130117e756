"""What clients may hold together: whoever is greedy waits or goes, everybody else is served."""

from __future__ import annotations

import struct

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from pykbroker.replication.partition import ACKS_ALL
from pykbroker.server.network.client_memory import RESERVE_BYTES, ClientMemory
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.receive_buffer import INITIAL_BYTES, BufferPool, ReceiveBuffer
from pykbroker.server.replicas.delayed_operation import PartitionChanges
from tests.server.serving import Client, Served, Server, eventually

MIB = 1 << 20
LIMIT = 4 * MIB


def small_memory() -> ClientMemory:
    return ClientMemory(request_limit_bytes=LIMIT, answer_limit_bytes=LIMIT)


def handlers(handled: list[int] | None = None, *, answer_bytes: int = 0) -> HandlerTable:
    """Heartbeat answers at once, Produce with acks=all never, and SyncGroup with so many bytes."""
    handled = [] if handled is None else handled
    table = HandlerTable("broker")

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        return HeartbeatResponse(throttle_time_ms=request.generation_id)

    @table.handles(ProduceRequest, needs=NOTHING)
    async def produce(context: RequestContext, request: ProduceRequest) -> ProduceResponse:
        if request.acks == ACKS_ALL:
            with PartitionChanges([], timeout_ms=2**31 - 1, client=context.connection) as changes:
                await changes.next()
            handled.append(request.acks)
        return ProduceResponse()

    @table.handles(SyncGroupRequest, needs=NOTHING)
    async def sync(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        handled.append(request.generation_id)
        return SyncGroupResponse(assignment=bytes(answer_bytes))

    return table


async def assert_served(served: Served) -> None:
    client = await served.connect()
    heartbeat = HeartbeatRequest(group_id="g", generation_id=5, member_id="m")
    with trio.fail_after(5):
        assert await client.ask(heartbeat, 4) == HeartbeatResponse(throttle_time_ms=5)
    client.transport.close()


def produce_of(size: int, acks: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=bytes(size))]
    return ProduceRequest(acks=acks, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])


def test_one_holder_at_a_time_goes_beyond_the_bound() -> None:
    memory = small_memory()
    one, other = object(), object()
    memory.take(LIMIT - 10)
    assert memory.admits(one, 10)
    assert memory.admits(one, 100)
    assert memory.admits(one, 1000)
    assert not memory.admits(other, 100)
    memory.give(one, 0)
    assert memory.admits(other, 100)


def test_a_buffer_does_not_grow_where_memory_is_short() -> None:
    memory = small_memory()
    pool = BufferPool(memory)
    first, second = (ReceiveBuffer(pool, 100 * MIB) for _ in range(2))
    memory.take(LIMIT)
    for buffer in (first, second):
        view = buffer.writable()
        assert view is not None
        view[:4] = struct.pack(">i", MIB)
        buffer.wrote(len(view))
        del view
    assert first.writable() is not None, "one may go beyond"
    assert second.writable() is None
    first.release()
    assert second.writable() is not None
    second.release()
    assert memory.request_bytes == LIMIT


def test_requests_that_do_not_come_are_closed_when_others_wait(
    simulated_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(served: Served) -> None:
        memory = served.pool.memory
        greedy = [await served.connect() for _ in range(30)]
        for client in greedy:
            await client.transport.send([struct.pack(">i", 100 * MIB), bytes(INITIAL_BYTES)])
        async with trio.open_nursery() as nursery:
            for client in greedy:
                nursery.start_soon(client.transport.send, [bytes(MIB // 4)])
            await trio.sleep(0.5)
            assert memory.request_bytes <= LIMIT + MIB
            nursery.cancel_scope.cancel()
        await assert_served(served)
        honest = await served.connect()
        with trio.fail_after(60):
            assert isinstance(await honest.ask(produce_of(2 * MIB), 9), ProduceResponse)
        honest.transport.close()

    simulated_server.run(handlers(), scenario, memory=small_memory)
    assert "bytes of a request that does not come, others wait" in caplog.text


def test_halves_of_large_requests_do_not_wait_for_each_other(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        answered = 0

        async def ask(client: Client) -> None:
            nonlocal answered
            assert isinstance(await client.ask(produce_of(3 * MIB), 9), ProduceResponse)
            answered += 1

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for _ in range(6):
                    nursery.start_soon(ask, await served.connect())
        assert answered == 6
        for client in served.clients:
            client.transport.close()
        await trio.sleep(1)
        assert served.pool.memory.request_bytes == 0

    simulated_server.run(handlers(), scenario, memory=small_memory)


def test_answers_that_nobody_reads_are_bounded(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    handled: list[int] = []

    async def scenario(served: Served) -> None:
        handled.clear()
        memory = served.pool.memory
        deaf = [await served.connect() for _ in range(10)]
        for client in deaf:
            await client.send(SyncGroupRequest(group_id="g"), 5)
        await eventually(lambda: len(handled) == 10 and served.listener.connection_count < 10)
        assert memory.answer_bytes <= LIMIT
        assert 1 <= served.listener.connection_count < 10
        await assert_served(served)
        for client in deaf:
            client.transport.close()
        await eventually(lambda: memory.answer_bytes == 0)

    server.run(handlers(handled, answer_bytes=3 * MIB // 2), scenario, memory=small_memory)
    assert "client test did not take" in caplog.text


def test_a_large_request_in_hand_gives_way_when_others_wait_for_long(simulated_server: Server) -> None:
    handled: list[int] = []

    async def scenario(served: Served) -> None:
        handled.clear()
        waiting = [await served.connect() for _ in range(5)]
        for client in waiting:
            await client.send(produce_of(3 * MIB // 2, ACKS_ALL), 9)
        await trio.sleep(5)
        assert served.pool.memory.request_bytes <= 3 * LIMIT
        await assert_served(served)
        with trio.fail_after(120):
            while len(handled) < 2:  # noqa: ASYNC110 - three are left, for which there is room
                await trio.sleep(1)
        for client in waiting:
            client.transport.close()

    simulated_server.run(handlers(handled), scenario, memory=small_memory)


def test_many_small_halves_are_closed_beyond_the_reserve(simulated_server: Server) -> None:
    """None of them has to grow, so none waits."""
    count = (LIMIT + RESERVE_BYTES) // INITIAL_BYTES + 30

    async def scenario(served: Served) -> None:
        half = encode_request(produce_of(50_000), 9, 1, "test")[:-10]
        clients = [await served.connect() for _ in range(count)]
        for client in clients:
            await client.transport.send([half])
        await trio.sleep(1)
        assert served.pool.memory.request_bytes <= LIMIT + RESERVE_BYTES
        assert served.listener.connection_count < count
        await assert_served(served)

    simulated_server.run(handlers(), scenario, memory=small_memory)


def test_idle_connections_share_one_buffer(server: Server) -> None:
    async def scenario(served: Served) -> None:
        clients = [await served.connect() for _ in range(20)]
        for client in clients:
            await client.ask(HeartbeatRequest(group_id="g", generation_id=5, member_id="m"), 4)
        await wait_all_tasks_blocked(0.01)
        assert served.pool.memory.request_bytes == 0
        assert not served.pool._free  # but the one on the desk
        for client in clients:
            client.transport.close()

    server.run(handlers(), scenario)
