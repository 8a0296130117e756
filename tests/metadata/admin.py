"""Admin handlers on a controller without a log on disk: requests and answers go through their bytes."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import trio
import trio.testing

import pykbroker.api
from pykbroker.metadata.encoded_topics import EncodedTopicsOfNode
from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.request_context import ControllerRequestContext
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.schema import Message
from pykbroker.server.coordinators.producer_ids import ProducerIds
from pykbroker.server.network.handlers import ConnectionState, ListenerKind, RequestContext
from pykbroker.server.network.node_connections import NodeConnections
from pykbroker.server.node.auto_topic_creation import AutoTopicCreation
from pykbroker.server.node.broker import Broker
from pykbroker.server.quorum.controller_channel import ControllerChannel
from pykbroker.server.runtime.threads import OnTheLoop
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.network import SimulatedNetwork
from tests.metadata.cluster import CLUSTER_ID, Cluster


class DirectDriver:
    """What handlers see of the controller's driver; every record is committed at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def image(self) -> MetadataImage:
        return self._cluster.image

    @property
    def is_active(self) -> bool:
        return True

    async def submit(
        self, request: Message, *, until_applied: bool = True, client: RequestContext[object] | None = None
    ) -> Any:
        await trio.lowlevel.checkpoint()
        if client is None:
            return self._cluster.ask(request)
        context = ControllerRequestContext(principal=client.principal, wall_ms=self._cluster.wall_ms)
        return self._cluster.ask(request, context)


class Admin:
    """Asks the handlers of node 1, on the listener PLAINTEXT or, for controllers, CONTROLLER."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        driver = DirectDriver(cluster)
        connections = NodeConnections(SimulatedNetwork(random.Random(0)), client_id="broker-1", request_timeout_ms=1)
        channel = ControllerChannel(connections, local=driver, find=lambda: None, timeout_ms=1, threads=OnTheLoop())
        seen = SimpleNamespace(
            config=cluster.config,
            node_id=1,
            cluster_id=CLUSTER_ID,
            rng=random.Random(0),
            controller=driver,
            controller_channel=channel,
            broker_watch=None,
            listeners=None,
            tls=None,
            sasl=None,
            authorizer=None,
            raft=SimpleNamespace(leader_id=1),
            image=driver.image,
            auto_topic_creation=AutoTopicCreation(cluster.config, channel, SimulatedClock()),
            encoded_topics=EncodedTopicsOfNode(),
            encoding_all_topics=trio.Lock(),
            partitions=SimpleNamespace(log_directories=dict),
            transactions=SimpleNamespace(producer_ids=ProducerIds(channel, lambda: driver.image, 1)),
        )
        self.broker = cast(Broker, seen)

    def ask(
        self,
        request: Message,
        version: int,
        kind: ListenerKind = "broker",
        *,
        connection: ConnectionState | None = None,
        is_forwarded: bool = False,
    ) -> Any:
        schema = request.__schema__
        assert schema.api_key is not None
        decoded, _ = decode(type(request), version, encode(request, version))
        handlers = pykbroker.api.HANDLERS.broker if kind == "broker" else pykbroker.api.HANDLERS.controller
        handler = handlers.by_api_key[schema.api_key]
        assert handler.min_version <= version <= handler.max_version
        context = RequestContext(
            node=self.broker,
            header=RequestHeader(api_key=schema.api_key, api_version=version, correlation_id=1, client_id="test"),
            listener=handlers,
            connection=connection or ConnectionState("PLAINTEXT" if kind == "broker" else "CONTROLLER", "127.0.0.1"),
            is_forwarded=is_forwarded,
        )

        async def handle() -> Message | None:
            """Returns when the topics that the request asked for on the way are created too."""
            answer = await handler.function(context, decoded)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.broker.auto_topic_creation.run)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            return answer

        response = trio.run(handle)
        assert response is not None
        return decode(response_type(schema.api_key), version, encode(response, version))[0]
