"""A node is reachable on its configured listeners, on the ports that were really bound."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pykbroker.config import ListenerConfig

from ..network.transport import Acceptor

Acceptors: TypeAlias = Mapping[str, Acceptor]
"""The acceptors of a node, by the names of their listeners."""

_SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class BoundListener:
    """The address of one listener, with the port that was really bound."""

    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def security_protocol_id(self) -> int:
        """The number of the security protocol in registrations."""
        return _SECURITY_PROTOCOL_IDS[self.security_protocol]

    @property
    def address(self) -> str:
        """Host and port, as clients' `bootstrap.servers` have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def bound(listeners: Sequence[ListenerConfig], acceptors: Acceptors) -> tuple[BoundListener, ...]:
    """The listeners as they are advertised: this machine's name stands in place of all interfaces."""
    return tuple(
        BoundListener(
            each.name,
            each.host or socket.getfqdn(),
            each.port or acceptors[each.name].address.port,
            each.security_protocol,
        )
        for each in listeners
    )
