"""A listener with SASL lets nobody pass who has not authenticated: on sockets and on the simulated network."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from functools import partial

import pytest
import trio

from pykbroker.client.errors import AuthenticationRefused
from pykbroker.config import InvalidValue
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from pykbroker.security.sasl.credentials import ClientCredentials
from pykbroker.security.sasl.mechanism import Identity
from pykbroker.security.sasl.plain import PlainServer
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS
from pykbroker.security.sasl.scram_server import ScramAccount, ScramServer
from pykbroker.security.sasl.server_handshake import OfferedMechanism
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.node_connections import NodeAddress, NodeConnections
from pykbroker.server.network.sasl_gate import AUTHENTICATION_S, ListenerSasl
from pykbroker.server.runtime.clock import Clock
from tests.server.serving import Client, Served, Server

ALICE = b"\0alice\0alice-secret"
SHA_512 = MECHANISMS["SCRAM-SHA-512"]
ACCOUNT = ScramAccount(SHA_512.credential(SHA_512.salted_password("secret", b"s", 4096), b"s", 4096), Identity("bob"))

OF_TOKEN = ScramAccount(ACCOUNT.credential, Identity("bob", by_token=True))


def sasl(clock: Clock, *, max_reauth_ms: int = 0, delay_s: float = 0.0) -> ListenerSasl:
    offered = {
        "PLAIN": OfferedMechanism(partial(PlainServer, {"alice": "alice-secret"}), max_reauth_ms),
        "SCRAM-SHA-512": OfferedMechanism(
            lambda: ScramServer(SHA_512, lambda name, _: {"bob": ACCOUNT, "token": OF_TOKEN}.get(name), "nonce"),
            max_reauth_ms,
        ),
    }
    return ListenerSasl(offered, clock, max_receive_bytes=500, failure_delay_s=delay_s)


class Handlers(HandlerTable):
    """Handlers that note who has asked, and on which API."""

    def __init__(self) -> None:
        super().__init__("broker")
        self.asked: list[tuple[ApiKey, str]] = []
        self.by_token: list[bool] = []

        @self.handles(HeartbeatRequest, needs=NOTHING)
        async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            self.asked.append((ApiKey.HEARTBEAT, context.principal))
            self.by_token.append(context.connection.by_token)
            return HeartbeatResponse()

        @self.handles(ApiVersionsRequest, needs=NOTHING)
        async def api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
            self.asked.append((ApiKey.API_VERSIONS, context.principal))
            keys = {ApiKey.HEARTBEAT: 4, ApiKey.API_VERSIONS: 4, ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2}
            versions = [ApiVersion(api_key=key, min_version=0, max_version=high) for key, high in keys.items()]
            return ApiVersionsResponse(api_keys=versions)

        @self.handles(SaslHandshakeRequest, needs=NOTHING)
        async def handshake(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


async def log_in(client: Client, token: bytes = ALICE) -> SaslAuthenticateResponse:
    await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    response = await client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert isinstance(response, SaslAuthenticateResponse)
    return response


def test_a_handler_knows_who_asks(server: Server) -> None:
    handlers = Handlers()

    async def scenario(served: Served) -> None:
        client = await served.connect()
        await client.ask(ApiVersionsRequest(), 0)
        assert (await log_in(client)).error_code == ErrorCode.NONE
        await client.ask(HeartbeatRequest(), 0)

    server.run(handlers, scenario, sasl=sasl)
    runs = 3 if server.is_simulated else 1
    expected = [(ApiKey.API_VERSIONS, "User:ANONYMOUS"), (ApiKey.HEARTBEAT, "User:alice")]
    assert handlers.asked == expected * runs


def test_a_handler_knows_who_has_authenticated_by_a_token(server: Server) -> None:
    """Whoever authenticates again by another credential changes that."""
    handlers = Handlers()

    async def scenario(served: Served) -> None:
        for names in (("bob", "token"), ("token", "bob")):
            client = await served.connect()
            for name in names:
                await scram_log_in(client, name)
                await client.ask(HeartbeatRequest(), 0)

    server.run(handlers, scenario, sasl=partial(sasl, max_reauth_ms=60_000))
    runs = 3 if server.is_simulated else 1
    assert handlers.by_token == [False, True, True, False] * runs


async def scram_log_in(client: Client, name: str) -> None:
    scram, challenge = ScramClient(SHA_512, ScramPassword(name, "secret"), "nonce"), b""
    await client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)
    while not scram.is_complete:
        if response := scram.step(challenge):
            answer = await client.ask(SaslAuthenticateRequest(auth_bytes=response), 2)
            assert isinstance(answer, SaslAuthenticateResponse)
            assert answer.error_code == ErrorCode.NONE
            challenge = bytes(answer.auth_bytes)


def test_nobody_else_reaches_a_handler(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    handlers = Handlers()

    async def scenario(served: Served) -> None:
        for prelude in ([], [SaslHandshakeRequest(mechanism="PLAIN")]):
            client = await served.connect()
            for request in prelude:
                await client.ask(request, 1)
            await client.send(HeartbeatRequest(), 0)
            if prelude:
                _, answer = await client.receive(ApiKey.HEARTBEAT, 0)
                assert isinstance(answer, HeartbeatResponse)
                assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert await client.is_closed()

    with caplog.at_level(logging.WARNING):
        server.run(handlers, scenario, sasl=sasl)
    assert handlers.asked == []
    assert "Heartbeat comes before the SASL handshake" in caplog.text
    assert "Heartbeat comes during SASL authentication" in caplog.text


def test_a_wrong_password_is_answered_late_and_the_connection_closed(
    simulated_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(served: Served) -> None:
        client, honest = await served.connect(), await served.connect()
        await log_in(honest)
        begun_s = trio.current_time()
        await client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        await client.receive(ApiKey.SASL_HANDSHAKE, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 2)
            await honest.ask(HeartbeatRequest(), 0)
            assert trio.current_time() - begun_s < 1
        _, answer = await client.receive(ApiKey.SASL_AUTHENTICATE, 2)
        assert trio.current_time() - begun_s >= 5
        assert isinstance(answer, SaslAuthenticateResponse)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await client.is_closed()

    with caplog.at_level(logging.WARNING):
        simulated_server.run(Handlers(), scenario, sasl=lambda clock: sasl(clock, delay_s=5.0))
    assert "authentication with PLAIN failed: wrong user name or password" in caplog.text
    assert "alice" not in caplog.text
    assert "guess" not in caplog.text


def test_a_frame_may_be_large_only_behind_authentication(server: Server) -> None:
    async def scenario(served: Served) -> None:
        large = SaslAuthenticateRequest(auth_bytes=bytes(600))
        stranger, friend = await served.connect(), await served.connect()
        await stranger.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        await stranger.send(large, 2)
        assert await stranger.is_closed()
        await log_in(friend)
        await friend.ask(HeartbeatRequest(group_id="g" * 600), 0)

    server.run(Handlers(), scenario, sasl=sasl)


def test_who_does_not_authenticate_in_time_is_closed(
    simulated_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(served: Served) -> None:
        silent, slow, friend = [await served.connect() for _ in range(3)]
        await slow.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        await log_in(friend)
        begun_s = trio.current_time()
        assert await silent.is_closed()
        assert await slow.is_closed()
        assert AUTHENTICATION_S - 1 < trio.current_time() - begun_s < AUTHENTICATION_S + 5
        await friend.ask(HeartbeatRequest(), 0)

    with caplog.at_level(logging.WARNING):
        simulated_server.run(Handlers(), scenario, sasl=sasl)
    assert "has not authenticated within 30 s" in caplog.text


def test_a_session_ends_unless_the_client_authenticates_again(simulated_server: Server) -> None:
    handlers = Handlers()

    async def scenario(served: Served) -> None:
        forgetful, careful = await served.connect(), await served.connect()
        for client in (forgetful, careful):
            assert (await log_in(client)).session_lifetime_ms == 60_000
        await trio.sleep(50)
        refused = await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert isinstance(refused, SaslHandshakeResponse)
        assert refused.error_code == ErrorCode.NONE
        await client.ask(SaslAuthenticateRequest(auth_bytes=ALICE), 2)
        await trio.sleep(20)
        await careful.ask(HeartbeatRequest(), 0)
        await forgetful.send(HeartbeatRequest(), 0)
        assert await forgetful.is_closed()

    simulated_server.run(handlers, scenario, sasl=lambda clock: sasl(clock, max_reauth_ms=60_000))
    assert handlers.asked == [(ApiKey.HEARTBEAT, "User:alice")] * 3


def test_bare_tokens_are_taken_behind_the_old_handshake(server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        await client.transport.send([struct.pack(">i", len(ALICE)) + ALICE])
        assert await client.receive_frame() == b""
        await client.ask(HeartbeatRequest(), 0)

    server.run(Handlers(), scenario, sasl=sasl)


def connections_to(served: Served, credentials: Callable[[], ClientCredentials]) -> tuple[NodeConnections, NodeAddress]:
    connections = NodeConnections(
        served.network, client_id="broker-2", request_timeout_ms=5_000, credentials=credentials
    )
    return connections, NodeAddress("broker 1", "127.0.0.1", served.port)


@pytest.mark.parametrize(
    "credentials",
    [ClientCredentials("PLAIN", "alice", "alice-secret"), ClientCredentials("SCRAM-SHA-512", "bob", "secret")],
    ids=lambda each: each.mechanism,
)
def test_a_node_authenticates_with_another(server: Server, credentials: ClientCredentials) -> None:
    handlers = Handlers()

    async def scenario(served: Served) -> None:
        connections, broker = connections_to(served, lambda: credentials)
        for _ in range(2):
            await connections.request(broker, HeartbeatRequest(), HeartbeatResponse)
        await connections.aclose()

    server.run(handlers, scenario, sasl=sasl)
    name = "alice" if credentials.mechanism == "PLAIN" else "bob"
    assert handlers.asked.count((ApiKey.HEARTBEAT, f"User:{name}")) == 2 * (3 if server.is_simulated else 1)


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [
        (ClientCredentials("PLAIN", "alice", "wrong"), "Invalid username or password"),
        (ClientCredentials("SCRAM-SHA-512", "bob", "wrong"), "invalid credentials with SASL mechanism SCRAM-SHA-512"),
        (ClientCredentials("SCRAM-SHA-256", "bob", "x"), "does not offer the SASL mechanism SCRAM-SHA-256, only PLAIN"),
    ],
)
def test_a_node_that_is_refused_says_why(server: Server, credentials: ClientCredentials, reason: str) -> None:
    async def scenario(served: Served) -> None:
        connections, broker = connections_to(served, lambda: credentials)
        with pytest.raises(AuthenticationRefused, match=reason):
            await connections.request(broker, HeartbeatRequest(), HeartbeatResponse)

    server.run(Handlers(), scenario, sasl=sasl)


def test_a_node_without_a_name_of_its_own_says_so(server: Server) -> None:
    def none() -> ClientCredentials:
        raise InvalidValue("some.key", "[hidden]", "username must be given")

    async def scenario(served: Served) -> None:
        connections, broker = connections_to(served, none)
        with pytest.raises(AuthenticationRefused, match=r"some\.key: username must be given"):
            await connections.request(broker, HeartbeatRequest(), HeartbeatResponse)

    server.run(Handlers(), scenario, sasl=sasl)


def test_a_node_takes_another_connection_before_its_session_ends(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        connections, broker = connections_to(served, lambda: ClientCredentials("PLAIN", "alice", "alice-secret"))
        first = await connections.connection(broker)
        await trio.sleep(50)
        assert await connections.connection(broker) is first
        await trio.sleep(2)
        assert await connections.connection(broker) is not first
        assert first.is_closed
        await connections.aclose()

    simulated_server.run(Handlers(), scenario, sasl=lambda clock: sasl(clock, max_reauth_ms=60_000))
