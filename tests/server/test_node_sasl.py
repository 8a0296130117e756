"""The SASL of a node: what the cluster sets at run time is taken as a whole or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.security.sasl.credentials import ClientCredentials
from pykbroker.security.sasl.mechanism import AuthenticationFailed, ClientMechanism
from pykbroker.server.node.node_sasl import NodeSasl
from pykbroker.server.node.offered_mechanisms import SaslParts
from pykbroker.server.node.token_keys import TokenKeys
from pykbroker.server.runtime.clock import SystemClock
from pykbroker.server.runtime.threads import OnTheLoop

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
PLAIN_LINE = "listener.name.client.plain.sasl.jaas.config"
SCRAM_LINE = "listener.name.client.scram-sha-256.sasl.jaas.config"
BEARER_LINE = "listener.name.client.oauthbearer.sasl.jaas.config"
MECHANISMS = "listener.name.client.sasl.enabled.mechanisms"
LIFETIME = "listener.name.client.connections.max.reauth.ms"
OF_CONTROLLERS = "listener.name.controller.plain.sasl.jaas.config"
BETWEEN_NODES = "listener.name.inside.plain.sasl.jaas.config"
LISTENERS = ("INSIDE", "CLIENT", "CONTROLLER")
NODE = f"{PLAIN} username=node password=first user_node=first"


def line(**users: str) -> str:
    return f"{PLAIN} {' '.join(f'user_{name}={password}' for name, password in users.items())};"


class World:
    """One node with SASL on each listener, and its metadata."""

    def __init__(self, **more: str) -> None:
        self.image = MetadataImage()
        self.changes = ImageChanges()
        self.config = BrokerConfig(
            {
                "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
                "listener.security.protocol.map": ",".join(f"{name}:SASL_PLAINTEXT" for name in LISTENERS),
                "inter.broker.listener.name": "INSIDE",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                BETWEEN_NODES: f"{NODE};",
                OF_CONTROLLERS: f"{NODE};",
                PLAIN_LINE: line(alice="first"),
                **{name.replace("_", "."): text for name, text in more.items()},
            }
        )
        threads = OnTheLoop()
        parts = SaslParts(lambda: self.image, TokenKeys(threads), None)
        self.sasl = NodeSasl(self.config, parts, SystemClock(), threads)
        self._offset = 0

    def set(self, name: str, value: str | None) -> None:
        record = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name=name, value=value)
        self._offset += 1
        self.changes.merge(self.image.replay(record, self._offset))

    def commit(self, **values: str | None) -> None:
        """Changes of this broker's keys arrive together, and the node follows them."""
        for name, value in values.items():
            self.set(name, value)

        async def follow() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.sasl.run)
                self.sasl.apply(self.image, self.changes)
                await wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()

        trio.run(follow)

    def offered(self, listener: str = "CLIENT") -> list[str]:
        found = self.sasl.of_listener(listener)
        assert found is not None
        return list(found.offered)

    def lets_in(self, name: str, password: str, listener: str = "CLIENT") -> bool:
        found = self.sasl.of_listener(listener)
        assert found is not None
        try:
            found.offered["PLAIN"].new().step(f"\0{name}\0{password}".encode(), 0)
        except AuthenticationFailed:
            return False
        return True

    def shown(self, credentials: Callable[[], object] | None) -> bytes:
        """The token that this node shows to others."""
        assert credentials is not None
        own = credentials()
        assert isinstance(own, ClientCredentials)
        exchange: ClientMechanism = own.new_exchange()
        return exchange.step(b"")


@pytest.fixture
def world() -> World:
    return World()


def test_users_are_added_changed_and_removed_once_the_change_is_committed(world: World) -> None:
    changed = line(alice="second", bob="of-bob")
    world.sasl.check_changes(world.image, {PLAIN_LINE: changed})
    assert world.lets_in("alice", "first"), "a change that is only looked at changes nothing"
    world.commit(**{PLAIN_LINE: changed})
    assert not world.lets_in("alice", "first")
    assert world.lets_in("alice", "second")
    assert world.lets_in("bob", "of-bob")
    world.commit(**{PLAIN_LINE: line(bob="of-bob")})
    assert not world.lets_in("alice", "second")
    world.commit(**{PLAIN_LINE: None})
    assert world.lets_in("alice", "first"), "the line of the properties counts again"
    assert not world.lets_in("bob", "of-bob")


def test_an_exchange_that_has_begun_goes_on_with_the_users_of_before(world: World) -> None:
    listener = world.sasl.of_listener("CLIENT")
    assert listener is not None
    begun = listener.offered["PLAIN"].new()
    world.commit(**{PLAIN_LINE: line(bob="of-bob")})
    begun.step(b"\0alice\0first", 0)
    assert begun.identity is not None
    assert begun.identity.name == "alice"
    assert not world.lets_in("alice", "first")


def test_another_listener_keeps_its_users(world: World) -> None:
    world.commit(**{PLAIN_LINE: line(bob="of-bob")})
    assert world.lets_in("node", "first", "INSIDE")
    assert not world.lets_in("bob", "of-bob", "INSIDE")


def test_mechanisms_and_their_lines_change_together(world: World) -> None:
    world.commit(**{MECHANISMS: "SCRAM-SHA-256,PLAIN,OAUTHBEARER", SCRAM_LINE: f"{SCRAM};", BEARER_LINE: f"{BEARER};"})
    assert world.offered() == ["SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"]
    assert world.offered("INSIDE") == ["PLAIN"]
    world.commit(**{MECHANISMS: "SCRAM-SHA-256"})
    assert world.offered() == ["SCRAM-SHA-256"]
    world.commit(**{MECHANISMS: None})
    assert world.offered() == ["PLAIN"]


def test_the_mechanisms_of_all_listeners_are_those_of_a_listener_without_its_own(world: World) -> None:
    world.commit(**{MECHANISMS: "PLAIN", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"})
    assert world.offered() == ["PLAIN"]
    assert world.offered("INSIDE") == ["PLAIN"], "its line is missing"
    world.commit(**{"listener.name.inside.scram-sha-256.sasl.jaas.config": f"{SCRAM};"})
    assert world.offered("INSIDE") == ["PLAIN", "SCRAM-SHA-256"]


def test_sessions_that_begin_now_have_the_new_lifetime(world: World) -> None:
    listener = world.sasl.of_listener("CLIENT")
    assert listener is not None
    assert listener.offered["PLAIN"].max_reauth_ms == 0
    world.commit(**{LIFETIME: "3000"})
    assert listener.offered["PLAIN"].max_reauth_ms == 3000
    world.commit(**{"listener.name.client.plain.connections.max.reauth.ms": "2000"})
    assert listener.offered["PLAIN"].max_reauth_ms == 2000


REFUSED: list[tuple[str, dict[str, str | None], str]] = [
    ("no line", {PLAIN_LINE: "hunter2"}, "control flag"),
    ("an empty line", {PLAIN_LINE: ""}, "no login module"),
    ("the module of another mechanism", {PLAIN_LINE: f"{SCRAM} user_a=hunter2;"}, "login module of PLAIN"),
    ("two modules", {PLAIN_LINE: f"{PLAIN} user_a=hunter2;{PLAIN};"}, "2 login modules"),
    ("no line for a mechanism", {MECHANISMS: "PLAIN,SCRAM-SHA-256"}, "scram-sha-256.sasl.jaas.config is missing"),
    ("no mechanism", {MECHANISMS: ""}, "at least one mechanism"),
    ("an unknown mechanism", {MECHANISMS: "GSSAPI"}, "not offered"),
    ("no number", {LIFETIME: "soon"}, "Not a number"),
    ("a listener that nobody has", {"listener.name.CLIENT.plain.sasl.jaas.config": line(a="hunter2")}, "no listener"),
    ("the mechanism between brokers", {"listener.name.inside.sasl.enabled.mechanisms": "SCRAM-SHA-256"}, "is missing"),
    (
        "the mechanism between brokers, with its line",
        {
            "listener.name.inside.sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.inside.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
        },
        "sasl.mechanism.inter.broker.protocol",
    ),
    (
        "the mechanism of controllers",
        {
            "listener.name.controller.sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.controller.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
        },
        "sasl.mechanism.controller.protocol",
    ),
]


@pytest.mark.parametrize(("changes", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_used_is_refused_and_the_old_state_kept_as_a_whole(
    world: World, changes: dict[str, str | None], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = {PLAIN_LINE: line(bob="of-bob"), BETWEEN_NODES: f"{NODE} user_bob=of-bob;"}
    good |= {OF_CONTROLLERS: f"{NODE} user_bob=of-bob;"}
    together = {**{name: text for name, text in good.items() if _listener(name) in map(_listener, changes)}, **changes}
    with pytest.raises(ConfigurationError, match=reason) as refused:
        world.sasl.check_changes(world.image, together)
    assert "hunter2" not in str(refused.value)
    before = {name: world.sasl.of_listener(name) for name in LISTENERS}
    offered = {name: listener.offered for name, listener in before.items() if listener is not None}
    world.commit(**together)
    for name, listener in before.items():
        assert listener is not None
        assert listener.offered is offered[name]
    if "listener.name.CLIENT" not in str(changes):  # a key of nobody changes nothing
        errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 1
        assert reason in errors[0]
    assert "hunter2" not in caplog.text


def _listener(name: str) -> str:
    return name.split(".")[2]


def test_a_good_change_of_one_listener_does_not_wait_for_a_bad_one_of_another(world: World) -> None:
    world.commit(**{PLAIN_LINE: line(bob="of-bob"), BETWEEN_NODES: "junk"})
    assert world.lets_in("bob", "of-bob")
    assert world.lets_in("node", "first", "INSIDE")


def test_what_is_bad_already_keeps_nobody_from_changing_something_else(world: World) -> None:
    world.commit(**{BETWEEN_NODES: "junk"})
    world.sasl.check_changes(world.image, {PLAIN_LINE: line(bob="of-bob")})
    with pytest.raises(ConfigurationError, match="inside"):
        world.sasl.check_changes(world.image, {"listener.name.inside.connections.max.reauth.ms": "5"})
    world.sasl.check_changes(world.image, {BETWEEN_NODES: None})


def test_a_line_that_is_needed_goes_with_its_mechanism_and_not_before(world: World) -> None:
    world.commit(**{MECHANISMS: "PLAIN,SCRAM-SHA-256", SCRAM_LINE: f"{SCRAM};"})
    with pytest.raises(ConfigurationError, match="is missing"):
        world.sasl.check_changes(world.image, {SCRAM_LINE: None})
    world.sasl.check_changes(world.image, {SCRAM_LINE: None, MECHANISMS: None})
    world.sasl.check_changes(world.image, {SCRAM_LINE: None, MECHANISMS: "PLAIN"})


def test_the_node_shows_others_what_the_new_line_says(world: World) -> None:
    assert world.shown(world.sasl.to_brokers) == b"\0node\0first"
    second = f"{PLAIN} username=node password=second user_node=second;"
    world.commit(**{BETWEEN_NODES: second})
    assert world.shown(world.sasl.to_brokers) == b"\0node\0second"
    assert world.lets_in("node", "second", "INSIDE")
    assert world.shown(world.sasl.to_controllers) == b"\0node\0first"
    world.commit(**{OF_CONTROLLERS: second})
    assert world.shown(world.sasl.to_controllers) == b"\0node\0second"
    assert world.lets_in("node", "second", "CONTROLLER")


def test_what_the_cluster_has_set_before_is_used_from_the_start(world: World) -> None:
    world.set(PLAIN_LINE, line(bob="of-bob"))
    world.set("log.retention.ms", "5")
    trio.run(world.sasl.use, world.image)
    assert world.lets_in("bob", "of-bob")
    assert not world.lets_in("alice", "first")


def test_at_the_start_a_line_that_cannot_be_used_leaves_that_of_the_properties(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.set(PLAIN_LINE, "hunter2")
    trio.run(world.sasl.use, world.image)
    assert world.lets_in("alice", "first")
    assert "listener CLIENT keeps its SASL settings" in caplog.text
    assert "hunter2" not in caplog.text


def test_keys_that_are_of_no_sasl_concern_nobody(world: World) -> None:
    listener = world.sasl.of_listener("CLIENT")
    assert listener is not None
    offered = listener.offered
    world.sasl.check_changes(world.image, {"listener.name.client.ssl.keystore.location": "x", "log.retention.ms": "5"})
    world.commit(**{"listener.name.client.ssl.keystore.location": "x", "log.retention.ms": "5"})
    assert listener.offered is offered


def test_keys_for_tokens_of_another_address_are_not_fetched_at_run_time(tmp_path: Path) -> None:
    prefix = "listener.name.client.oauthbearer.sasl"
    world = World(
        **{
            f"{prefix}.oauthbearer.jwks.endpoint.url": f"file://{tmp_path}/keys",
            f"{prefix}.oauthbearer.expected.audience": "kafka",
            f"{prefix}.oauthbearer.expected.issuer": "issuer",
        }
    )
    with pytest.raises(ConfigurationError, match="fetched when the node starts"):
        world.sasl.check_changes(world.image, {MECHANISMS: "PLAIN,OAUTHBEARER", BEARER_LINE: f"{BEARER};"})


def test_no_secret_is_in_the_text_of_what_a_node_holds(world: World) -> None:
    world.commit(**{PLAIN_LINE: line(bob="hunter2")})
    assert "hunter2" not in repr(world.sasl.of_listener("CLIENT"))
