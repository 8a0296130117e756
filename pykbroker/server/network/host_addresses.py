"""Addresses of hosts that are named where an address is expected, in quotas and in limits of connections.

As Kafka's `InetAddress.getByName`, with the first address that the system gives. It may ask name servers, so that it
runs in a thread; one request for many names has a bounded time, and what is not known by then counts as unknown.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from typing import Final

import trio

from ..runtime.threads import OneAtATime, Threads

_PATIENCE_S: Final = 5.0
_MOST_NAMES: Final = 100
_FEW: Final = 100
"""Addresses that are read on the event loop."""


def canonical_address(text: str) -> str | None:
    """The address in the form that connections have; None for the name of a host."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


class HostAddresses:
    """The addresses of hosts, by name or by themselves."""

    def __init__(self, threads: Threads) -> None:
        self._threads = OneAtATime(threads)

    async def find(self, hosts: Sequence[str]) -> dict[str, str]:
        """The addresses of those that have one."""
        if len(hosts) <= _FEW:
            found = _literal(hosts)
        else:
            found = await self._threads.run(_literal, hosts)
        names = [host for host in hosts if host not in found]
        deadline_s = trio.current_time() + _PATIENCE_S
        for name in names[:_MOST_NAMES]:
            if trio.current_time() >= deadline_s:
                break
            address = await self._threads.run(_look_up, name)
            if address is not None:
                found[name] = address
        return found


def _literal(hosts: Iterable[str]) -> dict[str, str]:
    """Those that are addresses themselves."""
    return {host: address for host in hosts if (address := canonical_address(host)) is not None}


def _look_up(name: str) -> str | None:
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = [str(answer[4][0]) for answer in sorted(answers, key=lambda answer: answer[0] != socket.AF_INET)]
    return canonical_address(addresses[0]) if addresses else None
