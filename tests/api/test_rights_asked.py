"""Each handler asks the authorizer for exactly those rights that stand where it is registered (`needs=`).

The requests are those of `compat_tests.acls`, which Apache Kafka has answered to users of every kind. Here they go to a
whole node whose authorizer notes what it is asked: by a client that may do everything, by one that may do nothing, and
by clients that may do everything but one thing. An API without a request, or with a right that no request brings about,
fails the test.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio

from compat_tests.acls.matrix import PROPERTIES, TYPES
from compat_tests.acls.scene import (
    AUTO,
    CONSUMER_GROUP,
    GROUP,
    OWNER,
    TOPIC,
    TRANSACTIONAL_ID,
    VICTIM,
    Question,
    Scene,
)
from compat_tests.acls.share_group_questions import SHARE_GROUP
from compat_tests.acls.share_record_questions import share_fetch
from compat_tests.acls.test_matrix import CATALOGUES
from compat_tests.acls.users import ADMIN, AUTHORIZER, password
from pykbroker.api import HANDLERS
from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.long_work import LongWork
from pykbroker.protocol.api_keys import ApiKey, api_name
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.brokers import UnregisterControllerRequest
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.delegation_tokens import CreateDelegationTokenRequest
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from pykbroker.protocol.messages.share_groups import ShareAcknowledgeRequest, ShareGroupHeartbeatRequest
from pykbroker.protocol.messages.streams_groups import StreamsGroupDescribeRequest
from pykbroker.protocol.messages.streams_topology_descriptions import StreamsGroupTopologyDescriptionUpdateRequest
from pykbroker.protocol.messages.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    InitProducerIdRequest,
)
from pykbroker.protocol.schema import Message, Schema
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import ConnectionState, Handler, HandlerTable
from pykbroker.server.network.needs import Needs, Right
from pykbroker.server.node.composition import quorum
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.server.runtime.clock import Clock
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.sim.node import SimulatedNode
from tests.groups.streams_requests import streams_joining, subtopology, topic_info, topology
from tests.server.serving import Client

PORTS = {"broker": 9092, "controller": 9093}
ANSWER_S = 60.0
TRANSACTION = Question(
    "an ongoing transaction", lambda _: DescribeTransactionsRequest(transactional_ids=[TRANSACTIONAL_ID])
)
STREAMS = Question(
    "a streams group whose internal topics are missing",
    lambda scene: streams_joining(
        f"group-{scene.auto}",
        "member",
        topology(subtopology("0", TOPIC, changelogs=[topic_info(f"changelog-{scene.auto}")])),
    ),
)
STREAMS_GROUP = "streams-of-the-matrix"
STREAMS_DESCRIPTION = Question(
    "a streams group that there is", lambda _: StreamsGroupDescribeRequest(group_ids=[STREAMS_GROUP])
)
BROUGHT_DESCRIPTION = Question(
    "a description of a streams group's topology",
    lambda _: StreamsGroupTopologyDescriptionUpdateRequest(group_id=STREAMS_GROUP, member_id="member"),
)
CONTROLLER = Question("a controller that is gone", lambda _: UnregisterControllerRequest(controller_id=99))
"""Unknown to Kafka 4.3.1, which is the referee of the other questions."""
QUESTIONS = {
    "controller": [CONTROLLER, *CATALOGUES["controllers"].questions],
    "broker": [
        TRANSACTION,
        STREAMS,
        STREAMS_DESCRIPTION,
        BROUGHT_DESCRIPTION,
        CONTROLLER,
        *(each for name in CATALOGUES if name != "controllers" for each in CATALOGUES[name].questions),
    ],
}
"""By the kind of listener; what is not asked on controllers' listeners there is asked as on brokers'."""
ENCLOSED = {ApiKey.ENVELOPE: ApiKey.CREATE_TOPICS}
"""A request in another one takes rights of its own, those of the client that sent it."""
STRANGER = "stranger"
"""Nothing is there that this user has made, or whose owner this user is."""
WITHOUT_QUESTIONS = {
    type(request).__schema__.api_key: request
    for request in (
        ApiVersionsRequest(client_software_name="test", client_software_version="1"),
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslAuthenticateRequest(auth_bytes=b""),
        GetTelemetrySubscriptionsRequest(client_instance_id=b"i" * 16),
        PushTelemetryRequest(client_instance_id=b"i" * 16, metrics=b""),
    )
}
"""The requests that nobody needs a right for, and that name nothing."""


class NotingAuthorizer(NodeAuthorizer):
    """Notes the rights that it is asked for, and grants all but some."""

    made: list[NotingAuthorizer]

    def __init__(self, config: AuthorizerConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self.asked: set[Right] = set()
        self.grants: Callable[[Right], bool] = lambda _: True
        self.made.append(self)

    def knows(self, connection: ConnectionState) -> bool:
        return True

    def allows(
        self,
        connection: ConnectionState,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        is_logged: bool = True,
    ) -> bool:
        self.asked.add((operation, resource_type))
        return self.grants((operation, resource_type))

    def allows_on_any(
        self, connection: ConnectionState, operation: Operation, resource_type: ResourceType
    ) -> LongWork[bool]:
        yield 1
        self.asked.add((operation, resource_type))
        return self.grants((operation, resource_type))

    def allowed_operations(
        self, connection: ConnectionState, operations: int, resource_type: ResourceType, name: str
    ) -> int:
        """Told to clients that ask for it (KIP-430), and no right that a request needs."""
        return operations


class Asking:
    """A user at one listener, who connects anew where the node closes the connection."""

    def __init__(self, network: SimulatedNetwork, port: int, user: str) -> None:
        self._network, self._port, self._user = network, port, user
        self._client: Client | None = None

    async def ask(self, request: Message, version: int) -> Any:
        """The answer; None where there is none, or the connection is closed."""
        if self._client is None:
            self._client = await self._logged_in()
        try:
            with trio.move_on_after(ANSWER_S):
                return await self._client.ask(request, version)
        except (EOFError, OSError):
            pass
        self._client.transport.close()
        self._client = None
        return None

    async def _logged_in(self) -> Client:
        client = Client(await self._network.connect("127.0.0.1", self._port))
        await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        token = f"\0{self._user}\0{password(self._user)}".encode()
        answer: Any = await client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert not answer.error_code, answer
        return client


class Inquiry:
    """One node, its authorizer, who has made what is asked for, and a stranger at each kind of listener."""

    def __init__(self, network: SimulatedNetwork, authorizer: NotingAuthorizer) -> None:
        self._admin = Asking(network, PORTS["broker"], ADMIN)
        self._clients = {kind: Asking(network, port, STRANGER) for kind, port in PORTS.items()}
        self._authorizer = authorizer
        self._scene = Scene(b"", b"")
        self._autos = 0

    async def set_up(self) -> None:
        """What the questions name is there."""
        token = CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name=OWNER, max_lifetime_ms=-1
        )
        self._scene.token_hmac = bytes((await self._done(token, 3)).hmac)
        self._scene.topic_id = await self._create(TOPIC)
        self._scene.victim_id = await self._create(VICTIM)
        await self._done(FindCoordinatorRequest(key=GROUP, key_type=0), 3)
        await self._done(FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=1), 3)
        join = ConsumerGroupHeartbeatRequest(
            group_id=CONSUMER_GROUP,
            member_id="member-of-the-matrix",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        await self._done(join, 1)
        await self._done(streams_joining(STREAMS_GROUP, "member", topology(subtopology("0", TOPIC))), 0)
        await self._join_share_group()

    async def _join_share_group(self) -> None:
        """A member of the share group has partitions, which it does when their state is there."""
        beat = ShareGroupHeartbeatRequest(
            group_id=SHARE_GROUP, member_id="member-of-the-matrix", member_epoch=0, subscribed_topic_names=[TOPIC]
        )
        answer = await self._done(beat, 1)
        with trio.fail_after(ANSWER_S):
            while answer.assignment is None or not answer.assignment.topic_partitions:
                await trio.sleep(0.1)
                beat.member_epoch = answer.member_epoch
                answer = await self._done(beat, 1)

    async def _begin_share_session(self, kind: str) -> None:
        """Begin the session that acknowledgements belong to."""
        self._authorizer.grants = lambda _: True
        answer = await self._clients[kind].ask(share_fetch(self._scene), 2)
        assert not answer.error_code, answer

    async def _begin_transaction(self) -> None:
        """A topic is in a transaction, whatever became of the transaction before."""
        init = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)
        producer = await self._done(init, 5)
        adding = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTIONAL_ID,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        )
        answer = await self._admin.ask(adding, 3)
        (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        assert not result.partition_error_code, answer

    async def _done(self, request: Message, version: int) -> Any:
        """The answer without an error, which takes its time where a coordinator is loaded."""
        with trio.fail_after(ANSWER_S):
            while True:
                answer = await self._admin.ask(request, version)
                if answer is not None and not answer.error_code:
                    return answer
                await trio.sleep(0.1)

    async def _create(self, name: str) -> bytes:
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        answer = await self._admin.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert not answer.topics[0].error_code, answer
        return bytes(answer.topics[0].topic_id)

    async def rights(self, kind: str, handler: Handler[Any]) -> set[Right]:
        """All rights for which the handler's requests were seen to ask."""
        asked: set[Right] = set()
        for question, version in _questions(kind, handler):
            await self._begin_transaction()
            asked |= await self._asked(kind, question, version, lambda _: True)
            asked |= await self._asked(kind, question, version, lambda _: False)
            for right in sorted(asked):
                asked |= await self._asked(kind, question, version, lambda each, right=right: each != right)
        return asked

    async def _asked(self, kind: str, question: Question, version: int, grants: Callable[[Right], bool]) -> set[Right]:
        self._autos += 1
        self._scene.auto = f"{AUTO}{self._autos:05d}"
        request = question.ask(self._scene)
        if isinstance(request, ShareAcknowledgeRequest):
            await self._begin_share_session(kind)
        self._authorizer.asked, self._authorizer.grants = set(), grants
        answer = await self._clients[kind].ask(request, version)
        asked, self._authorizer.grants = set(self._authorizer.asked), lambda _: True
        if question.repairs and answer is not None and any(each.error_code == 0 for each in answer.responses):
            self._scene.victim_id = await self._create(VICTIM)
        return asked


def _questions(kind: str, handler: Handler[Any]) -> Iterator[tuple[Question, int]]:
    """The questions of an API and their versions, on this kind of listener."""
    bare = WITHOUT_QUESTIONS.get(handler.api_key)
    if bare is not None:
        yield Question("bare", lambda _: bare), handler.max_version
    found = [each for each in QUESTIONS[kind] if _schema(each).api_key == handler.api_key]
    others = [each for each in QUESTIONS["broker"] if _schema(each).api_key == handler.api_key]
    for question in found or others:
        served = _schema(question).stable_versions
        for version in question.versions or sorted({served.low, served.high}):
            if handler.min_version <= version <= handler.max_version:
                yield question, version


def _schema(question: Question) -> Schema:
    return type(question.ask(Scene(b"t" * 16, b"v" * 16, "auto", b"hmac"))).__schema__


def inquire(work: Callable[[Inquiry], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    NotingAuthorizer.made = []
    monkeypatch.setattr(quorum, "NodeAuthorizer", NotingAuthorizer)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    own = f'username="{ADMIN}" password="{password(ADMIN)}"'
    users = " ".join(f'user_{name}="{password(name)}"' for name in (ADMIN, STRANGER))
    jaas = f"{module} required {own} {users};"
    overrides = {
        "listeners": f"SASL://127.0.0.1:{PORTS['broker']},CONTROLLER://127.0.0.1:{PORTS['controller']}",
        "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "SASL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": jaas,
        "listener.name.controller.plain.sasl.jaas.config": jaas,
        **AUTHORIZER,
        **PROPERTIES,
    }

    async def run() -> None:
        rng = random.Random(1)
        network = SimulatedNetwork(random.Random(rng.random()))
        node = SimulatedNode(rng, network, overrides=overrides, has_calm_threads=True, takes_telemetry=True)
        async with trio.open_nursery() as nursery:
            await node.start(nursery)
            (authorizer,) = NotingAuthorizer.made
            inquiry = Inquiry(network, authorizer)
            await inquiry.set_up()
            await work(inquiry)
            nursery.cancel_scope.cancel()

    run_deterministic(run, seed=1)


def declared(needs: Needs) -> set[Right]:
    return {(each, ResourceType.CLUSTER) for each in needs.on_cluster} | set(needs.on_names)


def expected(handlers: HandlerTable[Any], handler: Handler[Any]) -> set[Right]:
    """The rights that the handler declares, and those of the request that its own one encloses."""
    enclosed = ENCLOSED.get(ApiKey(handler.api_key))
    return declared(handler.needs) | (set() if enclosed is None else declared(handlers.by_api_key[enclosed].needs))


def shown(rights: set[Right]) -> list[str]:
    return sorted(f"{operation.name} on {kind.name}" for operation, kind in rights)


def tables() -> dict[str, HandlerTable[Any]]:
    return {"broker": HANDLERS.broker, "controller": HANDLERS.controller}


def test_each_handler_asks_for_the_rights_that_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is registered for both kinds of listeners asks on each of them for some of its rights."""
    asked: dict[tuple[str, Needs], set[Right]] = {}
    said: dict[tuple[str, Needs], set[Right]] = {}

    async def work(inquiry: Inquiry) -> None:
        for kind, handlers in tables().items():
            for handler in handlers:
                registered = api_name(handler.api_key), handler.needs
                asked.setdefault(registered, set()).update(await inquiry.rights(kind, handler))
                said.setdefault(registered, set()).update(expected(handlers, handler))

    inquire(work, monkeypatch)
    unlike = [
        f"{name} asks for {shown(rights)} and declares {shown(said[name, needs])}"
        for (name, needs), rights in asked.items()
        if rights != said[name, needs]
    ]
    assert asked
    assert not unlike, "\n".join(unlike)


@pytest.mark.parametrize("kind", PORTS)
def test_each_api_has_a_request_that_is_asked(kind: str) -> None:
    missing = [api_name(each.api_key) for each in tables()[kind] if not list(_questions(kind, each))]
    assert not missing, f"no request of compat_tests.acls is one of {missing}"


def test_every_type_of_resource_is_needed_by_some_handler() -> None:
    needed = {kind for each in (*HANDLERS.broker, *HANDLERS.controller) for _, kind in declared(each.needs)}
    assert needed == set(TYPES)
