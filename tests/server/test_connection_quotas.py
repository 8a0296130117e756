"""Connections are counted, and let in at a rate: of a broker, of a listener and of an address."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

import pytest
import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.protocol.messages.metadata_records import ClientQuotaRecord, ConfigRecord, EntityData
from pykbroker.protocol.schema import Message
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.server.network import host_addresses
from pykbroker.server.network.connection_quotas import ConnectionQuotas
from pykbroker.server.network.host_addresses import HostAddresses, canonical_address
from pykbroker.server.runtime.threads import OnTheLoop
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.determinism import run_deterministic
from tests.server.serving import Served, Server, eventually
from tests.server.test_connection import heartbeats, numbered

NODE_ID = 1
RATE = "connection_creation_rate"


def made(
    properties: Mapping[str, str] | None = None,
    listeners: Sequence[str] = ("PLAINTEXT",),
    protected: str | None = None,
) -> ConnectionQuotas:
    names = ",".join(f"{name}://127.0.0.1:{9092 + number}" for number, name in enumerate(listeners))
    protocols = ",".join(f"{name}:PLAINTEXT" for name in (*listeners, "CONTROLLER"))
    given = {"listeners": f"{names},CONTROLLER://127.0.0.1:9080", "listener.security.protocol.map": protocols}
    if "PLAINTEXT" not in listeners:
        given["inter.broker.listener.name"] = listeners[0]
    return ConnectionQuotas(
        BrokerConfig({**given, **(properties or {})}),
        listeners,
        protected=protected,
        windows=QuotaWindows(),
        clock=SimulatedClock(),
        hosts=HostAddresses(OnTheLoop()),
    )


class Metadata:
    """The image that a test writes."""

    def __init__(self, quotas: ConnectionQuotas) -> None:
        self._quotas = quotas
        self._image = MetadataImage()

    def replay(self, *records: Message) -> None:
        changes = ImageChanges()
        for record in records:
            changes.merge(self._image.replay(record, self._image.offset + 1))
        self._quotas.apply(NODE_ID, self._image, changes)

    def configure(self, name: str, value: str | None, broker: str = "") -> None:
        self.replay(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=name, value=value))

    def set_rate(self, host: str | None, value: float | None) -> None:
        entity = [EntityData(entity_type="ip", entity_name=host)]
        self.replay(ClientQuotaRecord(entity=entity, key=RATE, value=value or 0.0, remove=value is None))


async def admit(quotas: ConnectionQuotas, listener: str = "PLAINTEXT", host: str = "10.0.0.1") -> float:
    """Let a connection in, and return how many seconds that took."""
    began_s = trio.current_time()
    await quotas.until_admitted(listener)
    assert quotas.enter(listener, host)
    return trio.current_time() - began_s


# Counts


def test_a_listener_without_a_place_waits_until_somebody_leaves(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        first, second, third = [await served.connect() for _ in range(3)]
        await first.ask(numbered(1), 4)
        await second.ask(numbered(1), 4)
        await third.send(numbered(3), 4)
        await trio.sleep(30)
        assert served.listener.connection_count == 2
        first.transport.close()
        await third.receive(12, 4)
        assert served.listener.connection_count == 2

    simulated_server.run(heartbeats(), scenario, properties={"max.connections": "2"})


def test_a_listener_that_waits_for_a_place_can_be_stopped(server: Server) -> None:
    async def scenario(served: Served) -> None:
        first = await served.connect()
        await first.ask(numbered(1), 4)
        second = await served.connect()
        await second.send(numbered(2), 4)
        await trio.sleep(0.01)
        served.listener.stop()
        assert await second.is_closed()

    server.run(heartbeats(), scenario, properties={"listener.name.plaintext.max.connections": "1"})


def test_a_limit_that_is_raised_at_run_time_lets_those_in_who_wait(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        await (await served.connect()).ask(numbered(1), 4)
        second = await served.connect()
        await second.send(numbered(2), 4)
        await trio.sleep(30)
        assert served.listener.connection_count == 1
        Metadata(served.connections).configure("listener.name.plaintext.max.connections", "2", broker="1")
        await second.receive(12, 4)

    simulated_server.run(heartbeats(), scenario, properties={"listener.name.plaintext.max.connections": "1"})


def test_a_limit_that_is_lowered_at_run_time_closes_who_was_idle_for_longest(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        clients = [await served.connect() for _ in range(5)]
        for client in clients:
            await client.ask(numbered(1), 4)
        await trio.sleep(400)
        for client in clients[3:]:
            await client.ask(numbered(1), 4)
        await trio.sleep(160)
        Metadata(served.connections).configure("max.connections", "2")
        await eventually(lambda: served.listener.connection_count == 2)
        for client in clients[3:]:
            await client.ask(numbered(1), 4)

    simulated_server.run(heartbeats(), scenario)


def test_brokers_find_a_place_where_clients_have_none() -> None:
    async def run() -> None:
        quotas = made({"max.connections": "2"}, ["INTERNAL", "CLIENTS"], protected="INTERNAL")
        closed: list[str] = []
        for name in ("INTERNAL", "CLIENTS"):
            quotas.close_least_used[name] = lambda name=name: closed.append(name) or True  # type: ignore[misc]
        for _ in range(2):
            await admit(quotas, "CLIENTS")
        assert not closed
        await admit(quotas, "INTERNAL")
        assert closed == ["CLIENTS"]
        with trio.move_on_after(10) as waiting:
            await admit(quotas, "CLIENTS")
        assert waiting.cancelled_caught

    run_deterministic(run, seed=1)


def test_an_address_has_the_limit_that_is_given_for_it() -> None:
    quotas = made({"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "10.0.0.9:2, 0:0::1:3"})
    for host, most in (("10.0.0.1", 1), ("10.0.0.9", 2), ("::1", 3), ("::ffff:10.0.0.9", 2)):
        assert [quotas.enter("PLAINTEXT", host) for _ in range(most + 1)] == [True] * most + [False], host
    quotas.leave("PLAINTEXT", "10.0.0.1")
    assert quotas.enter("PLAINTEXT", "10.0.0.1")
    metadata = Metadata(quotas)
    metadata.configure("max.connections.per.ip.overrides", "10.0.0.1:5")
    metadata.configure("max.connections.per.ip", "3")
    assert [quotas.enter("PLAINTEXT", "10.0.0.1") for _ in range(5)] == [True] * 4 + [False]
    assert [quotas.enter("PLAINTEXT", "10.0.0.9") for _ in range(2)] == [True, False]


def test_a_setting_of_the_cluster_that_makes_no_sense_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    quotas = made({"max.connections.per.ip": "1"})
    Metadata(quotas).configure("max.connections.per.ip.overrides", "nonsense")
    assert "max.connections.per.ip.overrides: 'nonsense' is not address:count" in caplog.text
    assert [quotas.enter("PLAINTEXT", "10.0.0.1") for _ in range(2)] == [True, False]


# Rates


def test_connections_come_no_faster_than_the_broker_allows() -> None:
    async def run() -> None:
        quotas = made({"max.connection.creation.rate": "5"})
        waits = [await admit(quotas) for _ in range(100)]
        assert waits[:50] == [0] * 50, "what the windows hold comes at once"
        assert 0 < max(waits) <= 1, "nobody waits longer than a window"
        assert 8 < trio.current_time() < 15

    run_deterministic(run, seed=1)


def test_a_listener_has_a_rate_of_its_own_and_brokers_only_that_one() -> None:
    async def run() -> None:
        properties = {"max.connection.creation.rate": "1", "listener.name.clients.max.connection.creation.rate": "2"}
        quotas = made(properties, ["INTERNAL", "CLIENTS"], protected="INTERNAL")
        for _ in range(100):
            assert await admit(quotas, "INTERNAL") == 0
        waits = [await admit(quotas, "CLIENTS") for _ in range(12)]
        assert waits[:10] == [0] * 10
        assert min(waits[10:]) > 0

    run_deterministic(run, seed=1)


def test_a_rate_may_change_while_it_is_measured() -> None:
    async def run() -> None:
        quotas = made({"max.connection.creation.rate": "1"})
        for _ in range(10):
            await admit(quotas)
        Metadata(quotas).configure("max.connection.creation.rate", "100")
        assert [await admit(quotas) for _ in range(20)] == [0] * 20

    run_deterministic(run, seed=1)


def test_who_comes_faster_than_its_address_may_is_held_and_then_closed(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        Metadata(served.connections).set_rate("127.0.0.1", 1.0)
        for _ in range(10):
            await (await served.connect()).ask(numbered(1), 4)
        began_s = trio.current_time()
        late = await served.connect()
        await late.send(numbered(1), 4)
        assert await late.is_closed()
        assert trio.current_time() - began_s > 0.5
        assert served.listener.connection_count == 10
        await trio.sleep(11)
        await (await served.connect()).ask(numbered(1), 4)

    simulated_server.run(heartbeats(), scenario)


def test_held_connections_end_with_the_listener(server: Server) -> None:
    async def scenario(served: Served) -> None:
        Metadata(served.connections).set_rate(None, 1.0)
        clients = [await served.connect() for _ in range(30)]
        await clients[0].ask(numbered(1), 4)
        served.listener.stop()
        for client in clients:
            assert await client.is_closed()

    server.run(heartbeats(), scenario)


def test_what_an_address_may_not_have_costs_nobody_else() -> None:
    async def run() -> None:
        quotas = made({"max.connection.creation.rate": "3"})
        metadata = Metadata(quotas)
        metadata.set_rate("10.0.0.1", 1.0)
        metadata.set_rate(None, 1000.0)
        refused = 0
        for _ in range(25):
            await quotas.until_admitted("PLAINTEXT")
            refused += quotas.address_delay_ms("PLAINTEXT", "10.0.0.1") > 0
        assert refused == 15
        assert [await admit(quotas, host="10.0.0.2") for _ in range(20)] == [0] * 20
        metadata.set_rate("10.0.0.1", None)
        assert quotas.address_delay_ms("PLAINTEXT", "10.0.0.1") == 0

    run_deterministic(run, seed=1)


# Hosts


def test_the_address_of_a_host_that_is_named_is_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_addresses, "_look_up", {"client": "10.0.0.7"}.get)
    caplog.set_level(logging.WARNING)

    async def run() -> None:
        quotas = made({"max.connections.per.ip.overrides": "client:1,nowhere:1"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(quotas.run)
            await trio.sleep(1)
            Metadata(quotas).set_rate("client", 1.0)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert [quotas.enter("PLAINTEXT", "10.0.0.7") for _ in range(2)] == [True, False]
        assert [quotas.address_delay_ms("PLAINTEXT", "10.0.0.7") > 0 for _ in range(11)] == [False] * 10 + [True]
        assert caplog.text.count("no address is known of nowhere") == 1

    run_deterministic(run, seed=1)


def test_addresses_have_one_form() -> None:
    assert canonical_address("0:0:0::1") == canonical_address("[::1]") == "::1"
    assert canonical_address("::ffff:10.0.0.1") == canonical_address("10.0.0.1") == "10.0.0.1"
    assert canonical_address("fe80::1%eth0") == "fe80::1"
    assert canonical_address("localhost") is None


def test_this_machine_is_known_by_its_name_and_nonsense_is_nobody() -> None:
    async def run() -> dict[str, str]:
        return await HostAddresses(OnTheLoop()).find(["localhost", "10.1.2.3", "no such host", "x" * 300])

    assert trio.run(run) == {"localhost": "127.0.0.1", "10.1.2.3": "10.1.2.3"}


def test_names_that_take_long_are_given_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class SlowThreads(OnTheLoop):
        async def run(self, fn, *args):  # type: ignore[no-untyped-def]
            asked.extend(args)
            await trio.sleep(2)

    async def run() -> None:
        assert await HostAddresses(SlowThreads()).find([f"host{number}" for number in range(50)]) == {}

    began_s = time.monotonic()
    run_deterministic(run, seed=1)
    assert len(asked) == 3
    assert time.monotonic() - began_s < 60
