"""Topics that clients ask Metadata for: what the broker asks of the controller, and how much of it waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import trio
import trio.testing
from click.testing import CliRunner

from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.cli.main import main
from pykbroker.config import BrokerConfig
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykbroker.server.network.handlers import CloseConnection, ConnectionState, HandlerTable, RequestContext
from pykbroker.server.node.auto_topic_creation import MOST_CLIENT_CHARACTERS, MOST_PENDING, AutoTopicCreation
from pykbroker.sim.clock import SimulatedClock
from pykbroker.testing import Cluster
from pykbroker.testing.cluster import ClusterBroker


class SlowController:
    """Takes requests, and answers each when it is told to."""

    def __init__(self) -> None:
        self.requests: list[CreateTopicsRequest] = []
        self.clients: list[RequestContext[object]] = []
        self._turn = trio.Semaphore(0)

    async def forward(self, client: RequestContext[object], request: CreateTopicsRequest) -> CreateTopicsResponse:
        self.requests.append(request)
        self.clients.append(client)
        await self._turn.acquire()
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=each.name) for each in request.topics])

    async def answer(self) -> None:
        self._turn.release()
        await trio.testing.wait_all_tasks_blocked()

    @property
    def names(self) -> list[list[str]]:
        return [[topic.name for topic in request.topics] for request in self.requests]


def creating(
    test: Callable[[AutoTopicCreation, SlowController], Awaitable[None]],
    properties: dict[str, str] | None = None,
    new_controller: Callable[[], SlowController] = SlowController,
) -> None:
    async def main() -> None:
        controller = new_controller()
        creation = AutoTopicCreation(BrokerConfig(properties or {}), cast(Any, controller), SimulatedClock())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(creation.run)
            await test(creation, controller)
            nursery.cancel_scope.cancel()

    trio.run(main)


def asking(client_id: str = "client", principal: str = "User:bob", *, by_token: bool = False) -> RequestContext[object]:
    """The context of a client's Metadata."""
    header = RequestHeader(ApiKey.METADATA, 12, 7, client_id)
    connection = ConnectionState("PLAINTEXT", "10.0.0.1", principal, by_token=by_token)
    return RequestContext(None, header, HandlerTable("broker"), connection)


async def create(creation: AutoTopicCreation, *names: str, client: RequestContext[object] | None = None) -> None:
    creation.create(names, client=client or asking())
    await trio.testing.wait_all_tasks_blocked()


def test_the_brokers_own_properties_come_before_the_controllers() -> None:
    async def test(creation: AutoTopicCreation, controller: SlowController) -> None:
        await create(creation, "t")
        [topic] = controller.requests[0].topics
        assert (topic.num_partitions, topic.replication_factor) == (5, -1)

    creating(test, {"num.partitions": "5"})


def test_the_controller_decides_what_the_brokers_properties_do_not_say() -> None:
    async def test(creation: AutoTopicCreation, controller: SlowController) -> None:
        await create(creation, "t")
        [topic] = controller.requests[0].topics
        assert (topic.num_partitions, topic.replication_factor) == (-1, 2)

    creating(test, {"default.replication.factor": "2"})


def test_a_topic_is_asked_for_once_while_the_controller_is_at_it() -> None:
    async def test(creation: AutoTopicCreation, controller: SlowController) -> None:
        await create(creation, "a", "b", "a")
        await create(creation, "b", "c")
        assert controller.names == [["a", "b"]]
        await controller.answer()
        assert controller.names == [["a", "b"], ["c"]]
        await controller.answer()
        await create(creation, "a")
        assert controller.names[2:] == [["a"]]

    creating(test)


def test_no_more_names_wait_than_a_bound_says() -> None:
    async def test(creation: AutoTopicCreation, controller: SlowController) -> None:
        await create(creation, *(f"a{number}" for number in range(MOST_PENDING - 1)))
        await create(creation, "b", "c")
        await create(creation, "d")
        looked_at = iter(["e", "f"])
        creation.create(looked_at, client=asking())
        assert list(looked_at) == ["e", "f"]
        for _ in range(3):
            await controller.answer()
        assert controller.names[1:] == [["b"]]
        await create(creation, "d")
        assert controller.names[2:] == [["d"]]

    creating(test)


async def is_asked_again(creation: AutoTopicCreation, controller: SlowController) -> None:
    for _ in range(2):
        await create(creation, "a")
        await controller.answer()
    assert controller.names == [["a"], ["a"]]


def test_a_controller_that_cannot_be_reached_is_asked_again_by_the_next_metadata() -> None:
    class Unreachable(SlowController):
        async def forward(self, client: RequestContext[object], request: CreateTopicsRequest) -> CreateTopicsResponse:
            response = await super().forward(client, request)
            for topic in response.topics:
                topic.error_code = ErrorCode.REQUEST_TIMED_OUT
            return response

    creating(is_asked_again, new_controller=Unreachable)


def test_a_topic_is_created_in_the_name_of_the_client_that_asked_for_it() -> None:
    async def test(creation: AutoTopicCreation, controller: SlowController) -> None:
        asked = asking("eve's", "User:eve", by_token=True)
        await create(creation, "a", client=asked)
        (client,) = controller.clients
        assert (client.user, client.client_address, client.connection.by_token) == ("eve", "10.0.0.1", True)
        assert client.header == (ApiKey.CREATE_TOPICS, 7, 7, "eve's")
        assert client.connection is not asked.connection, "which may be closed by then"

    creating(test)


def test_clients_with_long_names_take_bounded_room() -> None:
    async def test(creation: AutoTopicCreation, controller: SlowController) -> None:
        long = MOST_CLIENT_CHARACTERS - len("User:bob")
        await create(creation, "a", client=asking("x" * long))
        await create(creation, "b", client=asking(""))
        assert controller.names == [["a"]]
        await controller.answer()
        await create(creation, "c", client=asking("x" * (2 * long)))
        await create(creation, "b", client=asking(""))
        await controller.answer()
        await create(creation, "b", client=asking(""))
        assert controller.names == [["a"], ["c"], ["b"]]

    creating(test)


def test_a_controller_that_does_not_know_the_request_keeps_nobody_from_the_next_topic() -> None:
    class Old(SlowController):
        async def forward(self, client: RequestContext[object], request: CreateTopicsRequest) -> CreateTopicsResponse:
            response = await super().forward(client, request)
            if len(self.requests) == 1:
                raise CloseConnection("it does not know the version")
            return response

    creating(is_asked_again, new_controller=Old)


def test_an_error_that_is_not_known_here_is_told_and_ends_nothing() -> None:
    class Newer(SlowController):
        async def forward(self, client: RequestContext[object], request: CreateTopicsRequest) -> CreateTopicsResponse:
            response = await super().forward(client, request)
            for topic in response.topics:
                topic.error_code = 4_711
            return response

    async def test(creation: AutoTopicCreation, controller: SlowController) -> None:
        creation.create_internal([CreatableTopic(name="changelog")], 1_000, client=asking())
        await trio.testing.wait_all_tasks_blocked()
        await controller.answer()
        assert creation.errors_of(["changelog"]) == [("changelog", ErrorCode.UNKNOWN_SERVER_ERROR.description)]

    creating(test, new_controller=Newer)


def ask(broker: ClusterBroker, client_id: str, topic: str, *, creates: bool = True) -> ErrorCode:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=creates)
    with Wire((host, int(port))) as wire:
        response = wire.call(request, 9, client_id=client_id)
    assert isinstance(response, MetadataResponse)
    return ErrorCode(response.topics[0].error_code)


def is_there(broker: ClusterBroker, topic: str) -> bool:
    return ask(broker, "scout", topic, creates=False) is ErrorCode.NONE


def test_every_broker_of_a_cluster_creates_in_the_name_of_its_clients() -> None:
    """On two of three the request goes to another node in an Envelope (KIP-590)."""
    limit = ["--alter", "--client-defaults", "--add-config", "controller_mutation_rate=0.001"]
    with Cluster(brokers=3) as cluster:
        asked = ["quotas", "--bootstrap-server", cluster.bootstrap_servers, *limit]
        assert CliRunner().invoke(main, asked).exit_code == 0
        for broker in cluster.brokers:
            first, second, others = (f"{name}-{broker.node_id}" for name in ("first", "second", "others"))
            ask(broker, first, first)
            until(partial(is_there, broker, first), "the bucket may be overdrawn")
            ask(broker, first, second)
            ask(broker, others, others)
            until(partial(is_there, broker, others), "which comes behind the second one")
            assert not is_there(broker, second)
