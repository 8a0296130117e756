"""The handlers of delegation tokens: over which connections, with which rights, in which versions."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pykbroker.api.describe_delegation_token import describe_delegation_token
from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from pykbroker.protocol.messages.metadata_records import AccessControlEntryRecord, DelegationTokenRecord
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.sim.clock import SimulatedClock
from tests.metadata.admin import Admin
from tests.metadata.cluster import one_node
from tests.metadata.test_delegation_tokens import PROPERTIES, SECRET, creation

from .api_node import ApiNode, in_virtual_time
from .turns_taken import LONGEST_TURN_S, Turns, context_of

LISTENERS = {
    "listeners": "PLAINTEXT://:9092,SASL://:9094,SASL_TLS://:9095,CONTROLLER://:9093",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,SASL_TLS:SASL_SSL,CONTROLLER:SASL_PLAINTEXT"
    ),
    "controller.listener.names": "CONTROLLER",
}
NOT_ALLOWED, NOT_AUTHORIZED = (
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
)
REQUESTS: dict[str, Message] = {
    "create": creation("User:bob"),
    "renew": RenewDelegationTokenRequest(hmac=b"x"),
    "expire": ExpireDelegationTokenRequest(hmac=b"x"),
    "describe": DescribeDelegationTokenRequest(owners=None),
}
ACL_ID = iter(range(1000))


class World(Admin):
    """One node with tokens."""

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        super().__init__(one_node(LISTENERS | (PROPERTIES if properties is None else properties)))

    def authorize(self, *super_users: str) -> None:
        authorizer = NodeAuthorizer(AuthorizerConfig(frozenset(super_users), False, frozenset()), SimulatedClock())
        authorizer.note_applied()
        self.broker.authorizer = authorizer

    def allow(self, user: str, operation: Operation, resource_type: ResourceType, name: str) -> None:
        record = AccessControlEntryRecord(
            id=next(ACL_ID).to_bytes(16, "big"),
            resource_type=resource_type,
            resource_name=name,
            pattern_type=3,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=3,
        )
        image = MetadataImage()
        assert self.broker.authorizer is not None
        self.broker.authorizer.apply(image, image.replay(record, 0))

    def of(self, user: str, request: Message, version: int | None = None, **options: Any) -> Any:
        newest = request.__schema__.stable_versions.high
        return self.ask(request, newest if version is None else version, connection=connection(user), **options)


def connection(user: str, listener: str = "SASL", *, by_token: bool = False) -> ConnectionState:
    return ConnectionState(listener, "10.0.0.1", f"User:{user}", by_token=by_token)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize(
    ("client", "is_allowed"),
    [
        (connection("alice"), True),
        (connection("alice", "SASL_TLS"), True),
        (connection("ANONYMOUS"), True),
        (connection("CN=alice", "PLAINTEXT"), True),
        (connection("ANONYMOUS", "PLAINTEXT"), False),
        (connection("alice", by_token=True), False),
    ],
    ids=["SASL", "SASL with TLS", "a user named ANONYMOUS", "a certificate", "nobody", "a token"],
)
def test_whoever_has_authenticated_and_not_by_a_token_may_ask(
    name: str, client: ConnectionState, is_allowed: bool
) -> None:
    request = REQUESTS[name]
    versions = request.__schema__.stable_versions
    world = World()
    for version in range(versions.low, versions.high + 1):
        answer = world.ask(request, version, connection=client)
        assert (answer.error_code != NOT_ALLOWED) is is_allowed
        if not is_allowed and name != "describe":
            times = {getattr(answer, each, -1) for each in ("issue_timestamp_ms", "expiry_timestamp_ms")}
            assert times == {-1}


@pytest.mark.parametrize("name", [each for each in REQUESTS if each != "describe"])
def test_a_controller_trusts_the_broker_that_passes_a_request_on_but_for_tokens(name: str) -> None:
    world, request = World(), REQUESTS[name]
    version = request.__schema__.stable_versions.high
    for client, expected in (
        (connection("ANONYMOUS", "CONTROLLER"), False),
        (connection("alice", "CONTROLLER", by_token=True), True),
    ):
        answer = world.ask(request, version, "controller", connection=client, is_forwarded=True)
        assert (answer.error_code == NOT_ALLOWED) is expected


def test_who_asked_is_told_since_version_3() -> None:
    world = World()
    for version in (1, 2, 3):
        answer = world.of("alice", creation(), version)
        assert answer.error_code == ErrorCode.NONE
        assert (answer.principal_type, answer.principal_name) == ("User", "alice")
        assert answer.token_requester_principal_name == ("alice" if version == 3 else "")
        [*_, described] = world.of("alice", DescribeDelegationTokenRequest(owners=None), version).tokens
        assert described.token_requester_principal_name == ("alice" if version == 3 else "")
        assert (described.token_id, described.hmac) == (answer.token_id, answer.hmac)


def test_an_owner_without_a_type_is_nobody() -> None:
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="bob")
    for client in (connection("alice"), connection("alice", by_token=True)):
        answer = World().ask(request, 3, connection=client)
        assert (answer.error_code, answer.principal_name) == (ErrorCode.UNKNOWN_SERVER_ERROR, "ANONYMOUS")


def test_tokens_for_others_take_a_right_on_them() -> None:
    world = World()
    assert not world.of("alice", creation(owner=("User", "bob"))).error_code, "without an authorizer"
    world.authorize("User:admin")
    for kind in ("broker", "controller"):
        for owner in (("User", "bob"), ("Group", "alice"), ("User", "Alice")):
            refused = world.of("alice", creation("Group:x", owner=owner), kind=kind)
            assert (refused.error_code, refused.principal_name) == (NOT_AUTHORIZED, owner[1])
            assert refused.issue_timestamp_ms == -1
        assert not world.of("alice", creation(owner=("User", "alice")), kind=kind).error_code
        assert not world.of("alice", creation(owner=("User", "")), kind=kind).error_code
        assert not world.of("admin", creation(owner=("User", "bob")), kind=kind).error_code
    world.allow("alice", Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    assert not world.of("alice", creation(owner=("User", "bob"))).error_code
    assert world.of("alice", creation(owner=("User", "carol"))).error_code == NOT_AUTHORIZED


def names(answer: Any) -> list[tuple[str, str]]:
    return [(each.principal_name, each.token_requester_principal_name) for each in answer.tokens]


def owners(*users: str) -> DescribeDelegationTokenRequest:
    return DescribeDelegationTokenRequest(
        owners=[DescribeDelegationTokenOwner(principal_type="User", principal_name=each) for each in users]
    )


def test_a_token_is_seen_by_those_whom_it_concerns_and_by_those_who_may() -> None:
    world = World()
    everything = DescribeDelegationTokenRequest(owners=None)
    first = world.of("alice", creation("User:bob"))
    world.of("alice", creation(owner=("User", "dora")))
    assert names(world.of("eve", everything)) == [("alice", "alice"), ("dora", "alice")], "without an authorizer"
    world.authorize("User:admin")
    assert names(world.of("alice", everything)) == [("alice", "alice"), ("dora", "alice")]
    assert names(world.of("bob", everything)) == [("alice", "alice")]
    assert names(world.of("dora", everything)) == [("dora", "alice")]
    assert names(world.of("eve", everything)) == []
    assert names(world.of("admin", everything)) == names(world.of("alice", everything))
    assert names(world.of("alice", owners())) == []
    assert names(world.of("alice", owners("bob"))) == [("alice", "alice")], "whose renewer he is"
    assert names(world.of("alice", owners("alice"))) == names(world.of("alice", everything)), "who had both made"
    assert names(world.of("alice", owners("nobody", "dora", "dora"))) == [("dora", "alice")]
    world.allow("eve", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, first.token_id)
    assert names(world.of("eve", everything)) == [("alice", "alice")]
    world.allow("eve", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:dora")
    assert names(world.of("eve", everything)) == [("alice", "alice"), ("dora", "alice")]
    assert names(world.of("eve", owners("dora"))) == [("dora", "alice")]


def test_without_a_secret_nothing_is_described() -> None:
    answer = World({}).of("alice", DescribeDelegationTokenRequest(owners=None))
    assert (answer.error_code, answer.tokens) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, [])


def test_the_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for _ in range(3):
        world.of("alice", creation(*["User:bob"] * 100))
    monkeypatch.setattr("pykbroker.protocol.encoded_array.LARGEST_ANSWER_BYTES", 2500)
    answer = world.of("alice", DescribeDelegationTokenRequest(owners=None))
    assert (answer.error_code, answer.tokens) == (ErrorCode.INVALID_REQUEST, [])


def test_ten_thousand_tokens_and_as_many_owners_share_the_loop(tmp_path: Any) -> None:
    node = ApiNode(tmp_path, LISTENERS | PROPERTIES)
    node.broker.authorizer = NodeAuthorizer(AuthorizerConfig(frozenset(), False, frozenset()), node.clock)
    node.broker.authorizer.note_applied()
    renewers = [f"User:renewer-{number}" for number in range(20)]
    for number in range(10_000):
        node.image.replay(
            DelegationTokenRecord(
                token_id=f"token-{number}", owner=f"User:{number}", requester="User:x", renewers=renewers
            ),
            node.image.offset + 1,
        )
    request = owners(*map(str, range(0, 20_000, 2)))

    async def ask(user: str) -> tuple[Any, float]:
        context = context_of(node.broker, request, 3)
        context.connection.listener_name, context.connection.principal = "SASL", user
        turns = Turns(trio.lowlevel.current_task())
        trio.lowlevel.add_instrument(turns)
        await trio.lowlevel.checkpoint()
        answer = await describe_delegation_token(context, request)
        return encode(answer, 3), turns.longest_s

    for user, is_long in (("User:renewer-19", True), ("User:nobody", False)):
        encoded, longest_s = in_virtual_time(lambda: ask(user))  # noqa: B023
        assert longest_s < LONGEST_TURN_S
        assert (len(encoded) > 1_000_000) is is_long


def test_nothing_that_is_answered_or_kept_has_the_secret() -> None:
    world = World()
    answer = world.of("alice", creation())
    described = world.of("alice", DescribeDelegationTokenRequest(owners=None))
    for text in (str(answer), str(described), str(world.cluster.image.delegation_tokens)):
        assert SECRET not in text
    changes = ImageChanges()
    assert SECRET not in str(changes)
    hmac = bytes(answer.hmac)
    assert all(hmac not in each for each in world.cluster.log)
