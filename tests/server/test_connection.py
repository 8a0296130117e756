"""What a connection promises, on real sockets and on the simulated network."""

from __future__ import annotations

import errno
import logging
import socket
import struct
from collections.abc import Callable
from typing import cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.produce import ProduceRequest, ProduceResponse
from pykbroker.protocol.schema import Message
from pykbroker.server.network.client_memory import ClientMemory
from pykbroker.server.network.connection import Connection
from pykbroker.server.network.dispatch import Dispatcher
from pykbroker.server.network.handlers import CloseConnection, ConnectionState, HandlerTable, RequestContext
from pykbroker.server.network.large_requests import IN_HAND_BYTES
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.receive_buffer import BufferPool, ReceiveBuffer
from pykbroker.server.network.socket_transport import LISTEN_BACKLOG
from pykbroker.server.network.transport import Address
from pykbroker.server.replicas.delayed_operation import PartitionChanges
from pykbroker.server.runtime.clock import SystemClock
from pykbroker.server.runtime.log_lines import RateLimitedLog
from pykbroker.sim.network import SimulatedAcceptor, SimulatedTransport
from tests.server.serving import Client, Served, Server, dispatcher_of, eventually, limits


def heartbeats() -> HandlerTable:
    """Answers with the generation id in place of the throttle time, so that answers can be told apart."""
    table = HandlerTable("broker")

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        await trio.lowlevel.checkpoint()
        return HeartbeatResponse(throttle_time_ms=request.generation_id)

    return table


async def send_drops(client: Client) -> None:
    for _ in range(1000):
        await client.transport.send([b"x"])
        await trio.sleep(60)


def numbered(number: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=number, member_id="m")


def test_answers_come_in_the_order_of_the_requests(server: Server) -> None:
    table = HandlerTable("broker")
    in_hand = []

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        in_hand.append(request.generation_id)
        assert len(in_hand) == 1, "a connection has one request in hand"
        await trio.sleep(0.001 * (request.generation_id % 3))
        in_hand.pop()
        return HeartbeatResponse(throttle_time_ms=request.generation_id)

    async def scenario(served: Served) -> None:
        client = await served.connect()
        await client.transport.send([encode_request(numbered(n), 4, n, None) for n in range(30)])
        for n in range(30):
            correlation_id, response = await client.receive(12, 4)
            assert isinstance(response, HeartbeatResponse)
            assert (correlation_id, response.throttle_time_ms) == (n, n)
        client.transport.close()

    server.run(table, scenario)


def test_requests_may_arrive_byte_by_byte(server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        for byte in encode_request(numbered(7), 4, 1, None) + encode_request(numbered(8), 0, 2, None):
            await client.transport.send([bytes([byte])])
            await wait_all_tasks_blocked()
        assert (await client.receive(12, 4))[1] == HeartbeatResponse(throttle_time_ms=7)
        assert (await client.receive(12, 0))[0] == 2
        client.transport.close()

    server.run(heartbeats(), scenario)


def test_a_waiting_request_holds_up_nobody_else(server: Server) -> None:
    table = heartbeats()

    @table.handles(SyncGroupRequest, needs=NOTHING)
    async def sync(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        await trio.sleep_forever()
        raise AssertionError

    async def scenario(served: Served) -> None:
        waiting, other = await served.connect(), await served.connect()
        await waiting.send(SyncGroupRequest(group_id="g"), 5)
        assert await other.ask(numbered(1), 4) == HeartbeatResponse(throttle_time_ms=1)
        waiting.transport.close()
        other.transport.close()

    server.run(table, scenario, limits(drain_s=0.01))


@pytest.mark.parametrize("size", [5_000, 50_000, 5_000_000])
def test_members_that_wait_for_each_other_keep_no_buffer(server: Server, size: int) -> None:
    """What comes behind the request is kept, and served when it is answered."""
    waiting: list[trio.Event] = []
    table = heartbeats()

    @table.handles(JoinGroupRequest, needs=NOTHING)
    async def join(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
        waiting.append(trio.Event())
        await waiting[-1].wait()
        assert request.protocols[0].metadata == b"x" * size
        return JoinGroupResponse(protocol_name="")

    async def scenario(served: Served) -> None:
        waiting.clear()
        client = await served.connect()
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"x" * size)]
        await client.send(JoinGroupRequest(group_id="g", protocols=protocols), 9)
        await eventually(lambda: len(waiting) == 1)
        assert served.pool.memory.request_bytes < 1000
        await client.send(numbered(1), 4)
        waiting[0].set()
        assert isinstance((await client.receive(ApiKey.JOIN_GROUP, 9))[1], JoinGroupResponse)
        assert (await client.receive(ApiKey.HEARTBEAT, 4))[1] == HeartbeatResponse(throttle_time_ms=1)

    server.run(table, scenario)


@pytest.mark.parametrize(
    ("request_bytes", "answer_bytes", "most"), [(0, 0, 34), (10_000, 0, 4), (0, 60_000, 4)], ids=str
)
def test_a_turn_is_shorter_the_more_its_requests_cost(
    real_server: Server, request_bytes: int, answer_bytes: int, most: int
) -> None:
    """A connection that always has another request shares the loop by what was unpacked and packed, not by number.

    Two turns of one task may follow each other: Trio shuffles the tasks of each round.
    """
    table = HandlerTable("broker")
    turns: list[int] = []

    @table.handles(SyncGroupRequest, needs=NOTHING)
    async def sync(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        turns[-1] += 1
        return SyncGroupResponse(assignment=bytes(answer_bytes))

    async def note_turns() -> None:
        while True:
            turns.append(0)
            await trio.lowlevel.checkpoint()

    async def scenario(served: Served) -> None:
        turns.clear()
        client = await served.connect()
        assignments = [SyncGroupRequestAssignment(member_id="m", assignment=bytes(request_bytes))]
        frame = encode_request(SyncGroupRequest(group_id="g", assignments=assignments), 5, 1, None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note_turns)
            nursery.start_soon(client.transport.send, [frame * 64])
            for _ in range(64):
                await client.receive(14, 5)
            nursery.cancel_scope.cancel()
        client.transport.close()

    real_server.run(table, scenario)
    assert 1 <= max(turns) <= most


class Flood:
    """A transport whose peer has always sent the next bytes already."""

    peer = Address("127.0.0.1", 1)
    waits_for_peer = 0

    def __init__(self, stream: bytes) -> None:
        self._stream = memoryview(stream)
        self.is_closed = False

    def receive_now(self, view: memoryview) -> int:
        count = min(len(view), len(self._stream), 64 * 1024)
        view[:count] = self._stream[:count]
        self._stream = self._stream[count:]
        return count

    def peek(self, size: int) -> bytes | None:
        raise NotImplementedError

    async def receive_into(self, view: memoryview) -> int:
        raise NotImplementedError

    async def wait_readable(self) -> None:
        raise NotImplementedError

    async def send(self, parts: object) -> None:
        raise NotImplementedError

    def has_peer_left(self) -> bool:
        return False

    def close(self) -> None:
        self.is_closed = True


class Lockstep:
    """A transport whose peer sends a request when it has the answer to the one before."""

    peer = Address("127.0.0.1", 1)
    waits_for_peer = 0

    def __init__(self, requests: list[bytes], *, is_fast: bool) -> None:
        self._requests = requests
        self._is_fast = is_fast
        self._arrived = b""
        self.answers = 0
        self.waits = 0
        self.looks_in_vain = 0

    def receive_now(self, view: memoryview) -> int | None:
        arrived, self._arrived = self._arrived, b""
        if not arrived and self._requests:
            self.looks_in_vain += 1
            return None
        view[: len(arrived)] = arrived
        return len(arrived)

    def peek(self, size: int) -> bytes | None:
        raise NotImplementedError

    async def receive_into(self, view: memoryview) -> int:
        raise NotImplementedError

    async def wait_readable(self) -> None:
        self.waits += 1
        self._send_next()
        await trio.lowlevel.checkpoint()

    async def send(self, parts: object) -> None:
        self.answers += 1
        if self._is_fast:
            self._send_next()

    def _send_next(self) -> None:
        if self._requests:
            self._arrived = self._requests.pop(0)

    def has_peer_left(self) -> bool:
        return False

    def close(self) -> None:
        pass


@pytest.mark.parametrize("is_fast", [False, True])
def test_right_behind_an_answer_one_looks_seldom_for_a_request_that_was_never_there(is_fast: bool) -> None:
    """And always where the client's next request comes before anybody else would have his turn."""
    requests = [encode_request(numbered(number), 4, number, "c") for number in range(100)]
    transport = Lockstep(requests, is_fast=is_fast)
    memory = ClientMemory()
    connection = Connection(
        transport,
        ConnectionState(listener_name="PLAINTEXT", client_address="127.0.0.1"),
        dispatcher_of(heartbeats()),
        ReceiveBuffer(BufferPool(memory), 1 << 20),
        RateLimitedLog(logging.getLogger("test"), SystemClock()),
        memory,
    )
    trio.run(connection.serve)
    assert transport.answers == 100
    assert transport.looks_in_vain <= (1 if is_fast else 25)
    assert transport.waits <= (1 if is_fast else 101)


def test_a_large_frame_is_received_in_turns() -> None:
    """While it comes as fast as it is read, others have the loop after each megabyte."""
    size = 16 << 20
    dispatcher = dispatcher_of(HandlerTable("broker"))
    large = flooded(dispatcher, struct.pack(">i", size + 1) + bytes(size))
    in_rounds = serve_all([large], lambda: large.received_bytes)
    assert large.received_bytes == size + 4
    assert len(in_rounds) >= 14


CONNECTIONS = 20


def test_many_connections_that_receive_much_take_turns() -> None:
    """In each round of the loop the next one has its turn, and whoever else is ready to run has his."""
    size = 4 << 20
    dispatcher = dispatcher_of(HandlerTable("broker"))
    connections = [flooded(dispatcher, struct.pack(">i", size + 1) + bytes(size)) for _ in range(CONNECTIONS)]
    in_rounds = serve_all(connections, lambda: sum(each.received_bytes for each in connections))
    assert sum(in_rounds) == CONNECTIONS * (size + 4)
    assert max(in_rounds[3:]) <= 3 * 1152 * 1024  # Trio shuffles the tasks of each round


def test_many_connections_with_one_request_behind_another_take_turns() -> None:
    requests = b"".join(encode_request(numbered(number), 4, number, "c") for number in range(500))
    table = HandlerTable("broker")
    handled = 0

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> None:
        nonlocal handled
        handled += 1

    dispatcher = dispatcher_of(table)
    connections = [flooded(dispatcher, requests) for _ in range(CONNECTIONS)]
    in_rounds = serve_all(connections, lambda: handled)
    assert sum(in_rounds) == CONNECTIONS * 500
    assert max(in_rounds[3:]) <= 40


class Crowded(Dispatcher):
    """Others always have the turn."""

    def has_turn(self) -> bool:
        return False

    async def next_turn(self, connection: ConnectionState) -> None:
        await trio.sleep_forever()


def test_who_waits_for_its_turn_is_neither_stuck_nor_idle() -> None:
    """Where memory is short, and many receive much, a turn may be a second away."""
    size = 4 << 20
    connection = flooded(dispatcher_of(HandlerTable("broker"), kind=Crowded), struct.pack(">i", size) + bytes(size))

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.serve)
            await wait_all_tasks_blocked()
            for _ in range(10):
                connection.note_progress()
                connection.close_if_idle(2)
                assert connection.unfinished_bytes > 128 * 1024
                assert not connection.is_stuck
                assert not cast(Flood, connection._transport).is_closed
            nursery.cancel_scope.cancel()

    trio.run(scenario)


def flooded(dispatcher: Dispatcher, stream: bytes) -> Connection:
    memory = ClientMemory(request_limit_bytes=1 << 30)
    return Connection(
        Flood(stream),
        ConnectionState(listener_name="PLAINTEXT", client_address="127.0.0.1"),
        dispatcher,
        ReceiveBuffer(BufferPool(memory), 32 << 20),
        RateLimitedLog(logging.getLogger("test"), SystemClock()),
        memory,
    )


def serve_all(connections: list[Connection], done: Callable[[], int]) -> list[int]:
    """Until their streams are at their end: by how much `done` grew in each round of the loop."""
    in_rounds = []

    async def scenario() -> None:
        async with trio.open_nursery() as observer:
            observer.start_soon(observe)
            async with trio.open_nursery() as nursery:
                for connection in connections:
                    nursery.start_soon(connection.serve)
            await trio.lowlevel.checkpoint()
            observer.cancel_scope.cancel()

    async def observe() -> None:
        before = 0
        while True:
            await trio.lowlevel.checkpoint()
            in_rounds.append(done() - before)
            before = done()

    trio.run(scenario)
    return in_rounds


def test_nothing_is_read_while_an_answer_cannot_be_sent(server: Server) -> None:
    table = HandlerTable("broker")
    handled = []

    @table.handles(SyncGroupRequest, needs=NOTHING)
    async def sync(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        handled.append(request.generation_id)
        return SyncGroupResponse(assignment=bytes(1_000_000))

    async def scenario(served: Served) -> None:
        handled.clear()
        client = await served.connect()
        requests = [encode_request(SyncGroupRequest(group_id="g", generation_id=n), 5, n, None) for n in range(100)]
        await client.transport.send(requests)
        await wait_all_tasks_blocked(0.05)
        assert len(handled) < 30, "what the peer does not take must not pile up"
        for n in range(100):
            assert (await client.receive(14, 5))[0] == n
        assert handled == list(range(100))
        client.transport.close()

    server.run(table, scenario)


def test_no_answer_is_sent_where_the_handler_gives_none(server: Server) -> None:
    table = heartbeats()

    @table.handles(ProduceRequest, needs=NOTHING)
    async def produce(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
        return None

    async def scenario(served: Served) -> None:
        client = await served.connect()
        await client.send(ProduceRequest(acks=0, timeout_ms=1), 9)
        assert await client.ask(numbered(5), 4) == HeartbeatResponse(throttle_time_ms=5)
        client.transport.close()

    server.run(table, scenario)


def test_a_request_of_more_entries_than_any_client_sends_closes_the_connection(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    table = HandlerTable("broker")

    @table.handles(SyncGroupRequest, needs=NOTHING, most_entries=2)
    async def sync_group(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        await trio.lowlevel.checkpoint()
        return SyncGroupResponse()

    def of_members(count: int) -> SyncGroupRequest:
        return SyncGroupRequest(assignments=[SyncGroupRequestAssignment(member_id=str(each)) for each in range(count)])

    async def scenario(served: Served) -> None:
        client = await served.connect()
        assert await client.ask(of_members(2), 5) == SyncGroupResponse()
        await client.send(of_members(3), 5)
        assert await client.is_closed()

    server.run(table, scenario)
    assert "SyncGroupRequest.assignments" in caplog.text


def test_of_large_requests_so_many_are_unpacked_at_a_time(server: Server) -> None:
    """Those of other APIs, and small ones, go on beside them."""
    table = heartbeats()
    in_hand: list[int] = []
    held = [trio.Event()]

    @table.handles(MetadataRequest, needs=NOTHING)
    async def metadata(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
        assert request.topics is not None
        in_hand.append(len(request.topics))
        if len(request.topics) > 100:
            await held[0].wait()
        return MetadataResponse(cluster_id=str(len(request.topics)))

    def of_topics(count: int) -> MetadataRequest:
        return MetadataRequest(topics=[MetadataRequestTopic(name="x" * 200) for _ in range(count)])

    async def scenario(served: Served) -> None:
        in_hand.clear()
        held[0] = trio.Event()
        clients = [await served.connect() for _ in range(8)]
        for client in clients:
            await client.send(of_topics(2000), 9)
        other = await served.connect()
        await eventually(lambda: len(in_hand) == IN_HAND_BYTES // 400_000)
        assert await other.ask(of_topics(1), 9) == MetadataResponse(cluster_id="1")
        assert await other.ask(numbered(1), 4) == HeartbeatResponse(throttle_time_ms=1)
        assert len(in_hand) == IN_HAND_BYTES // 400_000 + 1
        held[0].set()
        for client in clients:
            assert (await client.receive(ApiKey.METADATA, 9))[1] == MetadataResponse(cluster_id="2000")

    server.run(table, scenario)


def test_a_handler_may_close_the_connection(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    table = HandlerTable("broker")

    @table.handles(ProduceRequest, needs=NOTHING)
    async def produce(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
        raise CloseConnection("acks=0 has failed")

    async def scenario(served: Served) -> None:
        client = await served.connect()
        await client.send(ProduceRequest(acks=0, timeout_ms=1), 9)
        assert await client.is_closed()

    server.run(table, scenario)
    assert "acks=0 has failed" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_bug_in_a_handler_is_an_answer_and_a_traceback_in_the_log(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    table = HandlerTable("broker")

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        raise ZeroDivisionError("our own bug")

    @table.handles(ProduceRequest, needs=NOTHING)
    async def produce(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
        raise ZeroDivisionError("our own bug")

    async def scenario(served: Served) -> None:
        client = await served.connect()
        expected = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        assert await client.ask(numbered(1), 4) == expected
        assert await client.ask(numbered(2), 4) == expected
        await client.send(ProduceRequest(acks=1, timeout_ms=1), 9)
        assert await client.is_closed(), "the response of Produce has no place for an error of the whole"
        other = await served.connect()
        assert await other.ask(numbered(3), 4) == expected
        other.transport.close()

    server.run(table, scenario)
    assert "our own bug" in caplog.text
    assert any(record.exc_info for record in caplog.records)


def test_an_answer_that_cannot_be_encoded_is_a_bug_too(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    table = HandlerTable("broker")

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        return HeartbeatResponse(throttle_time_ms=2**40)

    async def scenario(served: Served) -> None:
        client = await served.connect()
        assert await client.ask(numbered(1), 4) == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        client.transport.close()

    server.run(table, scenario)
    assert any(record.exc_info for record in caplog.records)


def test_a_peer_that_leaves_in_the_middle_is_no_error(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await client.transport.send([encode_request(numbered(1), 4, 1, None)[:-3]])
        client.transport.close()
        await wait_all_tasks_blocked(0.01)
        other = await served.connect()
        await other.transport.send([encode_request(numbered(1), 4, 1, None) * 50])
        other.transport.close()

    server.run(heartbeats(), scenario)
    assert not caplog.records


class TestIdleConnections:
    def test_an_idle_connection_is_closed_after_its_time(self, simulated_server: Server) -> None:
        async def scenario(served: Served) -> None:
            client = await served.connect()
            await client.ask(numbered(1), 4)
            start = trio.current_time()
            assert await client.is_closed()
            assert 600 <= trio.current_time() - start <= 751

        simulated_server.run(heartbeats(), scenario)

    def test_a_busy_connection_stays(self, simulated_server: Server) -> None:
        async def scenario(served: Served) -> None:
            client = await served.connect()
            for number in range(20):
                await client.ask(numbered(number), 4)
                await trio.sleep(500)
            client.transport.close()

        simulated_server.run(heartbeats(), scenario)

    def test_a_frame_that_comes_in_drops_is_no_progress(self, simulated_server: Server) -> None:
        async def scenario(served: Served) -> None:
            client = await served.connect()
            await client.transport.send([struct.pack(">i", 1_000_000)])
            with pytest.raises(trio.BrokenResourceError):
                await send_drops(client)

        simulated_server.run(heartbeats(), scenario)

    def test_a_peer_that_does_not_take_its_answer_is_closed(self, simulated_server: Server) -> None:
        table = HandlerTable("broker")

        @table.handles(SyncGroupRequest, needs=NOTHING)
        async def sync(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
            return SyncGroupResponse(assignment=bytes(1_000_000))

        async def scenario(served: Served) -> None:
            stuck, slow = await served.connect(), await served.connect()
            for client in (stuck, slow):
                await client.send(SyncGroupRequest(group_id="g"), 5)
            for _ in range(10):
                await slow.receive_exactly(10_000)
                await trio.sleep(300)
            with pytest.raises(EOFError):
                await stuck.receive_exactly(1_000_000)
            assert len(await slow.receive_exactly(900_000)) == 900_000
            slow.transport.close()

        simulated_server.run(table, scenario)

    def test_a_request_in_hand_may_take_any_time(self, simulated_server: Server) -> None:
        table = HandlerTable("broker")

        @table.handles(HeartbeatRequest, needs=NOTHING)
        async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            await trio.sleep(10_000)
            return HeartbeatResponse()

        async def scenario(served: Served) -> None:
            client = await served.connect()
            assert await client.ask(numbered(1), 4) == HeartbeatResponse()
            client.transport.close()

        simulated_server.run(table, scenario)

    def test_no_limit_means_none(self, simulated_server: Server) -> None:
        async def scenario(served: Served) -> None:
            client = await served.connect()
            await trio.sleep(80_000)
            assert await client.ask(numbered(1), 4) == HeartbeatResponse(throttle_time_ms=1)
            client.transport.close()

        simulated_server.run(heartbeats(), scenario, limits(max_idle_ms=-1))


def half_close(client: Client) -> None:
    assert isinstance(client.transport, SimulatedTransport)
    client.transport.half_close()


class TestClientsThatLeave:
    """Their requests are in hand: a long poll for ever (SyncGroup), and one that others depend on (Heartbeat)."""

    @staticmethod
    def handlers(done: list[int], *, takes_s: float = 1000) -> HandlerTable:
        table = HandlerTable("broker")

        @table.handles(SyncGroupRequest, needs=NOTHING)
        async def sync(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
            with PartitionChanges([], timeout_ms=2**31 - 1, client=context.connection) as changes:
                await changes.next()
            done.append(request.generation_id)
            return SyncGroupResponse()

        @table.handles(HeartbeatRequest, needs=NOTHING)
        async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            await trio.sleep(takes_s)
            done.append(request.generation_id)
            return HeartbeatResponse(throttle_time_ms=request.generation_id)

        return table

    def test_a_long_poll_ends_soon_after_its_client_has_left(self, simulated_server: Server) -> None:
        async def scenario(served: Served) -> None:
            client = await served.connect()
            await client.send(SyncGroupRequest(group_id="g"), 5)
            await trio.sleep(100)
            assert served.listener.connection_count == 1, "who is there may wait for as long as it likes"
            client.transport.close()
            await trio.sleep(20)
            assert served.listener.connection_count == 0

        simulated_server.run(self.handlers([]), scenario)

    def test_a_long_poll_also_ends_with_requests_behind_it(self, simulated_server: Server) -> None:
        done: list[int] = []

        async def scenario(served: Served) -> None:
            done.clear()
            client = await served.connect()
            for number in range(50):
                await client.send(SyncGroupRequest(group_id="g", generation_id=number), 5)
            half_close(client)
            await trio.sleep(20)
            assert done == list(range(50))
            assert served.listener.connection_count == 0

        simulated_server.run(self.handlers(done), scenario)

    def test_who_has_closed_one_end_still_reads_an_answer_that_comes_soon(self, simulated_server: Server) -> None:
        async def scenario(served: Served) -> None:
            client = await served.connect()
            await client.send(numbered(7), 4)
            half_close(client)
            assert (await client.receive(12, 4))[1] == HeartbeatResponse(throttle_time_ms=7)
            assert await client.is_closed()

        simulated_server.run(self.handlers([], takes_s=3), scenario)

    def test_a_handler_goes_on_without_its_clients_descriptor(self, simulated_server: Server) -> None:
        done: list[int] = []

        async def scenario(served: Served) -> None:
            done.clear()
            client = await served.connect()
            await client.send(numbered(7), 4)
            half_close(client)
            await trio.sleep(20)
            assert await client.is_closed()
            assert not done
            await trio.sleep(1000)
            assert done == [7]
            assert served.listener.connection_count == 0

        simulated_server.run(self.handlers(done), scenario)

    def test_requests_that_came_before_the_end_are_served(self, simulated_server: Server) -> None:
        done: list[int] = []

        async def scenario(served: Served) -> None:
            done.clear()
            client = await served.connect()
            for number in range(30):
                await client.send(numbered(number), 4)
            half_close(client)
            for number in range(29):
                assert (await client.receive(12, 4))[1] == HeartbeatResponse(throttle_time_ms=number)
            assert await client.is_closed(), "nobody waits for the last one, but it is carried out"
            await trio.sleep(20)
            assert done == list(range(30))

        simulated_server.run(self.handlers(done, takes_s=20), scenario)


class TestTheEnd:
    def test_requests_in_hand_are_answered_and_idle_connections_closed(self, server: Server) -> None:
        table = HandlerTable("broker")
        arrived: list[trio.Event] = []
        go: list[trio.Event] = []

        @table.handles(HeartbeatRequest, needs=NOTHING)
        async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            arrived[-1].set()
            await go[-1].wait()
            return HeartbeatResponse(throttle_time_ms=9)

        async def scenario(served: Served) -> None:
            arrived.append(trio.Event())
            go.append(trio.Event())
            busy, idle = await served.connect(), await served.connect()
            await busy.send(numbered(1), 4)
            await arrived[-1].wait()
            served.listener.stop()
            assert await idle.is_closed()
            with pytest.raises(OSError):
                await served.connect()
            go[-1].set()
            assert (await busy.receive(12, 4))[1] == HeartbeatResponse(throttle_time_ms=9)
            assert await busy.is_closed()

        server.run(table, scenario)

    def test_a_request_that_takes_too_long_is_given_up(self, simulated_server: Server) -> None:
        table = HandlerTable("broker")

        @table.handles(HeartbeatRequest, needs=NOTHING)
        async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            await trio.sleep_forever()
            raise AssertionError

        async def scenario(served: Served) -> None:
            client = await served.connect()
            await client.send(numbered(1), 4)
            await trio.sleep(1)
            served.listener.stop()
            start = trio.current_time()
            assert await client.is_closed()
            assert trio.current_time() - start == pytest.approx(2, abs=0.1)

        simulated_server.run(table, scenario)


def test_a_listener_without_descriptors_tries_again(
    simulated_server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = SimulatedAcceptor.accept
    failures = iter([errno.EMFILE, errno.ENFILE, errno.EMFILE] * 3)

    async def accept_or_fail(acceptor: SimulatedAcceptor) -> SimulatedTransport:
        transport = await accept(acceptor)
        if (number := next(failures, None)) is not None:
            acceptor.arrive(transport)
            raise OSError(number, "Too many open files")
        return transport

    monkeypatch.setattr(SimulatedAcceptor, "accept", accept_or_fail)

    async def scenario(served: Served) -> None:
        client = await served.connect()
        assert await client.ask(numbered(1), 4) == HeartbeatResponse(throttle_time_ms=1)

    simulated_server.run(heartbeats(), scenario)
    assert "accepts no connections for now: Too many open files" in caplog.text


def test_many_who_knock_at_once_are_accepted_in_few_turns(real_server: Server) -> None:
    """Their SYNs fit into the backlog, and a turn of the loop takes many of them."""
    count = 300
    turns = 0

    async def scenario(served: Served) -> None:
        nonlocal turns
        knocking = [socket.create_connection(("127.0.0.1", served.port), timeout=5) for _ in range(count)]
        while served.listener.connection_count < count:
            turns += 1
            await trio.lowlevel.checkpoint()
        for each in knocking:
            each.close()

    real_server.run(heartbeats(), scenario)
    assert turns < count / 10


def test_whoever_finds_the_backlog_full_comes_later(simulated_server: Server) -> None:
    count = LISTEN_BACKLOG + 10

    async def scenario(served: Served) -> None:
        acceptor = await served.network.listen("127.0.0.1", 0)
        connected: list[float] = []

        async def knock() -> None:
            transport = await served.network.connect("127.0.0.1", acceptor.address.port)
            connected.append(trio.current_time())
            transport.close()

        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(knock)
            await trio.sleep(0.5)
            assert len(connected) == LISTEN_BACKLOG
            while acceptor.accept_now() is not None:
                pass
        assert len(connected) == count
        assert trio.current_time() - start >= 1
        acceptor.close()

    simulated_server.run(heartbeats(), scenario)


def test_more_connections_than_allowed_are_closed(server: Server) -> None:
    async def scenario(served: Served) -> None:
        first, second, third = [await served.connect() for _ in range(3)]
        assert await third.is_closed()
        assert await first.ask(numbered(1), 4)
        second.transport.close()
        first.transport.close()
        await eventually(lambda: served.listener.connection_count == 0)
        again = await served.connect()
        assert await again.ask(numbered(1), 4)
        again.transport.close()

    server.run(heartbeats(), scenario, properties={"max.connections.per.ip": "2"})


def test_an_announcement_costs_nothing_and_buffers_come_back(server: Server) -> None:
    async def scenario(served: Served) -> None:
        clients = [await served.connect() for _ in range(50)]
        for client in clients:
            await client.transport.send([struct.pack(">i", 100 * 1024 * 1024) + b"x" * 100])
        await eventually(lambda: served.listener.buffered_bytes == 50 * 104)
        for client in clients:
            client.transport.close()
        await eventually(lambda: served.listener.buffered_bytes == 0)

    server.run(heartbeats(), scenario)


def test_a_newer_api_versions_is_answered_in_version_0(server: Server) -> None:
    table = HandlerTable("broker")

    @table.handles(ApiVersionsRequest, needs=NOTHING)
    async def api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
        raise AssertionError("no handler is asked")

    async def scenario(served: Served) -> None:
        client = await served.connect()
        frame = struct.pack(">hhih", 18, 99, 5, -1) + b"\0" + b"\x05what\x04ever\0"
        await client.transport.send([struct.pack(">i", len(frame)) + frame])
        answer = await client.receive_frame()
        assert answer == struct.pack(">ihihhh", 5, 35, 1, 18, 0, 5)
        client.transport.close()

    server.run(table, scenario)


@pytest.mark.parametrize(
    ("name", "data", "logged"),
    [
        ("size -1", struct.pack(">i", -1), "frame size -1"),
        ("size 0", struct.pack(">i", 0), "frame size 0"),
        ("largest size", struct.pack(">i", 2**31 - 1), "frame size 2147483647"),
        ("a byte too much", struct.pack(">i", 100 * 1024 * 1024 + 1), "frame size 104857601"),
        ("http", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request?"),
        ("tls", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a TLS handshake"),
        ("unknown api key", struct.pack(">ihhih", 10, 9999, 0, 1, -1), "9999"),
        ("api key -1", struct.pack(">ihhih", 10, -1, 0, 1, -1), "-1"),
        ("metadata v99", struct.pack(">ihhihb", 11, 3, 99, 1, -1, 0), "version 99"),
        ("produce v2", struct.pack(">ihhih", 10, 0, 2, 1, -1), "version 2"),
        ("heartbeat v-1", struct.pack(">ihhih", 10, 12, -1, 1, -1), "version -1"),
        ("controller's api", struct.pack(">ihhihb", 11, 52, 0, 1, -1, 0), "API key 52"),
        ("2 bytes of header", struct.pack(">ih", 2, 18), "2 bytes"),
        ("client id beyond the frame", struct.pack(">ihhih", 10, 12, 0, 1, 500), "client id of 500"),
        ("client id -2", struct.pack(">ihhih", 10, 12, 0, 1, -2), "client id of -2"),
        ("body cut short", struct.pack(">ihhihh", 12, 12, 0, 1, -1, 50), "HeartbeatRequest version 0"),
        ("null topic in metadata v1", struct.pack(">ihhihih", 16, 3, 1, 1, -1, 1, -1), "MetadataRequest"),
        ("array of 2**31-1", struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1), "MetadataRequest"),
        ("tags beyond the frame", struct.pack(">ihhihbbb", 13, 12, 4, 1, -1, 1, 0, 100), "HeartbeatRequest|tag|cut"),
    ],
)
def test_what_no_client_sends_closes_the_connection_with_one_line(
    server: Server, caplog: pytest.LogCaptureFixture, name: str, data: bytes, logged: str
) -> None:
    table = heartbeats()

    @table.handles(MetadataRequest, needs=NOTHING)
    async def metadata(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
        return MetadataResponse()

    @table.handles(ProduceRequest, needs=NOTHING)
    async def produce(context: RequestContext, request: ProduceRequest) -> Message | None:
        return ProduceResponse()

    async def scenario(served: Served) -> None:
        caplog.clear()
        client = await served.connect()
        await client.transport.send([data])
        assert await client.is_closed()
        other = await served.connect()
        assert await other.ask(numbered(1), 4) == HeartbeatResponse(throttle_time_ms=1)
        other.transport.close()
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert record.exc_info is None
        assert any(each in record.getMessage() for each in logged.split("|"))

    server.run(table, scenario)


def test_garbage_behind_the_body_is_ignored(server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        frame = encode_request(numbered(3), 4, 1, None)[4:] + b"garbage"
        await client.transport.send([struct.pack(">i", len(frame)) + frame])
        assert (await client.receive(12, 4))[1] == HeartbeatResponse(throttle_time_ms=3)
        client.transport.close()

    server.run(heartbeats(), scenario)


def test_a_client_id_of_any_bytes_is_served_and_not_logged_raw(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    table = HandlerTable("broker")

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        raise ZeroDivisionError

    async def scenario(served: Served) -> None:
        client = await served.connect()
        client_id = b"\xff\xfe\nERROR x"
        header = struct.pack(">hhih", 12, 0, 1, len(client_id)) + client_id
        frame = header + encode_request(numbered(3), 0, 1, None)[14:]
        await client.transport.send([struct.pack(">i", len(frame)) + frame])
        assert (await client.receive(12, 0))[0] == 1
        client.transport.close()

    server.run(table, scenario)
    assert all("\nERROR x" not in record.getMessage() for record in caplog.records)


def test_many_bad_connections_make_few_log_lines(simulated_server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(served: Served) -> None:
        caplog.clear()
        for _ in range(100):
            client = await served.connect()
            await client.transport.send([b"GET / HTTP/1.1\r\n"])
            assert await client.is_closed()
        assert len(caplog.records) == 10
        await trio.sleep(11)
        client = await served.connect()
        await client.transport.send([b"GET / HTTP/1.1\r\n"])
        assert await client.is_closed()
        assert "90 similar lines were left out" in caplog.text

    simulated_server.run(heartbeats(), scenario)


FETCH = encode_request(FetchRequest(), 4, 1, None)
HEARTBEAT = encode_request(numbered(7), 4, 2, None)


class TestRequestsBehindALongPoll:
    """A Fetch waits for weeks, unless something else stands behind it."""

    @staticmethod
    def handlers(waiting: list[PartitionChanges]) -> HandlerTable:
        table = heartbeats()

        @table.handles(FetchRequest, needs=NOTHING)
        async def fetch(context: RequestContext, request: FetchRequest) -> FetchResponse:
            state = context.connection
            with PartitionChanges([], timeout_ms=2**31 - 1, client=state, asked_again=state.asked_again) as changes:
                waiting.append(changes)
                await changes.next()
            return FetchResponse()

        return table

    @staticmethod
    async def assert_both_are_answered(client: Client) -> None:
        with trio.fail_after(60):
            assert (await client.receive(1, 4))[0] == 1
            assert (await client.receive(12, 4))[0] == 2

    @pytest.mark.parametrize("partitions", [0, 1_025, 20_000])
    def test_a_request_in_the_same_packet_ends_it(self, server: Server, partitions: int) -> None:
        wanted = [
            FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1) for number in range(partitions)
        ]
        fetch = encode_request(FetchRequest(topics=[FetchTopic(topic="t", partitions=wanted)]), 4, 1, None)

        async def scenario(served: Served) -> None:
            client = await served.connect()
            await client.transport.send([fetch + HEARTBEAT])
            await self.assert_both_are_answered(client)
            client.transport.close()

        server.run(self.handlers([]), scenario)

    def test_a_request_that_comes_later_ends_it(self, real_server: Server) -> None:
        """Whole, or the rest of it: six bytes tell which request it is, be they in the buffer or not."""
        waiting: list[PartitionChanges] = []

        async def scenario(served: Served) -> None:
            client = await served.connect()
            for cut in range(12):
                waiting.clear()
                await client.transport.send([FETCH + HEARTBEAT[:cut]])
                await eventually(lambda: bool(waiting))
                await client.transport.send([HEARTBEAT[cut:]])
                await self.assert_both_are_answered(client)
            client.transport.close()

        real_server.run(self.handlers(waiting), scenario)

    def test_another_fetch_leaves_it_waiting(self, simulated_server: Server) -> None:
        """It would only wait in its place: whoever sends two at once would never have one that waits."""
        waiting: list[PartitionChanges] = []

        async def scenario(served: Served) -> None:
            waiting.clear()
            client = await served.connect()
            await client.transport.send([FETCH + FETCH + HEARTBEAT])
            await trio.sleep(1000)
            assert len(waiting) == 1
            waiting[0].give_up()
            assert (await client.receive(1, 4))[0] == 1
            await self.assert_both_are_answered(client)
            client.transport.close()

        simulated_server.run(self.handlers(waiting), scenario)

    def test_changes_still_end_it(self, server: Server) -> None:
        waiting: list[PartitionChanges] = []

        async def scenario(served: Served) -> None:
            waiting.clear()
            client = await served.connect()
            await client.transport.send([FETCH])
            await eventually(lambda: bool(waiting))
            waiting[0]._wake()
            assert (await client.receive(1, 4))[0] == 1
            assert await client.ask(numbered(3), 4) == HeartbeatResponse(throttle_time_ms=3)
            client.transport.close()

        server.run(self.handlers(waiting), scenario)

    def test_who_has_closed_one_end_waits_as_long_as_anybody_who_has_left(self, simulated_server: Server) -> None:
        async def scenario(served: Served) -> None:
            client = await served.connect()
            await client.transport.send([FETCH])
            half_close(client)
            assert (await client.receive(1, 4))[0] == 1
            assert await client.is_closed()

        simulated_server.run(self.handlers([]), scenario)
