"""Addresses of clients as ACLs name them."""

import pytest

from pykbroker.security.acls.hosts import host_of


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("client-1", "client-1"),
        ("no:address", "no:address"),
    ],
)
def test_an_address_is_written_as_java_does(address: str, host: str) -> None:
    assert host_of(address) == host
