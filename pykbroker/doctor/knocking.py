"""Knock at an address as a client would, with its settings, and look closer where that fails.

The closer look is a second connection: it tells what kind of listener is there, and sends no password.
"""

from __future__ import annotations

import errno
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.client.connection import Connection
from pykbroker.client.errors import AuthenticationRefused, ClientError, ConnectionLost, NotKafka, TimedOut
from pykbroker.client.metadata import Node
from pykbroker.client.sasl import authenticate
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.protocol.messages.sasl import SaslHandshakeRequest, SaslHandshakeResponse

from .access import Access
from .knocks import BrokerAnswer, Knock, ListenerKind, Outcome, address_text
from .streams import (
    STEP_S,
    HandshakeFailed,
    NameUnknown,
    TlsStream,
    error_text,
    first_cause,
    open_plain,
    open_tls,
    os_error_text,
    resolve,
    unverified_context,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CLIENT_ID: Final = "pykbroker-doctor"
KNOCK_S: Final = 20.0
"""For all steps together, the closer look included."""
_UNKNOWN_MECHANISM: Final = "PYKBROKER-DOCTOR"
"""No listener offers it: its answer names those that it does."""
_SHOWN_BYTES: Final = 60
_FEATURES_SINCE: Final = 3

# OpenSSL's X509_V_ERR_…
_NOT_YET_VALID, _EXPIRED = 9, 10
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21, 24})
_OTHER_HOST: Final = frozenset({62, 63, 64})
_CERTIFICATE_ALERTS: Final = ("CERTIFICATE", "UNKNOWN_CA")
_NO_TLS: Final = "WRONG_VERSION_NUMBER"
_UNREACHABLE: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


class _Failed(Exception):
    def __init__(self, outcome: Outcome, detail: str = "", kind: ListenerKind | None = None) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
        self.kind = kind


async def knock(host: str, port: int, access: Access) -> Knock:
    """Never raises; what goes wrong is the outcome."""
    resolved: tuple[str, ...] = ()
    with trio.move_on_after(KNOCK_S):
        try:
            resolved = await resolve(host, port)
            async with _connected(host, port, access) as (connection, certificate_ends_s):
                answer = await _ask(connection)
            return Knock(
                host, port, Outcome.SERVED, resolved=resolved, answer=answer, certificate_ends_s=certificate_ends_s
            )
        except NameUnknown as error:
            return Knock(host, port, Outcome.UNRESOLVED, str(error))
        except _Failed as failure:
            return Knock(host, port, failure.outcome, failure.detail, resolved, failure.kind)
        except OSError as error:
            return Knock(host, port, _of_os_error(error), os_error_text(error), resolved)
        except (ConnectionLost, TimedOut, NotKafka) as error:
            outcome, detail, kind = await _look_closer(host, port, access, error)
            return Knock(host, port, outcome, detail, resolved, kind)
        except ClientError as error:
            return Knock(host, port, Outcome.NOT_KAFKA, str(error), resolved)
    return Knock(host, port, Outcome.SILENT, f"no answer within {KNOCK_S:g} s", resolved)


@asynccontextmanager
async def connected(host: str, port: int, access: Access) -> AsyncIterator[Connection]:
    """A connection that has authenticated, to an address that was served before. Raises ClientError, OSError."""
    try:
        async with _connected(host, port, access) as (connection, _):
            yield connection
    except _Failed as failure:
        raise ConnectionLost(f"{address_text(host, port)}: {failure.detail}") from None


@asynccontextmanager
async def _connected(host: str, port: int, access: Access) -> AsyncIterator[tuple[Connection, float | None]]:
    stream = await _open(host, port, access)
    connection = _connection(stream, host, port)
    try:
        try:
            await connection.negotiate()
        except ConnectionLost:
            if isinstance(stream, TlsStream) and stream.last_error is not None:
                raise _Failed(_of_alert(stream.last_error), error_text(stream.last_error)) from None
            raise
        if access.credentials is not None:
            await _log_in(connection, host, port, access)
        yield connection, _certificate_end(stream)
    finally:
        with trio.CancelScope(shield=True):
            await connection.aclose()


async def _open(host: str, port: int, access: Access) -> trio.abc.Stream:
    if access.context is None:
        return await open_plain(host, port)
    try:
        return await open_tls(host, port, access.context)
    except HandshakeFailed as failure:
        error = failure.error
        if isinstance(error, ssl.SSLCertVerificationError):
            raise _Failed(_of_certificate(error.verify_code), str(failure)) from None
        kind = await look(host, port)
        if kind is not None and not kind.has_tls:
            raise _Failed(Outcome.NO_TLS, "the listener speaks in plain", kind) from None
        if error is None:
            raise ConnectionLost("closed in the handshake") from None
        if kind is None and error.reason == _NO_TLS:
            raise NotKafka("no TLS, and not Kafka's protocol") from None
        raise _Failed(_of_alert(error), str(failure)) from None


async def _log_in(connection: Connection, host: str, port: int, access: Access) -> None:
    assert access.credentials is not None
    try:
        with trio.fail_after(STEP_S):
            await authenticate(connection, access.credentials)
    except (AuthenticationRefused, ConnectionLost) as error:
        kind = await look(host, port)
        if kind is not None and kind.has_sasl is False:
            raise _Failed(Outcome.NO_SASL, "the listener asks for no authentication", kind) from None
        if kind is not None and kind.has_sasl and access.credentials.mechanism not in kind.mechanisms:
            raise _Failed(Outcome.MECHANISM_NOT_OFFERED, access.credentials.mechanism, kind) from None
        raise _Failed(Outcome.NOT_AUTHENTICATED, str(error), kind) from None
    except trio.TooSlowError:
        raise _Failed(Outcome.SILENT, f"no answer to the log-in within {STEP_S:g} s") from None


async def _ask(connection: Connection) -> BrokerAnswer:
    response = await connection.request(MetadataRequest(topics=[], allow_auto_topic_creation=True), MetadataResponse)
    return BrokerAnswer(
        versions=dict(connection.versions),
        features=await _features(connection),
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=tuple(Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers),
    )


async def _features(connection: Connection) -> dict[str, int]:
    version = connection.version_of(ApiVersionsRequest)
    if version < _FEATURES_SINCE:
        return {}
    request = ApiVersionsRequest(client_software_name="pykbroker", client_software_version="doctor")
    response = await connection.request(request, ApiVersionsResponse, version=version)
    return {each.name: each.max_version_level for each in response.finalized_features}


def _connection(stream: trio.abc.Stream, host: str, port: int) -> Connection:
    return Connection(stream, peer=address_text(host, port), client_id=CLIENT_ID, request_timeout_ms=int(STEP_S * 1000))


# ---- the closer look


async def _look_closer(
    host: str, port: int, access: Access, error: ClientError
) -> tuple[Outcome, str, ListenerKind | None]:
    kind = await look(host, port)
    if kind is None:
        greeting = await greeting_of(host, port)
        if greeting:
            return Outcome.NOT_KAFKA, greeting, None
        if isinstance(error, NotKafka):
            return Outcome.NOT_KAFKA, str(error), None
        return (Outcome.SILENT if isinstance(error, TimedOut) else Outcome.CLOSED), "", None
    if kind.has_tls and access.context is None:
        return Outcome.NEEDS_TLS, "the listener speaks TLS", kind
    if kind.has_sasl and access.credentials is None:
        return Outcome.NEEDS_SASL, "the listener asks for authentication", kind
    return (Outcome.SILENT if isinstance(error, TimedOut) else Outcome.CLOSED), str(error), kind


async def look(host: str, port: int) -> ListenerKind | None:
    """Find out what kind of listener answers there; None where it is none of Kafka's."""
    for has_tls in (False, True):
        try:
            stream = await (open_tls(host, port, unverified_context()) if has_tls else open_plain(host, port))
        except (OSError, HandshakeFailed):
            continue
        connection = _connection(stream, host, port)
        try:
            await connection.negotiate()
            return await _with_mechanisms(connection, has_tls)
        except ClientError:
            if has_tls:  # a listener with TLS; that it is Kafka's, a client without a certificate may not see
                return ListenerKind(has_tls=True)
        finally:
            with trio.CancelScope(shield=True):
                await connection.aclose()
    return None


async def _with_mechanisms(connection: Connection, has_tls: bool) -> ListenerKind:
    try:
        response = await connection.request(SaslHandshakeRequest(mechanism=_UNKNOWN_MECHANISM), SaslHandshakeResponse)
    except ClientError:
        return ListenerKind(has_tls)
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return ListenerKind(has_tls, has_sasl=True, mechanisms=tuple(sorted(response.mechanisms)))
    return ListenerKind(has_tls, has_sasl=False)


async def greeting_of(host: str, port: int) -> str:
    """Return in a few words how a peer of another protocol answers; empty where it says nothing."""
    greeting = await _greeting(host, port)
    return _described(greeting) if greeting else ""


async def _greeting(host: str, port: int) -> bytes:
    """Return what a peer of another protocol says to a line of HTTP, or by itself; b"" for nothing."""
    greeting = b""
    try:
        stream = await open_plain(host, port)
        async with stream:
            with trio.move_on_after(STEP_S):
                await stream.send_all(b"HEAD / HTTP/1.0\r\n\r\n")
                greeting = bytes(await stream.receive_some(_SHOWN_BYTES))
    except (OSError, trio.BrokenResourceError):
        pass
    return greeting


def _described(greeting: bytes) -> str:
    text = ascii(greeting.decode("latin-1").splitlines()[0])[1:-1]
    return f"an HTTP server answers: {text}" if greeting.startswith(b"HTTP/") else f"it answers: {text}"


def _of_os_error(error: OSError) -> Outcome:
    cause = first_cause(error)
    if isinstance(error, TimeoutError) or isinstance(cause, TimeoutError) or cause.errno == errno.ETIMEDOUT:
        return Outcome.TIMED_OUT
    if isinstance(cause, ConnectionRefusedError):
        return Outcome.REFUSED
    return Outcome.UNREACHABLE if cause.errno in _UNREACHABLE else Outcome.CLOSED


def _of_certificate(verify_code: int) -> Outcome:
    if verify_code == _EXPIRED:
        return Outcome.CERTIFICATE_EXPIRED
    if verify_code == _NOT_YET_VALID:
        return Outcome.CERTIFICATE_NOT_YET_VALID
    if verify_code in _OTHER_HOST:
        return Outcome.CERTIFICATE_OF_ANOTHER_HOST
    return Outcome.CERTIFICATE_OF_UNKNOWN_AUTHORITY if verify_code in _UNKNOWN_AUTHORITY else Outcome.CERTIFICATE_BAD


def _of_alert(error: ssl.SSLError) -> Outcome:
    """The broker's alert; it speaks of the client's certificate, or of TLS itself."""
    reason = error.reason or ""
    is_alert = "ALERT" in reason
    if is_alert and any(each in reason for each in _CERTIFICATE_ALERTS):
        return Outcome.CLIENT_CERTIFICATE_REFUSED
    return Outcome.TLS_FAILED


def _certificate_end(stream: trio.abc.Stream) -> float | None:
    if not isinstance(stream, TlsStream):
        return None
    ends = stream.certificate.get("notAfter")
    return ssl.cert_time_to_seconds(ends) if isinstance(ends, str) else None
