"""The authorizer of a node: it follows the image, says what it denies, and guards stand before every handler."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import pykbroker.api
from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.authorizer import STANDARD_AUTHORIZER, AuthorizerConfig
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.messages.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import ConnectionState, Handler, HandlerTable, RequestContext
from pykbroker.server.network.needs import NOTHING, cluster
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from tests.api.api_node import ApiNode, in_virtual_time

ADMIN, BOB = (ConnectionState("PLAINTEXT", "10.0.0.1", principal) for principal in ("User:admin", "User:bob"))
READ, TOPIC = Operation.READ, ResourceType.TOPIC
A, B = b"a" * 16, b"b" * 16


class StillClock:
    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return 0


def authorizer(*, allows_everyone: bool = False) -> NodeAuthorizer:
    return NodeAuthorizer(AuthorizerConfig(frozenset(["User:admin"]), allows_everyone, frozenset()), StillClock())


def record(acl_id: bytes, name: str = "orders", permission: int = 3) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=TOPIC,
        resource_name=name,
        pattern_type=3,
        principal="User:bob",
        host="*",
        operation=READ,
        permission_type=permission,
    )


class World:
    def __init__(self) -> None:
        self.image = MetadataImage()
        self.authorizer = authorizer()
        self.authorizer.note_applied()

    def replay(self, *records: Message) -> None:
        changes = ImageChanges()
        for each in records:
            changes.merge(self.image.replay(each, self.image.offset + 1))
        self.authorizer.apply(self.image, changes)

    def bob_may_read(self, name: str = "orders") -> bool:
        return self.authorizer.allows(BOB, READ, TOPIC, name)


def test_what_is_remembered_is_forgotten_when_an_entry_changes() -> None:
    world = World()
    assert not world.bob_may_read()
    world.replay(record(A))
    assert world.bob_may_read()
    world.replay(record(B, permission=2))
    assert not world.bob_may_read()
    world.replay(RemoveAccessControlEntryRecord(id=B))
    assert world.bob_may_read()
    world.replay(record(A, "payments"))
    assert (world.bob_may_read(), world.bob_may_read("payments")) == (False, True)


def test_an_entry_that_comes_and_goes_between_two_looks_changes_nothing() -> None:
    world = World()
    world.replay(record(A), RemoveAccessControlEntryRecord(id=A))
    assert not world.bob_may_read()
    world.replay(record(A))
    assert world.bob_may_read()


def test_before_the_acls_are_loaded_only_super_users_may_do_anything() -> None:
    unready = authorizer(allows_everyone=True)
    assert unready.allows(ADMIN, READ, TOPIC, "orders")
    assert not unready.allows(BOB, READ, TOPIC, "orders")
    assert (unready.knows(ADMIN), unready.knows(BOB)) == (True, False)
    unready.note_applied()
    assert unready.allows(BOB, READ, TOPIC, "orders")


def test_what_is_denied_is_a_line_and_what_is_allowed_is_one_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world = World()
    world.bob_may_read("or\nders")
    assert "User:bob at 10.0.0.1 asked for READ on TOPIC or\\nders: no ACL allows it" in caplog.text
    caplog.clear()
    world.replay(record(A))
    assert world.bob_may_read()
    assert world.bob_may_read()
    assert [each.levelname for each in caplog.records] == ["DEBUG", "DEBUG"]


def test_a_client_that_is_denied_again_and_again_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    for number in range(1000):
        world.bob_may_read(f"topic-{number}")
    assert len(caplog.records) < 20


def test_a_table_without_a_guard_takes_no_handler_that_needs_something() -> None:
    handler = pykbroker.api.HANDLERS.broker.by_api_key[43]
    with pytest.raises(AssertionError, match="nobody checks what ElectLeadersRequest needs"):
        HandlerTable[Any]("broker").handles(handler.request_type, needs=cluster(Operation.ALTER))(handler.function)


class Asking(NodeAuthorizer):
    """Denies everything, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(AuthorizerConfig(frozenset(), False, frozenset()), StillClock())
        self.note_applied()
        self.asked: set[tuple[Operation, ResourceType]] = set()

    def allows(
        self, connection: ConnectionState, operation: Operation, resource_type: ResourceType, name: str, **_: bool
    ) -> bool:
        self.asked.add((operation, resource_type))
        return False


def ask(node: ApiNode, handler: Handler[Any], request: Message) -> Message | None:
    header = RequestHeader(handler.api_key, handler.max_version, 1, "client")
    context = RequestContext(node.broker, header, pykbroker.api.HANDLERS.broker, BOB)

    async def run() -> Message | None:
        return await handler.function(context, request)

    return in_virtual_time(run)


OF_BROKERS = {each.request_type.__name__: each for each in pykbroker.api.HANDLERS.broker}
ON_CLUSTER = sorted(name for name, each in OF_BROKERS.items() if each.needs.on_cluster)


@pytest.mark.parametrize("name", ON_CLUSTER)
def test_nobody_gets_past_the_guard_without_the_rights_on_the_cluster(name: str, tmp_path: Path) -> None:
    handler, node = OF_BROKERS[name], ApiNode(tmp_path)
    asking = Asking()
    node.broker.authorizer = asking
    response = ask(node, handler, handler.request_type())
    assert asking.asked == {(each, ResourceType.CLUSTER) for each in handler.needs.on_cluster}
    assert response is not None
    assert getattr(response, "error_code", None) in (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    assert encode(response, handler.max_version)


NOT_LOADED = sorted(each.request_type.__name__ for each in pykbroker.api.HANDLERS.controller if each.needs != NOTHING)
ON_CONTROLLERS = {each.request_type.__name__: each for each in pykbroker.api.HANDLERS.controller}


@pytest.mark.parametrize("name", NOT_LOADED)
def test_a_controller_says_that_it_is_not_ready_before_the_acls_are_loaded(name: str, tmp_path: Path) -> None:
    handler, node = ON_CONTROLLERS[name], ApiNode(tmp_path)
    node.broker.authorizer = authorizer(allows_everyone=True)
    response = ask(node, handler, handler.request_type())
    assert response is not None
    assert getattr(response, "error_code", -1) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert encode(response, handler.max_version)


def test_only_what_everybody_may_ask_needs_nothing() -> None:
    """Tokens are renewed and expired by owner and renewers, and clients tell of themselves, whatever the ACLs say."""
    free = {name for name, each in OF_BROKERS.items() if each.needs == NOTHING}
    of_tokens = {"RenewDelegationTokenRequest", "ExpireDelegationTokenRequest"}
    of_telemetry = {"GetTelemetrySubscriptionsRequest", "PushTelemetryRequest"}
    of_connections = {"ApiVersionsRequest", "SaslHandshakeRequest", "SaslAuthenticateRequest"}
    assert free == of_connections | of_tokens | of_telemetry


CONFIG = {"authorizer.class.name": STANDARD_AUTHORIZER}


def test_an_authorizer_has_its_super_users_and_listeners() -> None:
    users = " User:CN=a,O=b ;User:c; "
    config = BrokerConfig({**CONFIG, "super.users": users, "allow.everyone.if.no.acl.found": "True"})
    assert config.authorizer == AuthorizerConfig(
        frozenset({"User:CN=a,O=b", "User:c"}), True, frozenset({"CONTROLLER"})
    )
    assert config.unknown_keys == []
    assert BrokerConfig({}).authorizer is None
    early = BrokerConfig({**CONFIG, "early.start.listeners": "plaintext"}).authorizer
    assert early is not None
    assert early.early_start_listeners == {"PLAINTEXT"}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("authorizer.class.name", "org.example.Mine", f"{STANDARD_AUTHORIZER}, or empty for none"),
        ("super.users", "User:alice;bob", "'bob' is not type:name"),
        ("super.users", "User:", "'User:' is not type:name"),
        ("allow.everyone.if.no.acl.found", "yes", "true or false"),
        ("early.start.listeners", "INTERNAL", "some of the listeners PLAINTEXT, CONTROLLER"),
    ],
)
def test_a_bad_setting_of_the_authorizer_is_one_line(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=key) as refused:
        BrokerConfig({**CONFIG, key: value})
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_super_users_of_no_authorizer_protect_nothing() -> None:
    with pytest.raises(ConfigurationError, match=r"super\.users.*not set without authorizer\.class\.name"):
        BrokerConfig({"super.users": "User:alice"})
