"""Connections to brokers over TLS: `ssl.*` settings in Kafka's names, as a client's properties file has them."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable

import trio


def open_with_tls(
    context: ssl.SSLContext, open_tcp: Callable[[str, int], Awaitable[trio.abc.Stream]] = trio.open_tcp_stream
) -> Callable[[str, int], Awaitable[trio.abc.Stream]]:
    """Return what opens a connection for `Cluster`. It raises OSError, also where the broker's certificate does not
    verify or the broker wants another one of this client. open_tcp: opens the stream below.
    """

    async def open_stream(host: str, port: int) -> trio.abc.Stream:
        below = await open_tcp(host, port)
        stream = trio.SSLStream(below, context, server_hostname=host, https_compatible=True)
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError as error:
            await trio.aclose_forcefully(stream)
            raise ConnectionAbortedError(f"TLS handshake failed: {_reason(error.__cause__)}") from None
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream

    return open_stream


def _reason(error: BaseException | None) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate does not verify: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return "the broker closed the connection (is it a listener with TLS?)"
