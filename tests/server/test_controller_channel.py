"""The way to the active controller: whoever asks gets an answer from the one that leads, or hears that time is over."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    EnvelopeRequest,
    EnvelopeResponse,
)
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.protocol.schema import Message
from pykbroker.server.network.handlers import CloseConnection, ConnectionState, HandlerTable, RequestContext
from pykbroker.server.network.node_connections import NodeAddress, NodeConnections
from pykbroker.server.quorum.controller_channel import ControllerChannel
from pykbroker.server.quorum.forwarding import disclose, enclose_response
from pykbroker.server.runtime.threads import OnTheLoop
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork

from .controllers import TestController

REQUEST = AllocateProducerIdsRequest(broker_id=1, broker_epoch=5)


class LocalController:
    """Active until it has given all its answers."""

    def __init__(self, *answers: Message) -> None:
        self.is_active = True
        self.answers = list(answers)

    async def submit(self, request: Message, *, client: RequestContext[object] | None = None) -> Any:
        await trio.lowlevel.checkpoint()
        answer = self.answers.pop(0)
        self.is_active = bool(self.answers)
        return answer


class World:
    def __init__(self) -> None:
        self.network = SimulatedNetwork(random.Random(1))
        self.leader: NodeAddress | None = None

    @asynccontextmanager
    async def channel(self, local: LocalController | None = None) -> AsyncIterator[ControllerChannel]:
        connections = NodeConnections(self.network, client_id="broker-1", request_timeout_ms=30_000)
        channel = ControllerChannel(
            connections, local=local, find=lambda: self.leader, timeout_ms=5_000, threads=OnTheLoop()
        )
        yield channel
        await channel.aclose()


def simulated(scenario: Callable[[World], Any]) -> None:
    async def run() -> None:
        await scenario(World())

    run_deterministic(run, seed=1)


def block(start: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=1000)


async def gives_block(request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    return block(7000)


async def is_not_active(request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)


async def hangs(request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    await trio.sleep_forever()
    raise AssertionError


def test_the_local_controller_is_asked_while_it_is_active() -> None:
    async def scenario(world: World) -> None:
        async with world.channel(LocalController(block(3000))) as channel:
            assert await channel.submit(REQUEST) == block(3000)

    simulated(scenario)


@asynccontextmanager
async def asking(channel: ControllerChannel) -> AsyncIterator[None]:
    """Something is asked meanwhile, and answered in the end."""
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def ask() -> None:
            assert await channel.submit(REQUEST) == block(7000)

        yield


def test_another_node_is_asked_where_the_controller_is_there() -> None:
    async def scenario(world: World) -> None:
        controller = TestController(2, AllocateProducerIdsRequest, gives_block)
        world.leader = controller.destination
        async with controller.serving(world.network), world.channel() as channel:
            assert await channel.submit(REQUEST) == block(7000)
            assert controller.asked == [REQUEST]

    simulated(scenario)


def test_the_next_controller_is_asked_when_one_is_not_active_any_more() -> None:
    async def scenario(world: World) -> None:
        old = TestController(2, AllocateProducerIdsRequest, is_not_active)
        new = TestController(3, AllocateProducerIdsRequest, gives_block)
        world.leader = old.destination
        async with old.serving(world.network), new.serving(world.network), world.channel() as channel:
            async with asking(channel):
                await trio.sleep(0.5)
                world.leader = new.destination
                channel.leader_may_have_changed()
            assert len(old.asked) > 1
            assert len(new.asked) == 1

    simulated(scenario)


def test_a_paused_controller_is_not_waited_for_when_another_one_leads() -> None:
    async def scenario(world: World) -> None:
        paused = TestController(2, AllocateProducerIdsRequest, hangs)
        new = TestController(3, AllocateProducerIdsRequest, gives_block)
        world.leader = paused.destination
        async with paused.serving(world.network), new.serving(world.network), world.channel() as channel:
            async with asking(channel):
                await trio.sleep(1)
                world.leader = None  # nobody leads: the old one may still answer
                channel.leader_may_have_changed()
                await trio.sleep(1)
                world.leader = new.destination
                channel.leader_may_have_changed()
            assert trio.current_time() < 3

    simulated(scenario)


def test_a_local_controller_that_gives_up_leaves_its_requests_to_the_next() -> None:
    async def scenario(world: World) -> None:
        new = TestController(3, AllocateProducerIdsRequest, gives_block)
        local = LocalController(AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER))
        world.leader = new.destination
        async with new.serving(world.network), world.channel(local) as channel:
            assert await channel.submit(REQUEST) == block(7000)

    simulated(scenario)


def test_without_a_controller_the_answer_is_that_time_is_over() -> None:
    async def scenario(world: World) -> None:
        async with world.channel() as channel:
            response = await channel.submit(REQUEST)
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() == pytest.approx(5)

    simulated(scenario)


def test_a_refused_connection_is_tried_again_until_time_is_over() -> None:
    async def scenario(world: World) -> None:
        world.leader = NodeAddress("controller 2", "host2", 9093)
        async with world.channel() as channel:
            response = await channel.submit(REQUEST, timeout_ms=1000)
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() == pytest.approx(1)

    simulated(scenario)


CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
HEADER = RequestHeader(ApiKey.CREATE_TOPICS, 7, 3, "admin")


def client() -> RequestContext:
    state = ConnectionState("PLAINTEXT", "10.0.0.9", "User:alice")
    return RequestContext(None, HEADER, HandlerTable("broker"), state)


def test_a_client_s_request_is_forwarded_with_who_sent_it() -> None:
    async def answer(request: EnvelopeRequest) -> EnvelopeResponse:
        forwarded = disclose(request)
        assert (forwarded.principal, forwarded.client_address) == ("User:alice", "10.0.0.9")
        return enclose_response(CreateTopicsResponse(), forwarded.header)

    async def scenario(world: World) -> None:
        controller = TestController(2, EnvelopeRequest, answer)
        world.leader = controller.destination
        async with controller.serving(world.network), world.channel() as channel:
            assert await channel.forward(client(), CREATE) == CreateTopicsResponse()

    simulated(scenario)


@pytest.mark.parametrize("error_code", [ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, ErrorCode.INVALID_REQUEST])
def test_a_refused_envelope_is_an_error_of_the_server(error_code: ErrorCode) -> None:
    async def answer(request: EnvelopeRequest) -> EnvelopeResponse:
        return EnvelopeResponse(error_code=error_code)

    async def scenario(world: World) -> None:
        controller = TestController(2, EnvelopeRequest, answer)
        world.leader = controller.destination
        async with controller.serving(world.network), world.channel() as channel:
            response = await channel.forward(client(), CREATE)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]

    simulated(scenario)


def test_a_version_that_the_controller_does_not_know_closes_the_client_s_connection() -> None:
    async def answer(request: EnvelopeRequest) -> EnvelopeResponse:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

    async def scenario(world: World) -> None:
        controller = TestController(2, EnvelopeRequest, answer)
        world.leader = controller.destination
        async with controller.serving(world.network), world.channel() as channel:
            with pytest.raises(CloseConnection):
                await channel.forward(client(), CREATE)

    simulated(scenario)
