"""Connections whose requests are answered at once rest in the lane of their listener."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import cast

import pytest
import trio
import trio.lowlevel
from trio.testing import wait_all_tasks_blocked

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse, SyncGroupRequest, SyncGroupResponse
from pykbroker.protocol.schema import Message
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.server.network.handlers import ConnectionState, HandlerTable, RequestContext
from pykbroker.server.network.lane import Lane, WithSocket
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.socket_transport import SocketTransport
from pykbroker.server.network.transport import Address
from pykbroker.server.runtime.threads import OnTheLoop
from tests.server.serving import Client, Served, Server, eventually, limits

HEARTBEAT, SYNC = int(ApiKey.HEARTBEAT), int(ApiKey.SYNC_GROUP)
REPEATED = 10


class World:
    """What answers are made of: heartbeats tell its number and are repeated, syncs tell of themselves alone."""

    def __init__(self) -> None:
        self.begin()
        self.table: HandlerTable[None] = HandlerTable("broker")

        @self.table.handles(HeartbeatRequest, needs=NOTHING, made_of=lambda _: self.number if self.is_told else None)
        async def heartbeat(context: RequestContext[None], request: HeartbeatRequest) -> HeartbeatResponse:
            self.handled += 1
            if request.generation_id >= 0:
                context.repeat = self._repeat
            await trio.lowlevel.checkpoint()
            return HeartbeatResponse(throttle_time_ms=self.number)

        @self.table.handles(SyncGroupRequest, needs=NOTHING)
        async def sync(context: RequestContext[None], request: SyncGroupRequest) -> SyncGroupResponse:
            await trio.lowlevel.checkpoint()
            return SyncGroupResponse(throttle_time_ms=request.generation_id)

    def begin(self) -> None:
        self.number = 1
        self.handled = self.repeated = 0
        self.is_told = True

    def _repeat(self, connection: ConnectionState) -> None:
        self.repeated += 1
        assert connection.request is not None
        assert connection.request.api_key == HEARTBEAT


def ask_for(generation_id: int = 1) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=generation_id, member_id="m")


async def told(client: Client, request: Message = ask_for()) -> int:  # noqa: B008 - nobody changes it
    response = await client.ask(request, 4 if isinstance(request, HeartbeatRequest) else 5)
    return cast("HeartbeatResponse", response).throttle_time_ms


async def bring_to_rest(served: Served, client: Client) -> None:
    """In the lane, where there is one."""
    for _ in range(REPEATED):
        await told(client)
    await wait_all_tasks_blocked()


def resting(served: Served) -> int:
    return served.listener._lane.resting


def test_an_answer_is_repeated_as_long_as_what_it_is_made_of(server: Server) -> None:
    async def scenario(served: Served) -> None:
        world.begin()
        client = await served.connect()
        await bring_to_rest(served, client)
        assert (world.handled, world.repeated) == (1, REPEATED - 1)
        assert resting(served) == (not server.is_simulated)
        world.number = 2
        assert [await told(client) for _ in range(5)] == [2] * 5
        assert world.handled == 2
        world.is_told = False
        assert [await told(client) for _ in range(5)] == [2] * 5
        assert world.handled == 7, "nothing is remembered where the node says so"
        client.transport.close()

    world = World()
    server.run(world.table, scenario)


def test_an_answer_that_was_not_marked_is_made_each_time(server: Server) -> None:
    async def scenario(served: Served) -> None:
        client, before = await served.connect(), world.handled
        for _ in range(5):
            assert await told(client, ask_for(-1)) == 1
        assert world.handled - before == 5
        client.transport.close()

    world = World()
    server.run(world.table, scenario)


def test_other_requests_take_a_connection_out_of_the_lane(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        for number in range(5):
            await bring_to_rest(served, client)
            assert resting(served) == 1
            assert await told(client, SyncGroupRequest(group_id="g", generation_id=number)) == number
            await wait_all_tasks_blocked()
            assert resting(served) == 0
        client.transport.close()

    real_server.run(World().table, scenario)


@pytest.mark.parametrize("seed", range(5))
def test_requests_in_any_pieces_are_answered_in_their_order(real_server: Server, seed: int) -> None:
    chance = random.Random(seed)

    async def scenario(served: Served) -> None:
        client = await served.connect()
        await bring_to_rest(served, client)
        for _ in range(20):
            kinds = [chance.choice([HEARTBEAT, HEARTBEAT, SYNC]) for _ in range(chance.randint(1, 6))]
            data = b"".join(
                encode_request(ask_for(), 4, number, "test")
                if kind == HEARTBEAT
                else encode_request(SyncGroupRequest(group_id="g", generation_id=number), 5, number, "test")
                for number, kind in enumerate(kinds)
            )
            while data:
                size = chance.choice([1, 3, 50, len(data)])
                await client.transport.send([data[:size]])
                data = data[size:]
                if chance.random() < 0.5:
                    await wait_all_tasks_blocked()
            for number, kind in enumerate(kinds):
                correlation_id, response = await client.receive(kind, 4 if kind == HEARTBEAT else 5)
                assert correlation_id == number
                assert cast("HeartbeatResponse", response).throttle_time_ms == (1 if kind == HEARTBEAT else number)
            for _ in range(chance.randint(0, 5)):
                await told(client)
        client.transport.close()

    real_server.run(World().table, scenario)


def test_many_clients_rest_and_each_gets_its_own_answer(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        clients = [await served.connect() for _ in range(120)]
        for client in clients:
            await bring_to_rest(served, client)
        assert resting(served) == len(clients)
        for client in clients:
            await client.send(ask_for(), 4)
        for client in clients:
            assert (await client.receive(HEARTBEAT, 4))[0] == client.correlation_id
        assert resting(served) == len(clients)
        for client in clients:
            client.transport.close()
        await eventually(lambda: served.listener.connection_count == 0)
        assert resting(served) == 0

    real_server.run(World().table, scenario)


def test_a_client_that_takes_no_answers_is_waited_for_by_its_own_task(real_server: Server) -> None:
    asked = 200_000

    async def scenario(served: Served) -> None:
        slow, other = await served.connect(), await served.connect()
        await bring_to_rest(served, slow)
        await bring_to_rest(served, other)
        request = encode_request(ask_for(), 4, 7, "test")
        sent = 0
        with trio.move_on_after(1):
            while sent < asked:
                await slow.transport.send([request])
                sent += 1
                await trio.lowlevel.checkpoint()
        assert await told(other) == 1
        for _ in range(sent):
            assert (await slow.receive(HEARTBEAT, 4))[0] == 7

    real_server.run(World().table, scenario)


def test_connections_at_rest_are_closed_with_their_listener(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await bring_to_rest(served, client)
        served.listener.stop()
        assert await client.is_closed()
        await eventually(lambda: served.listener.connection_count == 0)

    real_server.run(World().table, scenario)


def test_an_idle_connection_is_closed_while_it_rests(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await bring_to_rest(served, client)
        assert await client.is_closed()
        await eventually(lambda: served.listener.connection_count == 0)

    real_server.run(World().table, scenario, limits(max_idle_ms=200))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xffGET "])
def test_what_is_no_request_closes_a_connection_at_rest(real_server: Server, data: bytes) -> None:
    async def scenario(served: Served) -> None:
        client, other = await served.connect(), await served.connect()
        await bring_to_rest(served, client)
        await bring_to_rest(served, other)
        await client.transport.send([data])
        assert await client.is_closed()
        assert await told(other) == 1

    real_server.run(World().table, scenario)


def test_clients_that_have_quotas_are_measured(server: Server) -> None:
    async def scenario(served: Served) -> None:
        client, before = await served.connect(), world.handled
        for _ in range(REPEATED):
            await told(client)
        assert world.handled - before == REPEATED

    def quotas() -> ClientQuotas:
        made = ClientQuotas(QuotaWindows(), QuotaWindows())
        made.change(frozenset({("client-id", "test")}), {"request_percentage": 1000.0})
        return made

    world = World()
    server.run(world.table, scenario, quotas=quotas)


# The lane by itself


def over(check: Callable[[Lane, SocketTransport, socket.socket], object]) -> None:
    async def run() -> None:
        with trio.fail_after(10):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            lane, transport = Lane(), SocketTransport(ours, Address("peer", 1), OnTheLoop())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lane.run)
                await wait_all_tasks_blocked()
                await check(lane, transport, theirs)  # type: ignore[misc]
                nursery.cancel_scope.cancel()
            theirs.close()
            transport.close()

    trio.run(run)


def test_what_serving_raises_is_raised_where_the_connection_rests() -> None:
    def serve() -> bool:
        raise ValueError("of this connection")

    async def check(lane: Lane, transport: WithSocket, theirs: socket.socket) -> None:
        theirs.send(b"x")
        with pytest.raises(ValueError, match="of this connection"):
            await lane.rest(transport, serve)
        assert lane.resting == 0

    over(check)


def test_a_cancelled_rest_leaves_nothing_in_the_lane() -> None:
    async def check(lane: Lane, transport: WithSocket, theirs: socket.socket) -> None:
        for _ in range(3):
            with trio.move_on_after(0.01) as scope:
                await lane.rest(transport, lambda: True)
            assert scope.cancelled_caught
            assert lane.resting == 0
            assert transport.when_closing is None
        theirs.send(b"x")
        await lane.rest(transport, lambda: False)

    over(check)


def test_the_end_of_the_lane_wakes_up_who_rests() -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs, trio.fail_after(10):
            ours.setblocking(False)
            lane, transport = Lane(), SocketTransport(ours, Address("peer", 1), OnTheLoop())
            async with trio.open_nursery() as nursery:
                lanes = await nursery.start(_run_lane, lane)
                nursery.start_soon(lane.rest, transport, lambda: True)
                await wait_all_tasks_blocked()
                assert lane.resting == 1
                lanes.cancel()
            assert lane.resting == 0
            assert not lane.is_open

    trio.run(run)


async def _run_lane(lane: Lane, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    with trio.CancelScope() as scope:
        task_status.started(scope)
        await lane.run()


def test_who_closes_a_transport_wakes_up_who_rests() -> None:
    async def check(lane: Lane, transport: SocketTransport, theirs: socket.socket) -> None:
        async with trio.open_nursery() as nursery:

            async def rest() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await lane.rest(transport, lambda: True)

            nursery.start_soon(rest)
            await wait_all_tasks_blocked()
            transport.close()
        with pytest.raises(trio.ClosedResourceError):
            await lane.rest(transport, lambda: True)

    over(check)


# Requests that are begun without a task


class Begun:
    """Heartbeats that are answered when the test says so; those of a negative generation are for the handler."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Callable[[Message], None]]] = []
        self.handled = 0
        self.table: HandlerTable[None] = HandlerTable("broker")

        def begin(context: RequestContext[None], request: HeartbeatRequest, give: Callable[[Message], None]) -> bool:
            if request.generation_id == -2:
                raise MalformedMessage("no such generation")
            if request.generation_id < 0:
                return False
            self.waiting.append((request.generation_id, give))
            return True

        @self.table.handles(HeartbeatRequest, needs=NOTHING, begin=begin)
        async def heartbeat(context: RequestContext[None], request: HeartbeatRequest) -> HeartbeatResponse:
            self.handled += 1
            await trio.lowlevel.checkpoint()
            return HeartbeatResponse(throttle_time_ms=abs(request.generation_id))

    def answer_all(self) -> int:
        """Return how many answers were given."""
        waiting, self.waiting = self.waiting, []
        for number, give in waiting:
            give(HeartbeatResponse(throttle_time_ms=number))
        return len(waiting)

    async def bring_to_rest(self, client: Client, requests: int = 3) -> None:
        """A request that the handler has is one that could have been begun, until it comes in the lane."""
        for number in range(1, requests + 1):
            assert await told(client, ask_for(-number if number != 2 else -7)) == (number if number != 2 else 7)
        await wait_all_tasks_blocked()


def test_an_answer_that_comes_later_is_sent_when_it_comes(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        clients = [await served.connect() for _ in range(70)]
        for client in clients:
            await begun.bring_to_rest(client)
        assert resting(served) == 70
        for number, client in enumerate(clients):
            await client.send(ask_for(number), 4)
        await eventually(lambda: len(begun.waiting) == 70)
        begun.answer_all()
        for number, client in enumerate(clients):
            correlation_id, response = await client.receive(HEARTBEAT, 4)
            assert correlation_id == client.correlation_id
            assert response == HeartbeatResponse(throttle_time_ms=number)
        assert resting(served) == 70
        for client in clients:
            client.transport.close()

    begun = Begun()
    real_server.run(begun.table, scenario)


def test_what_comes_behind_a_begun_request_is_answered_behind_it(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await begun.bring_to_rest(client)
        await client.send(ask_for(5), 4)
        await eventually(lambda: len(begun.waiting) == 1)
        await client.send(ask_for(-6), 4)
        await client.send(ask_for(7), 4)
        await wait_all_tasks_blocked(0.01)
        assert resting(served) == 0
        handled = begun.handled
        begun.answer_all()
        answers = [(await client.receive(HEARTBEAT, 4))[1] for _ in range(3)]
        assert [cast("HeartbeatResponse", each).throttle_time_ms for each in answers] == [5, 6, 7]
        assert begun.handled == handled + 2
        client.transport.close()

    begun = Begun()
    real_server.run(begun.table, scenario)


def test_a_client_that_leaves_with_a_begun_request_is_forgotten(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        leaving, staying = await served.connect(), await served.connect()
        await begun.bring_to_rest(leaving)
        await begun.bring_to_rest(staying)
        await leaving.send(ask_for(5), 4)
        await eventually(lambda: len(begun.waiting) == 1)
        leaving.transport.close()
        await wait_all_tasks_blocked(0.01)
        begun.answer_all()
        await eventually(lambda: served.listener.connection_count == 1)
        assert await told(staying, ask_for(-9)) == 9
        staying.transport.close()

    begun = Begun()
    real_server.run(begun.table, scenario)


def test_a_connection_that_is_closed_under_a_begun_request_ends(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await begun.bring_to_rest(client)
        await client.send(ask_for(5), 4)
        await eventually(lambda: len(begun.waiting) == 1)
        (connection,) = served.listener._connections
        connection._transport.close()
        await eventually(lambda: served.listener.connection_count == 0)
        begun.answer_all()
        await wait_all_tasks_blocked(0.01)
        assert await client.is_closed()

    begun = Begun()
    real_server.run(begun.table, scenario)


def test_a_begun_request_is_answered_while_the_listener_stops(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await begun.bring_to_rest(client)
        await client.send(ask_for(5), 4)
        await eventually(lambda: len(begun.waiting) == 1)
        served.listener.stop()
        await wait_all_tasks_blocked(0.01)
        begun.answer_all()
        assert (await client.receive(HEARTBEAT, 4))[1] == HeartbeatResponse(throttle_time_ms=5)
        assert await client.is_closed()

    begun = Begun()
    real_server.run(begun.table, scenario)


def test_a_request_that_cannot_be_begun_leaves_the_lane_and_its_error_is_the_connections(real_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await begun.bring_to_rest(client)
        assert resting(served) == 1
        assert await told(client, ask_for(-9)) == 9
        await wait_all_tasks_blocked()
        assert resting(served) == 0, "its last request had a task"
        await begun.bring_to_rest(client, 2)
        assert resting(served) == 1
        await client.send(ask_for(-2), 4)
        assert await client.is_closed()

    begun = Begun()
    real_server.run(begun.table, scenario)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_comes_is_answered_in_its_order(real_server: Server, seed: int) -> None:
    chance = random.Random(seed)

    async def scenario(served: Served) -> None:
        async def answer() -> None:
            while True:
                await trio.lowlevel.checkpoint()
                if chance.random() < 0.3:
                    begun.answer_all()

        client = await served.connect()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            for _ in range(30):
                numbers = [chance.choice([-9, 1, 2, 3]) for _ in range(chance.choice([1, 1, 1, 2, 4]))]
                data = b"".join(encode_request(ask_for(n), 4, k, "test") for k, n in enumerate(numbers))
                cut = chance.choice([len(data), len(data), 7])
                await client.transport.send([data[:cut]])
                await trio.sleep(chance.choice([0, 0.001]))
                await client.transport.send([data[cut:]])
                for number, generation_id in enumerate(numbers):
                    correlation_id, response = await client.receive(HEARTBEAT, 4)
                    assert correlation_id == number
                    assert response == HeartbeatResponse(throttle_time_ms=abs(generation_id))
            nursery.cancel_scope.cancel()
        client.transport.close()

    begun = Begun()
    real_server.run(begun.table, scenario)


def test_an_answer_that_cannot_be_encoded_ends_its_connection_alone(
    real_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(served: Served) -> None:
        clients = [await served.connect() for _ in range(2)]
        for client in clients:
            await begun.bring_to_rest(client)
            await client.send(ask_for(5), 4)
        await eventually(lambda: len(begun.waiting) == 2)
        (_, first), (_, second) = begun.waiting
        first(HeartbeatResponse(throttle_time_ms=1 << 40))
        second(HeartbeatResponse(throttle_time_ms=6))
        ended = [await client.is_closed() for client in clients[:1]]
        assert ended == [True]
        assert (await clients[1].receive(HEARTBEAT, 4))[1] == HeartbeatResponse(throttle_time_ms=6)

    begun = Begun()
    real_server.run(begun.table, scenario)
    assert "HeartbeatRequest version 4 of client test failed" in caplog.text
    caplog.clear()
