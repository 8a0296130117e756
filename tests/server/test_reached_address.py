"""What a client has reached is told to it, unless the address says nothing without the client's own interface."""

import pytest

from pykbroker.server.network.reached_address import reached_address
from pykbroker.server.network.transport import Address


@pytest.mark.parametrize("host", ["127.0.0.2", "192.168.1.9", "::1", "2001:db8::7", "node-1"])
def test_the_reached_address_is_told(host: str) -> None:
    assert reached_address(Address(host, 9092)) == Address(host, 9092)


@pytest.mark.parametrize("host", ["fe80::1", "fe80::1%eth0"])
def test_a_link_local_address_is_kept_back(host: str) -> None:
    assert reached_address(Address(host, 9092)) is None


def test_of_a_connection_that_is_gone_nothing_is_known() -> None:
    assert reached_address(None) is None
