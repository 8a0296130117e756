"""What nodes ask on a controller's listener: another broker joins, and passes on what its clients want."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import cast

import trio

from pykbroker.metadata.features import REGISTERED_FEATURES
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    Feature,
    Listener,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.server.quorum.forwarding import disclose_response, enclose
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.sim.node import SimulatedNode

from .serving import Client

CONTROLLER_PORT = 9093
LISTENERS = {"listeners": f"PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:{CONTROLLER_PORT}"}
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
HEADER = RequestHeader(ApiKey.CREATE_TOPICS, 7, 3, "admin")


class Nodes:
    """A node, and connections to both of its listeners."""

    def __init__(self, cluster_id: str, network: SimulatedNetwork, broker: Client, controller: Client) -> None:
        self.cluster_id = cluster_id
        self.network = network
        self.broker = broker
        self.controller = controller

    def registration(self, broker_id: int) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=bytes([broker_id] * 16),
            listeners=[Listener(name="PLAINTEXT", host="there", port=9095)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in REGISTERED_FEATURES.items()
            ],
            log_dirs=[bytes([broker_id + 100] * 16)],
        )

    async def brokers(self) -> list[int]:
        response = cast(MetadataResponse, await self.broker.ask(MetadataRequest(), 12))
        return [each.node_id for each in response.brokers]

    async def pass_on(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        return cast(EnvelopeResponse, await self.controller.ask(envelope, 0))


def with_a_controller(scenario: Callable[[Nodes], Awaitable[None]]) -> None:
    async def run() -> None:
        rng = random.Random(1)
        network = SimulatedNetwork(random.Random(rng.random()))
        node = SimulatedNode(rng, network, overrides=LISTENERS, takes_telemetry=True)
        async with trio.open_nursery() as nursery:
            ready = await node.start(nursery)
            broker = Client(await network.connect("127.0.0.1", 9092))
            controller = Client(await network.connect("127.0.0.1", CONTROLLER_PORT))
            await scenario(Nodes(ready.cluster_id, network, broker, controller))
            await node.stop()

    run_deterministic(run, seed=1)


def test_another_broker_registers_and_is_there_after_a_heartbeat() -> None:
    async def scenario(nodes: Nodes) -> None:
        answer = cast(BrokerRegistrationResponse, await nodes.controller.ask(nodes.registration(2), 4))
        assert answer.error_code == ErrorCode.NONE
        assert await nodes.brokers() == [1], "it is fenced until its heartbeats begin"
        beat = BrokerHeartbeatRequest(
            broker_id=2, broker_epoch=answer.broker_epoch, current_metadata_offset=answer.broker_epoch
        )
        beaten = cast(BrokerHeartbeatResponse, await nodes.controller.ask(beat, 1))
        assert (beaten.error_code, beaten.is_fenced, beaten.is_caught_up) == (0, False, True)
        assert await nodes.brokers() == [1, 2]
        ids = AllocateProducerIdsRequest(broker_id=2, broker_epoch=answer.broker_epoch)
        block = cast(AllocateProducerIdsResponse, await nodes.controller.ask(ids, 0))
        assert (block.error_code, block.producer_id_len) == (0, 1000)

    with_a_controller(scenario)


def test_a_broker_of_another_cluster_is_refused() -> None:
    async def scenario(nodes: Nodes) -> None:
        request = nodes.registration(2)
        request.cluster_id = "another"
        answer = cast(BrokerRegistrationResponse, await nodes.controller.ask(request, 4))
        assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID

    with_a_controller(scenario)


def test_a_client_s_request_in_an_envelope_is_answered_as_if_it_had_come_itself() -> None:
    async def scenario(nodes: Nodes) -> None:
        answer = await nodes.pass_on(enclose(CREATE, HEADER, "User:ANONYMOUS", "10.0.0.9"))
        assert answer.error_code == ErrorCode.NONE
        response = cast(CreateTopicsResponse, disclose_response(answer, HEADER))
        assert [(each.name, each.error_code) for each in response.topics] == [("t", ErrorCode.NONE)]

    with_a_controller(scenario)


def test_an_envelope_with_a_version_from_the_future_says_so() -> None:
    async def scenario(nodes: Nodes) -> None:
        envelope = enclose(CREATE, HEADER, "User:ANONYMOUS", "10.0.0.9")
        data = bytearray(envelope.request_data)
        data[3] = 99  # the version
        envelope.request_data = bytes(data)
        assert (await nodes.pass_on(envelope)).error_code == ErrorCode.UNSUPPORTED_VERSION

    with_a_controller(scenario)


def test_an_envelope_with_a_broken_request_says_so() -> None:
    async def scenario(nodes: Nodes) -> None:
        envelope = enclose(CREATE, HEADER, "User:ANONYMOUS", "10.0.0.9")
        envelope.request_data = envelope.request_data[:-4]
        assert (await nodes.pass_on(envelope)).error_code == ErrorCode.UNSUPPORTED_VERSION

    with_a_controller(scenario)
