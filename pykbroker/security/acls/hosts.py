"""The address of a client as ACLs name it: as Java writes addresses, for whoever took an ACL from Kafka's log."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


def host_of(address: str) -> str:
    """Return the text of an address that entries are compared with.

    Java writes an IPv6 address without `::` and takes one that holds an IPv4 address for that one
    (`InetAddress.getHostAddress`). What is no address, as in a simulated network, stays as it is.
    """
    return _as_java_writes(address) if ":" in address else address


@lru_cache(1000)
def _as_java_writes(address: str) -> str:
    text, percent, scope = address.partition("%")
    try:
        parsed = ipaddress.IPv6Address(text)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":")) + percent + scope
