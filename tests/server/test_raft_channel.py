"""How many requests of raft are under way to a peer that stands still, and what became of those that were given up."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.quorum import VoteRequest
from pykbroker.protocol.schema import Message
from pykbroker.raft import wire
from pykbroker.raft.epochs import OffsetAndEpoch
from pykbroker.raft.events import Destination, OutgoingRequest, RequestFailed, ResponseReceived
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.voters import ReplicaKey
from pykbroker.server.network.node_connections import NodeConnections
from pykbroker.server.quorum.raft_channel import RaftChannel
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork

from .controllers import TestController

OTHER = 2
ELECTIONS = 1025
"""More than a node comes to within the request timeout."""
TIMEOUT_MS = 2_000
ARRIVED_S = 0.1
"""Of virtual time: what was sent on the simulated network is there, and answered, long before."""
REPLICA = LocalReplica(1, directory_id=bytes(16), cluster_id="cluster", endpoints=())


class Peer:
    """The peer answers votes when it goes on, and no fetch. came_to: the ids of requests in their order, and how each
    ended.
    """

    def __init__(self) -> None:
        self.goes_on = trio.Event()
        self.controller = TestController(OTHER, VoteRequest, self._answer, FetchRequest)
        self.came_to: list[ResponseReceived | RequestFailed] = []

    async def _answer(self, request: Message) -> Message:
        if isinstance(request, FetchRequest):
            await trio.sleep_forever()
        await self.goes_on.wait()
        return wire.vote_response(wire.Known(1, wire.NO_LEADER, None), ErrorCode.NONE, granted=False)

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[Callable[[int, Message], None]]:
        """What asks it for something, on one channel."""
        network = SimulatedNetwork(random.Random(1))
        connections = NodeConnections(network, client_id="raft-client-1", request_timeout_ms=TIMEOUT_MS)
        channel = RaftChannel(connections, "cluster")
        to = Destination(OTHER, self.controller.destination.host, self.controller.destination.port)

        async def ask(request_id: int, request: Message) -> None:
            self.came_to.append(await channel.ask(OutgoingRequest(request_id, to, request)))

        async with self.controller.serving(network), trio.open_nursery() as asking:
            yield lambda request_id, request: asking.start_soon(ask, request_id, request)
            asking.cancel_scope.cancel()
        await channel.aclose()

    @property
    def failed(self) -> list[int]:
        return [each.request_id for each in self.came_to if isinstance(each, RequestFailed)]

    @property
    def answered(self) -> list[int]:
        return [each.request_id for each in self.came_to if isinstance(each, ResponseReceived)]


def vote(epoch: int) -> VoteRequest:
    return wire.vote_request(REPLICA, ReplicaKey(OTHER, bytes(16)), epoch, OffsetAndEpoch(0, 0), pre_vote=True)


def asking(scenario: Callable[[Peer, Callable[[int, Message], None]], Any]) -> None:
    async def run() -> None:
        peer = Peer()
        async with peer.asked() as ask:
            await scenario(peer, ask)

    run_deterministic(run, seed=1)


def test_a_peer_that_stands_still_gets_one_request_and_the_newest_one_behind_it() -> None:
    """Whole-cluster seed 520947: 135 votes were under way to a node that had been stopped for a while."""

    async def scenario(peer: Peer, ask: Callable[[int, Message], None]) -> None:
        for number in range(ELECTIONS):
            ask(number, vote(number))
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(ARRIVED_S)
        assert len(peer.controller.asked) == 1
        assert peer.failed == list(range(1, ELECTIONS - 1))
        peer.goes_on.set()
        await trio.sleep(ARRIVED_S)
        assert peer.answered == [0, ELECTIONS - 1]
        assert [each.topics[0].partitions[0].replica_epoch for each in peer.controller.asked] == [0, ELECTIONS - 1]

    asking(scenario)


def test_the_one_that_waits_goes_out_on_a_new_connection_where_the_first_one_timed_out() -> None:
    async def scenario(peer: Peer, ask: Callable[[int, Message], None]) -> None:
        ask(1, vote(1))
        await trio.sleep(ARRIVED_S)
        ask(2, vote(2))
        await trio.sleep(TIMEOUT_MS / 1000)
        assert peer.failed == [1]
        peer.goes_on.set()
        await trio.sleep(ARRIVED_S)
        assert peer.answered == [2]

    asking(scenario)


def test_a_vote_does_not_wait_for_a_fetch() -> None:
    async def scenario(peer: Peer, ask: Callable[[int, Message], None]) -> None:
        peer.goes_on.set()
        ask(1, FetchRequest(max_wait_ms=500))
        await trio.sleep(ARRIVED_S)
        ask(2, vote(1))
        await trio.sleep(ARRIVED_S)
        assert peer.answered == [2]

    asking(scenario)


def test_nothing_is_kept_of_peers_that_are_not_there() -> None:
    async def scenario() -> None:
        network = SimulatedNetwork(random.Random(1))
        channel = RaftChannel(NodeConnections(network, client_id="raft-client-1", request_timeout_ms=TIMEOUT_MS))
        for port in range(100):
            came_to = await channel.ask(OutgoingRequest(port, Destination(-1, "nowhere", port), vote(1)))
            assert came_to == RequestFailed(port, connection_refused=True)
        assert not channel._lines

    run_deterministic(scenario, seed=1)
