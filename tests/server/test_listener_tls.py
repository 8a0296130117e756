"""A listener with TLS: who the client is, and what becomes of clients that do not shake hands as they should."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
import trio

from compat_tests.certificates import Authority
from compat_tests.key_stores import pem_certificates
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.security.tls.contexts import client_context, server_context
from pykbroker.security.tls.principals import PrincipalMapper
from pykbroker.security.tls.settings import TlsSettings
from pykbroker.server.network import tls_transport
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.listener_tls import ListenerTls
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.tls_network import TlsNetwork
from pykbroker.server.network.tls_transport import HandshakeFailed, Handshakes
from pykbroker.server.runtime.threads import OnTheLoop
from tests.server.encrypted_network import authority, client_values, pem_key_store, server_values
from tests.server.serving import Client, Served, Server, eventually

REFUSALS = "pykbroker.refusals"


@dataclass
class Principals(HandlerTable):
    """A table whose one handler notes the principals of those who ask."""

    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HandlerTable.__init__(self, "broker")

        @self.handles(HeartbeatRequest, needs=NOTHING)
        async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            self.seen.append(context.principal)
            return HeartbeatResponse()


class TlsServer:
    """Scenarios against a listener with TLS; `connect` is a client with the given settings."""

    def __init__(self, server: Server, rules: str = "DEFAULT", **keys: str) -> None:
        self.handlers = Principals()
        self.tls = ListenerTls(
            server_context(TlsSettings.of(server_values(**keys))), PrincipalMapper(rules), Handshakes(OnTheLoop())
        )
        self._server = server

    def run(self, scenario: Callable[[Served], Awaitable[None]]) -> None:
        self._server.run(self.handlers, scenario, tls=self.tls)


async def connect(served: Served, values: dict[str, str] | None = None, host: str = "127.0.0.1") -> Client:
    context = client_context(TlsSettings.of(client_values() if values is None else values))
    network = TlsNetwork(served.network, context, Handshakes(OnTheLoop()))
    client = Client(await network.connect(host, served.port))
    served.clients.append(client)
    return client


async def until_closed(client: Client) -> None:
    """Wait for the end of the stream, behind the alert that tells the reason."""
    with suppress(trio.BrokenResourceError):
        while await client.transport.receive_into(memoryview(bytearray(100))):
            pass


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition("on listener ")[2] for record in caplog.records if record.name == REFUSALS]


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", "User:CN=alice,O=Example"),
        ("RULE:^CN=([^,]*),.*$/$1/U,DEFAULT", "User:ALICE"),
    ],
)
def test_the_name_in_a_clients_certificate_is_its_principal(server: Server, rules: str, principal: str) -> None:
    tls = TlsServer(server, rules, client_auth="required")

    async def scenario(served: Served) -> None:
        client = await connect(served, client_values(authority().client("CN=alice,O=Example")))
        await client.ask(HeartbeatRequest(), 4)

    tls.run(scenario)
    assert set(tls.handlers.seen) == {principal}


@pytest.mark.parametrize("auth", ["none", "requested"])
def test_a_client_without_a_certificate_is_anonymous(server: Server, auth: str) -> None:
    tls = TlsServer(server, client_auth=auth)

    async def scenario(served: Served) -> None:
        client = await connect(served)
        await client.ask(HeartbeatRequest(), 4)

    tls.run(scenario)
    assert set(tls.handlers.seen) == {"User:ANONYMOUS"}


async def refused_by_broker(served: Served, values: dict[str, str]) -> None:
    """With TLS 1.3 a client hears of it when it reads."""
    client = await connect(served, values)
    with pytest.raises((trio.BrokenResourceError, EOFError)):
        await client.ask(HeartbeatRequest(), 4)


def test_a_name_that_no_rule_maps_is_not_authenticated(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    tls = TlsServer(server, "RULE:^CN=broker.*$/broker/", client_auth="required")

    async def scenario(served: Served) -> None:
        await refused_by_broker(served, client_values(authority().client("CN=alice,O=Example")))

    tls.run(scenario)
    assert not tls.handlers.seen
    assert "No rules apply to 'CN=alice,O=Example'" in warnings(caplog)[0]


def test_a_client_without_the_certificate_that_is_required_is_refused(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    tls = TlsServer(server, client_auth="required")

    async def scenario(served: Served) -> None:
        await refused_by_broker(served, client_values())

    tls.run(scenario)
    assert not tls.handlers.seen
    assert warnings(caplog)[0] == "PLAINTEXT: peer did not return a certificate"


def test_a_certificate_of_another_authority_is_refused_with_its_reason(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    tls = TlsServer(server, client_auth="required")

    async def scenario(served: Served) -> None:
        await refused_by_broker(served, client_values(Authority.root("CN=Elsewhere").client("CN=alice")))

    tls.run(scenario)
    assert not tls.handlers.seen
    assert "certificate verify failed: unable to get local issuer certificate" in warnings(caplog)[0]


def test_a_client_does_not_speak_to_whom_it_does_not_know(server: Server) -> None:
    other = Authority.root("CN=Elsewhere")

    async def scenario(served: Served) -> None:
        stranger = {**client_values(), "ssl.truststore.certificates": pem_certificates([other.certificate])}
        with pytest.raises(HandshakeFailed, match="unable to get local issuer certificate"):
            await connect(served, stranger)
        await eventually(lambda: served.listener.connection_count == 0)

    TlsServer(server).run(scenario)


TOO_LONG = "packet length too long" if ssl.OPENSSL_VERSION_INFO < (3, 2) else "record layer failure"


@pytest.mark.parametrize(
    ("first_bytes", "reason"),
    [
        (b"\0\0\0\x10\0\x12\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "no TLS handshake (a plaintext client on a TLS port?)"),
        (b"GET / HTTP/1.1\r\n\r\n", "no TLS handshake (a plaintext client on a TLS port?)"),
        (b"\x16\x03\x01\xff\xff" + bytes(20), TOO_LONG),
        (b"\x16\x03\x01\0\x05\x01\0\0\x01\0", "length too short"),
    ],
)
def test_what_is_no_handshake_is_one_line(
    server: Server, caplog: pytest.LogCaptureFixture, first_bytes: bytes, reason: str
) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await client.transport.send([first_bytes])
        await until_closed(client)
        await eventually(lambda: served.listener.connection_count == 0)

    tls = TlsServer(server)
    tls.run(scenario)
    lines = set(warnings(caplog))
    assert len(lines) == 1
    assert reason in lines.pop()


def test_who_does_not_go_on_with_the_handshake_is_closed(
    simulated_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(served: Served) -> None:
        silent, slow = await served.connect(), await served.connect()
        began = trio.current_time()
        for _ in range(3):
            await slow.transport.send([b"\x16"])
            await trio.sleep(tls_transport.HANDSHAKE_S / 4)
        await until_closed(slow)
        assert await silent.is_closed()
        await eventually(lambda: served.listener.connection_count == 0)
        assert trio.current_time() - began < tls_transport.HANDSHAKE_S + 6

    TlsServer(simulated_server).run(scenario)
    assert "PLAINTEXT: no TLS handshake within 10 seconds" in warnings(caplog)


def test_a_client_that_leaves_during_the_handshake_is_not_worth_a_line(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        client.transport.close()
        await eventually(lambda: served.listener.connection_count == 0)

    TlsServer(server).run(scenario)
    assert not warnings(caplog)


def test_new_connections_show_the_new_certificate_and_old_ones_go_on(server: Server) -> None:
    tls = TlsServer(server)
    before = tls.tls.server

    async def scenario(served: Served) -> None:
        tls.tls.server = before
        old = await connect(served)
        of_another = pem_key_store(Authority.root("CN=Another authority").server())
        tls.tls.server = server_context(TlsSettings.of({**server_values(), **of_another}))
        await old.ask(HeartbeatRequest(), 4)
        with pytest.raises(HandshakeFailed):
            await connect(served)
        await old.ask(HeartbeatRequest(), 4)

    tls.run(scenario)
