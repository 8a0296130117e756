"""The peer at an address where a command found no broker that it can use: another protocol, or another listener.

The look takes a second connection and sends no password. What the doctor tells in full is a few words here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.client.from_properties import security_protocol
from pykbroker.doctor.knocking import greeting_of, look

if TYPE_CHECKING:
    from pykbroker.doctor.knocks import ListenerKind

_LOOK_S: Final = 10.0


async def stranger_at(host: str, port: int, properties: Mapping[str, str]) -> str:
    """Return the words, empty where nothing more is known than that it is no broker of this kind."""
    with trio.move_on_after(_LOOK_S):
        kind = await look(host, port)
        return await greeting_of(host, port) if kind is None else _difference(kind, security_protocol(properties))
    return ""


def _difference(kind: ListenerKind, protocol: str) -> str:
    """Tell how a listener differs from what the client's properties say of it."""
    uses_tls, uses_sasl = protocol.endswith("SSL"), protocol.startswith("SASL_")
    if kind.has_tls and not uses_tls:
        wanted = "SASL_SSL" if kind.has_sasl or uses_sasl else "SSL, or SASL_SSL"
        return f"the listener speaks TLS, so --command-config FILE has to say security.protocol={wanted}"
    if uses_tls and not kind.has_tls:
        wanted = "SASL_PLAINTEXT" if kind.has_sasl else "PLAINTEXT"
        return f"the listener speaks no TLS, so security.protocol has to be {wanted} and not {protocol}"
    return ""
