"""An audit: which connections it knows, and what of it outlives its broker."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest
import trio

from pykbroker.control.audit.audit import Audit
from pykbroker.control.audit.connections import Connections
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.network.socket_transport import SocketNetwork, SocketOptions
from pykbroker.server.runtime.threads import WorkerThreads
from pykbroker.testing import audit_option, broker_audit


def test_a_connection_has_a_number_and_is_open_while_both_ends_are_there() -> None:
    async def main() -> None:
        network = SocketNetwork(SocketOptions(), WorkerThreads(1))
        acceptor = await network.listen("127.0.0.1", 0)
        client = await network.connect(*acceptor.address)
        transport = await acceptor.accept()
        connections = Connections()
        first, second = (ConnectionState("PLAINTEXT", "127.0.0.1", transport=transport) for _ in range(2))
        number = connections.number_of(first)
        assert connections.number_of(first) == number != connections.number_of(second)
        assert connections.is_open(number)
        client.close()
        await transport.wait_readable()
        assert not connections.is_open(number)
        del first
        assert not connections.is_open(number)
        transport.close()
        acceptor.close()

    trio.run(main)


@pytest.fixture
def option() -> Iterator[None]:
    audit_option.turn(is_on=True)
    yield
    audit_option.turn(is_on=False)
    broker_audit.take_findings(frozenset())


@pytest.mark.usefixtures("option")
def test_the_option_keeps_findings_and_no_brokers() -> None:
    audit = Audit(list, lambda: 0)
    broker_audit.opened(audit)
    kept = ref(audit)
    del audit
    gc.collect()
    assert kept() is None
