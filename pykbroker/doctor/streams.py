"""Connections that tell why they failed: the reason that TLS gives, and the step at which it was."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any, Final

import trio

from pykbroker.error_groups import first_of

STEP_S: Final = 4.0
"""For each step of a connection: a name, a handshake, an answer."""


class NameUnknown(Exception):
    """The host's name has no address; the text says what the resolver said."""


class HandshakeFailed(Exception):
    """TLS did not come about. error: None where the peer closed the connection, or did not answer."""

    def __init__(self, error: ssl.SSLError | None) -> None:
        super().__init__("" if error is None else error_text(error))
        self.error = error


class TlsStream(trio.abc.Stream):
    """A stream that keeps the last error of TLS: with TLS 1.3 a client learns of a refusal when it reads."""

    def __init__(self, inner: trio.SSLStream[trio.SocketStream]) -> None:
        self._inner = inner
        self.last_error: ssl.SSLError | None = None

    @property
    def certificate(self) -> dict[str, Any]:
        """The peer's certificate, where it was verified."""
        return self._inner.getpeercert() or {}

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        try:
            return await self._inner.receive_some(max_bytes)
        except trio.BrokenResourceError as error:
            if isinstance(error.__cause__, ssl.SSLError):
                self.last_error = error.__cause__
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host. Raises NameUnknown."""
    found = None
    try:
        with trio.move_on_after(STEP_S):
            found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NameUnknown(getattr(error, "strerror", None) or str(error)) from None
    if found is None:
        raise NameUnknown(f"no answer within {STEP_S:g} s")
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


async def open_plain(host: str, port: int) -> trio.SocketStream:
    """Raises OSError; TimeoutError where nobody answers."""
    with trio.move_on_after(STEP_S):
        return await trio.open_tcp_stream(host, port)
    raise TimeoutError(f"no answer within {STEP_S:g} s")


async def open_tls(host: str, port: int, context: ssl.SSLContext) -> TlsStream:
    """Raises OSError, HandshakeFailed."""
    stream = trio.SSLStream(await open_plain(host, port), context, server_hostname=host, https_compatible=True)
    try:
        with trio.fail_after(STEP_S):
            await stream.do_handshake()
    except (trio.BrokenResourceError, trio.TooSlowError) as error:
        await trio.aclose_forcefully(stream)
        cause = error.__cause__
        raise HandshakeFailed(cause if isinstance(cause, ssl.SSLError) else None) from None
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return TlsStream(stream)


def unverified_context() -> ssl.SSLContext:
    """A context for a look at a listener: no certificate is verified, and no secret is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def error_text(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error.verify_message)
    return (error.reason or str(error)).lower().replace("_", " ")


def os_error_text(error: OSError) -> str:
    """Trio packs the failures of a host's addresses into one; the first cause says enough."""
    cause = first_cause(error)
    return os.strerror(cause.errno) if cause.errno is not None and cause.errno > 0 else str(cause.strerror or cause)


def first_cause(error: OSError) -> OSError:
    cause = error.__cause__
    first = None if cause is None else first_of(cause)
    return first if isinstance(first, OSError) else error
