"""A network whose connections to other nodes speak TLS."""

from __future__ import annotations

import ssl

import trio

from .tls_transport import Handshakes, TlsTransport
from .transport import Acceptor, Network, Transport


class TlsNetwork:
    """The network connects over another one, and verifies whom it reaches. `context` may be replaced at run time.

    It listens in plaintext: a listener wraps what it accepts by itself (`listener_tls`).
    """

    def __init__(self, inner: Network, context: ssl.SSLContext, handshakes: Handshakes) -> None:
        self.context = context
        self._inner = inner
        self._handshakes = handshakes

    async def listen(self, host: str, port: int) -> Acceptor:
        return await self._inner.listen(host, port)

    async def connect(self, host: str, port: int) -> Transport:
        """Raises `OSError` where nobody answers, and HandshakeFailed, which is one, where the wrong one does."""
        transport = TlsTransport(
            await self._inner.connect(host, port),
            self.context,
            self._handshakes,
            server_side=False,
            server_hostname=host,
        )
        try:
            await transport.shake_hands()
        except trio.BrokenResourceError as error:
            transport.close()
            raise ConnectionAbortedError(str(error) or "the peer closed during the TLS handshake") from None
        except BaseException:
            transport.close()
            raise
        return transport
