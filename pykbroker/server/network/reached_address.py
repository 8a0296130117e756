"""The address of this node that a client has reached, if another connection of that client can reach it as well."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from .transport import Address


def reached_address(local: Address | None) -> Address | None:
    """Return this end of a connection; None for one that says nothing to the client.

    A link-local address of IPv6 is one of many, and only the client knows by which interface it leads here.
    """
    if local is None:
        return None
    try:
        address = ip_address(local.host)
    except ValueError:  # a simulated host has a name
        return local
    return None if isinstance(address, IPv6Address) and address.is_link_local else local
