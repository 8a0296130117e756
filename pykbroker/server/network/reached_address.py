"""The address of this node that a client has reached, if another connection of that client can reach it as well."""

from __future__ import annotations

from .transport import Address

_LINK_LOCAL = ("fe8", "fe9", "fea", "feb")
"""The beginnings of fe80::/10, as the system writes addresses."""


def reached_address(local: Address | None) -> Address | None:
    """Return this end of a connection; None for one that says nothing to the client.

    A link-local address of IPv6 is one of many, and only the client knows by which interface it leads here.
    """
    if local is None or (":" in local.host and local.host.lower().startswith(_LINK_LOCAL)):
        return None
    return local
