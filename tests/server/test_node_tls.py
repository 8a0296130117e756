"""The TLS of a node: which settings it starts with, and how its stores are replaced while it runs."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from compat_tests.certificates import Authority, Credential
from compat_tests.key_stores import write_pem, write_pem_trust
from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.server.network.socket_transport import SocketNetwork, SocketOptions
from pykbroker.server.network.tls_network import TlsNetwork
from pykbroker.server.node.node_tls import NodeTls
from pykbroker.server.runtime.threads import OnTheLoop, WorkerThreads

KEY_STORE = "listener.name.client.ssl.keystore.location"
TRUST_STORE = "listener.name.client.ssl.truststore.location"


class World:
    """The files of one node, its metadata and its TLS."""

    def __init__(self, directory: Path, **more: str) -> None:
        self.directory = directory
        self.authority = Authority.root()
        write_pem(self.path("server.pem"), self.authority.server())
        write_pem_trust(self.path("trust.pem"), self.authority)
        self.image = MetadataImage()
        self.changes = ImageChanges()
        self._offset = 0
        self.tls = NodeTls(BrokerConfig(self.properties(**more)), OnTheLoop())
        self.listener = self.tls.of_listener("CLIENT")
        assert self.listener is not None
        self.first = self.listener.server

    def path(self, name: str) -> Path:
        return self.directory / name

    def properties(self, **more: str) -> dict[str, str]:
        return {
            "listeners": "INSIDE://127.0.0.1:0,CLIENT://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,CLIENT:SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            KEY_STORE: str(self.path("server.pem")),
            TRUST_STORE: str(self.path("trust.pem")),
            **{name.replace("_", "."): text for name, text in more.items()},
        }

    def write(self, name: str, credential: Credential) -> str:
        return str(write_pem(self.path(name), credential))

    def write_junk(self, name: str) -> str:
        self.path(name).write_text("no certificate")
        return str(self.path(name))

    def set(self, name: str, value: str | None) -> None:
        record = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name=name, value=value)
        self._offset += 1
        self.changes = self.image.replay(record, self._offset)

    def commit(self, name: str, value: str | None) -> None:
        """A change of this broker's key arrives, and the node follows it."""
        self.set(name, value)

        async def follow() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.tls.run)
                self.tls.apply(self.image, self.changes)
                await wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()

        trio.run(follow)

    @property
    def is_replaced(self) -> bool:
        assert self.listener is not None
        return self.listener.server is not self.first


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_plaintext_listener_has_no_tls(world: World) -> None:
    assert world.tls.of_listener("INSIDE") is None
    network = SocketNetwork(SocketOptions(), WorkerThreads())
    assert world.tls.to_brokers(network) is network
    assert world.tls.to_controllers(network) is network


def test_a_listener_without_a_key_store_ends_the_start(world: World) -> None:
    properties = world.properties()
    del properties[KEY_STORE]
    with pytest.raises(ConfigurationError, match=r"has no key store: listener\.name\.\w+\.ssl\.keystore\.location is"):
        NodeTls(BrokerConfig(properties), OnTheLoop())


def test_a_store_in_another_place_is_used_once_the_change_is_committed(world: World) -> None:
    renewed = world.write("renewed.pem", world.authority.server())
    world.tls.check_changes(world.image, {KEY_STORE: renewed})
    assert not world.is_replaced
    world.commit(KEY_STORE, renewed)
    assert world.is_replaced


def test_the_same_place_is_read_again_where_its_file_has_changed(world: World) -> None:
    place = str(world.path("server.pem"))
    world.commit(KEY_STORE, place)
    assert world.is_replaced  # a value that was not set before may be anything
    world.first = world.listener.server if world.listener is not None else world.first
    world.commit(KEY_STORE, place)
    assert not world.is_replaced
    world.write("server.pem", world.authority.server())
    os.utime(place, ns=(1, 1))
    world.commit("log.cleaner.threads", "2")
    assert world.is_replaced


REFUSED: list[tuple[str, Callable[[World], dict[str, str | None]], str]] = [
    ("no file", lambda world: {KEY_STORE: str(world.path("nothing.pem"))}, "No such file"),
    ("no key", lambda world: {KEY_STORE: str(world.path("trust.pem"))}, "ssl.keystore.location"),
    ("another name", lambda world: {KEY_STORE: world.write("b.pem", world.authority.client("CN=b"))}, "Distinguished"),
    (
        "fewer hosts",
        lambda world: {KEY_STORE: world.write("b.pem", world.authority.server(hosts=("localhost",)))},
        "SubjectAltNames do not match",
    ),
    ("junk", lambda world: {TRUST_STORE: world.write_junk("trust2.pem")}, "ssl.truststore.location"),
]


@pytest.mark.parametrize(("changes", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_store_that_cannot_take_the_place_is_refused_and_the_old_one_kept(
    world: World,
    changes: Callable[[World], dict[str, str | None]],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    changed = changes(world)
    with pytest.raises(ConfigurationError, match=reason):
        world.tls.check_changes(world.image, changed)
    for name, value in changed.items():
        world.commit(name, value)
    assert not world.is_replaced
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert reason in errors[0]


def test_another_name_is_allowed_by_its_static_key_alone(tmp_path: Path) -> None:
    for more, is_allowed in (({}, False), ({"ssl_allow_dn_changes": "true", "ssl_allow_san_changes": "true"}, True)):
        world = World(tmp_path, **more)
        world.commit(KEY_STORE, world.write("other.pem", world.authority.client("CN=other")))
        assert world.is_replaced == is_allowed


def test_what_another_listener_has_is_not_read(world: World) -> None:
    world.path("server.pem").unlink()
    world.tls.check_changes(world.image, {"listener.name.inside.ssl.keystore.location": "/nowhere"})
    with pytest.raises(ConfigurationError, match="No such file"):
        world.tls.check_changes(world.image, {TRUST_STORE: str(write_pem_trust(world.path("t2"), world.authority))})


def test_a_trust_store_is_not_added_to_a_listener_without_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    properties = world.properties()
    del properties[TRUST_STORE]
    tls = NodeTls(BrokerConfig(properties), OnTheLoop())
    with pytest.raises(ConfigurationError, match="Cannot add SSL truststore"):
        tls.check_changes(world.image, {TRUST_STORE: str(world.path("trust.pem"))})


def test_what_the_cluster_has_set_before_is_used_from_the_start_whatever_its_name(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.set(KEY_STORE, world.write("other.pem", world.authority.client("CN=other")))
    world.set("listener.name.client.ssl.client.auth", "required")
    trio.run(world.tls.use, world.image)
    assert world.is_replaced
    assert world.listener is not None
    assert world.listener.server.identity.entries[0].name == "CN=other"
    assert world.listener.server.context.verify_mode == ssl.CERT_REQUIRED
    world.commit(KEY_STORE, world.write("again.pem", world.authority.client("CN=other")))
    assert world.listener.server.context.verify_mode == ssl.CERT_REQUIRED
    world.commit(KEY_STORE, None)
    assert world.listener.server.identity.entries[0].name == "CN=other", "the static store has another name"


def test_between_nodes_a_store_must_verify_with_what_the_node_trusts(tmp_path: Path) -> None:
    world = World(tmp_path, inter_broker_listener_name="CLIENT")
    of_another = world.write("other.pem", Authority.root("CN=Elsewhere").server())
    with pytest.raises(ConfigurationError, match="unable to get local issuer certificate"):
        world.tls.check_changes(world.image, {KEY_STORE: of_another})
    world.tls.check_changes(world.image, {KEY_STORE: world.write("renewed.pem", world.authority.server())})


def test_a_network_to_others_takes_the_new_store_too(tmp_path: Path) -> None:
    world = World(tmp_path, inter_broker_listener_name="CLIENT")
    network = world.tls.to_brokers(SocketNetwork(SocketOptions(), WorkerThreads()))
    assert isinstance(network, TlsNetwork)
    before = network.context
    world.commit(KEY_STORE, world.write("renewed.pem", world.authority.server()))
    assert network.context is not before
