"""Clients with TLS and SASL are throttled by who they are, and muted behind their cipher as without one."""

from __future__ import annotations

from typing import Any

import trio

from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.groups import HeartbeatRequest
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.security.tls.contexts import server_context
from pykbroker.security.tls.principals import PrincipalMapper
from pykbroker.security.tls.settings import TlsSettings
from pykbroker.server.network.listener_tls import ListenerTls
from pykbroker.server.network.tls_transport import Handshakes
from pykbroker.server.runtime.threads import OnTheLoop
from tests.server.encrypted_network import authority, client_values, server_values
from tests.server.serving import Served, Server
from tests.server.test_listener_tls import connect
from tests.server.test_sasl_gate import Handlers, log_in, sasl
from tests.server.test_throttling import Producers, produce, throttle_ms


def quotas_of(user: str, **values: float) -> ClientQuotas:
    found = ClientQuotas(QuotaWindows(), QuotaWindows())
    found.change(frozenset({("user", user)}), values)
    return found


def tls() -> ListenerTls:
    context = server_context(TlsSettings.of(server_values(client_auth="required")))
    return ListenerTls(context, PrincipalMapper("DEFAULT"), Handshakes(OnTheLoop()))


def of_alice() -> dict[str, str]:
    return client_values(authority().client("CN=alice,O=Example"))


def bytes_of_alice() -> ClientQuotas:
    return quotas_of("CN=alice,O=Example", producer_byte_rate=100.0)


def test_a_client_with_tls_is_muted_and_served_again(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await connect(served, of_alice())
        began_s = trio.current_time()
        told_ms = await throttle_ms(client, produce(5_000))
        assert told_ms > 30_000
        assert await throttle_ms(client, produce(0)) == 0
        assert trio.current_time() - began_s >= told_ms / 1000

    simulated_server.run(Producers().table, scenario, tls=tls(), quotas=bytes_of_alice)


def test_another_client_with_tls_has_no_part_in_that(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await connect(served, client_values(authority().client("CN=bob,O=Example")))
        assert await throttle_ms(client, produce(5_000)) == 0

    simulated_server.run(Producers().table, scenario, tls=tls(), quotas=bytes_of_alice)


def test_a_muted_client_with_tls_goes_when_it_leaves(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await connect(served, of_alice())
        assert await throttle_ms(client, produce(30_000)) > 60_000
        client.transport.close()
        with trio.fail_after(20):
            while served.listener.connection_count:  # noqa: ASYNC110 - time is virtual
                await trio.sleep(1)

    simulated_server.run(Producers().table, scenario, tls=tls(), quotas=bytes_of_alice)


def test_a_muted_client_with_tls_does_not_keep_the_broker_from_stopping(server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await connect(served, of_alice())
        assert await throttle_ms(client, produce(30_000)) > 60_000
        served.listener.stop()
        assert await client.is_closed()

    server.run(Producers().table, scenario, tls=tls(), quotas=bytes_of_alice)


def test_who_has_logged_in_has_the_quotas_of_that_name(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        await log_in(client)
        response: Any = await client.ask(HeartbeatRequest(), 4)
        assert response.throttle_time_ms > 0

    simulated_server.run(Handlers(), scenario, sasl=sasl, quotas=lambda: quotas_of("alice", request_percentage=1e-6))


def test_before_the_login_nothing_counts(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        began_s = trio.current_time()
        response: Any = await client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
        assert response.throttle_time_ms == 0
        await log_in(client)
        assert trio.current_time() - began_s < 1

    simulated_server.run(
        Handlers(), scenario, sasl=sasl, quotas=lambda: quotas_of("ANONYMOUS", request_percentage=1e-6)
    )
