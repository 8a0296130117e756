"""One bounded request over https, for what is fetched rarely: keys and tokens of an authorization server.

The request blocks, and belongs into a thread. Certificate and host name are always verified. The answer is bounded in
size, and the whole request in time, however slowly the peer sends. A redirect is not followed: the address that was
allowed is the one that is asked. Proxies of the environment are not used, as in Java.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

CONNECT_TIMEOUT_S: Final = 10.0
TOTAL_TIMEOUT_S: Final = 20.0
MAX_BYTES: Final = 1 << 20
_DONE: Final = (200, 201)


class FetchFailed(Exception):
    """The request has failed. Its text is a part of a line, and has nothing of what the peer sent.

    is_final: another try would bring the same. body: of a refusal, for whoever knows what is secret in it.
    """

    def __init__(self, reason: str, *, is_final: bool = False, body: bytes = b"") -> None:
        super().__init__(reason)
        self.is_final = is_final
        self.body = body


def fetch(
    url: str,
    context: ssl.SSLContext,
    *,
    form: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    total_timeout_s: float = TOTAL_TIMEOUT_S,
) -> bytes:
    """Return the body of the answer to a GET, or to a POST of the form. Raises FetchFailed."""
    parts = urlsplit(url)
    assert parts.scheme == "https", "addresses are checked when the configuration is read"
    assert parts.hostname is not None
    connection = HTTPSConnection(parts.hostname, parts.port, context=context)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    is_over = threading.Event()
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 443), connect_timeout_s) as connected,
            _ending_in_time(connected, total_timeout_s, is_over),
        ):
            connection.sock = context.wrap_socket(connected, server_hostname=parts.hostname)
            connection.request("GET" if form is None else "POST", path, form, dict(headers or {}))
            response = connection.getresponse()
            body = response.read(MAX_BYTES + 1)
    except (OSError, HTTPException, ValueError) as error:
        raise FetchFailed(_late(total_timeout_s) if is_over.is_set() else _reason(error)) from None
    finally:
        connection.close()
    if is_over.is_set():  # what was read may be a part of the answer
        raise FetchFailed(_late(total_timeout_s))
    if len(body) > MAX_BYTES:
        raise FetchFailed(f"its answer is larger than {MAX_BYTES} bytes", is_final=True)
    if response.status not in _DONE:
        redirected = "; redirects are not followed" if 300 <= response.status < 400 else ""
        is_final = 300 <= response.status < 500 and response.status not in (408, 425, 429)
        raise FetchFailed(f"it answers with status {response.status}{redirected}", is_final=is_final, body=body)
    return body


@contextmanager
def _ending_in_time(connected: socket.socket, timeout_s: float, is_over: threading.Event) -> Iterator[None]:
    """Shut the connection down when its time is over: a timeout of a socket would count for each of its reads anew.

    The connection is shut down by a second descriptor: the first one goes to TLS, whose objects belong to one thread.
    """
    with connected.dup() as other:

        def end() -> None:
            is_over.set()
            with suppress(OSError):  # the peer was faster
                other.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(timeout_s, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _late(timeout_s: float) -> str:
    return f"it does not answer within {timeout_s:g} s"


def _reason(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case TimeoutError():
            return "it does not answer in time"
        case ssl.SSLError():
            return f"TLS fails: {error.reason or 'the connection ends'}"
        case OSError():
            return f"it cannot be reached: {error.strerror or 'the connection ends'}"
        case _:
            return "its answer is no HTTP"
