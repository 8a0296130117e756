"""A broker whose process is gone is fenced at once; one that is silent, or out of reach, has its session's time."""

from __future__ import annotations

from typing import cast

import pytest
import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)
from pykbroker.sim.network import SimulatedAcceptor

from .serving import Client
from .test_controller_listener import CONTROLLER_PORT, Nodes, with_a_controller

SESSION_S = 9
PORT = 9095


class OtherBroker:
    """Broker 2, as the controller of node 1 meets it."""

    def __init__(self, nodes: Nodes, client: Client, epoch: int, acceptor: SimulatedAcceptor | None) -> None:
        self._nodes = nodes
        self._client = client
        self._epoch = epoch
        self._acceptor = acceptor

    @staticmethod
    async def join(nodes: Nodes, *, listens: bool = True) -> OtherBroker:
        acceptor = await nodes.network.listen("there", PORT) if listens else None
        client = await _connect(nodes)
        answer = cast(BrokerRegistrationResponse, await client.ask(nodes.registration(2), 4))
        broker = OtherBroker(nodes, client, answer.broker_epoch, acceptor)
        await broker.beat()
        await trio.sleep(0.1)  # as soon as it serves, the controller tries out where it can be reached
        assert await nodes.brokers() == [1, 2]
        return broker

    async def beat(self) -> None:
        request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=self._epoch, current_metadata_offset=self._epoch)
        answer = cast(BrokerHeartbeatResponse, await self._client.ask(request, 1))
        assert (answer.error_code, answer.is_fenced) == (0, False)

    async def reconnect(self) -> None:
        """Its heartbeat comes by the new connection before the old one breaks."""
        before, self._client = self._client, await _connect(self._nodes)
        await self.beat()
        before.transport.close()

    def disconnect(self) -> None:
        self._client.transport.close()

    def stop_listening(self) -> None:
        assert self._acceptor is not None
        self._acceptor.close()


async def _connect(nodes: Nodes) -> Client:
    return Client(await nodes.network.connect("127.0.0.1", CONTROLLER_PORT))


async def seconds_until_it_is_fenced(nodes: Nodes) -> float:
    start = trio.current_time()
    while 2 in await nodes.brokers():  # noqa: ASYNC110 - Metadata has no event
        await trio.sleep(0.01)
    return trio.current_time() - start


def test_a_broker_whose_process_is_gone_is_fenced_at_once() -> None:
    async def scenario(nodes: Nodes) -> None:
        broker = await OtherBroker.join(nodes)
        broker.disconnect()
        broker.stop_listening()
        assert await seconds_until_it_is_fenced(nodes) < 0.2

    with_a_controller(scenario)


def test_a_process_that_does_not_die_all_at_once_is_looked_after_for_a_moment() -> None:
    async def scenario(nodes: Nodes) -> None:
        broker = await OtherBroker.join(nodes)
        broker.disconnect()
        await trio.sleep(0.2)
        broker.stop_listening()
        assert await seconds_until_it_is_fenced(nodes) < 1.5

    with_a_controller(scenario)


def test_a_process_that_has_gone_may_come_back_at_once() -> None:
    async def scenario(nodes: Nodes) -> None:
        broker = await OtherBroker.join(nodes)
        broker.disconnect()
        broker.stop_listening()
        await seconds_until_it_is_fenced(nodes)
        again = nodes.registration(2)
        again.incarnation_id = bytes([77] * 16)
        answer = cast(BrokerRegistrationResponse, await nodes.controller.ask(again, 4))
        assert answer.error_code == ErrorCode.NONE

    with_a_controller(scenario)


def test_a_broken_connection_alone_is_no_death() -> None:
    async def scenario(nodes: Nodes) -> None:
        broker = await OtherBroker.join(nodes)
        broker.disconnect()
        assert await seconds_until_it_is_fenced(nodes) == pytest.approx(SESSION_S, abs=0.3)

    with_a_controller(scenario)


def test_a_port_that_refuses_alone_is_no_death() -> None:
    async def scenario(nodes: Nodes) -> None:
        broker = await OtherBroker.join(nodes)
        broker.stop_listening()
        assert await seconds_until_it_is_fenced(nodes) == pytest.approx(SESSION_S, abs=0.3)

    with_a_controller(scenario)


def test_a_broker_that_connects_anew_lives() -> None:
    async def scenario(nodes: Nodes) -> None:
        broker = await OtherBroker.join(nodes)
        broker.stop_listening()
        await broker.reconnect()
        assert await seconds_until_it_is_fenced(nodes) == pytest.approx(SESSION_S, abs=0.3)

    with_a_controller(scenario)


def test_an_address_that_was_never_reached_says_nothing_by_refusing() -> None:
    """Behind a translation of addresses, what clients are told may not be for controllers."""

    async def scenario(nodes: Nodes) -> None:
        broker = await OtherBroker.join(nodes, listens=False)
        broker.disconnect()
        assert await seconds_until_it_is_fenced(nodes) == pytest.approx(SESSION_S, abs=0.3)

    with_a_controller(scenario)
