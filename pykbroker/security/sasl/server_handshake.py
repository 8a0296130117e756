"""The order of requests on a connection of a SASL listener: Kafka's `SaslServerAuthenticator`, and the part of
`KafkaChannel` and `SocketServer` that has clients authenticate again (KIP-368).

The states, and who moves them:

- INITIAL, and VERSIONS after the first request that could be read: ApiVersions or SaslHandshake may come. An
  ApiVersions request that is answered without an error leads to HANDSHAKE, where only SaslHandshake may come.
- A SaslHandshake that names an enabled mechanism leads to AUTHENTICATE. Behind its version 1 the mechanism's tokens
  come in SaslAuthenticate requests (KIP-152), behind version 0 they come bare, and so do the answers.
- The mechanism decides when AUTHENTICATE becomes COMPLETE. From then on every request is for its handler until the
  session ends; then the next request closes the connection.
- A SaslHandshake in COMPLETE begins anew where sessions end at all, at most once in a second. It must lead to the same
  mechanism, else BAD_MECHANISM, and to the same principal.
- Whatever else comes leads to FAILED. A failure that tells something about credentials is answered, and its connection
  closed, after a delay (`connection.failed.authentication.delay.ms`), as in Kafka.

What must hold: no frame reaches a handler before COMPLETE but ApiVersions; no principal is known before COMPLETE; the
bytes of a failed exchange appear in no log line. Not here: sockets, clocks and delays, the answer to ApiVersions, and
what a mechanism means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from struct import Struct
from typing import Final, TypeVar

from pykbroker.protocol.api_keys import ApiKey, api_name, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode, MalformedMessage
from pykbroker.protocol.framing import RequestHeader, decode_request_header, encode_response
from pykbroker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from pykbroker.protocol.schema import Message, Versions

from .mechanism import AuthenticationFailed, Identity, ServerMechanism

RequestT = TypeVar("RequestT", bound=Message)

MIN_REAUTHENTICATION_INTERVAL_MS: Final = 1000
_SIZE: Final = Struct(">i")
_STRINGS_LIMIT: Final = 8
"""The requests that are decoded here have no list at all."""

_FIRST_TIME: Final = "authentication"
_AGAIN: Final = "re-authentication"


@dataclass(frozen=True, slots=True)
class OfferedMechanism:
    """A mechanism of one listener.

    new: makes the server's side of one exchange. max_reauth_ms: `connections.max.reauth.ms`; 0 where sessions last.
    """

    new: Callable[[], ServerMechanism] = field(repr=False)
    max_reauth_ms: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A step says what is to be done with a frame that has come.

    is_for_handler: it is to be served as on any listener; nothing else is set then.
    answer: the bytes to send, sizes included. failure: why the connection is to be closed behind that, for the log.
    is_delayed: the answer and the close have to wait, so that nobody tries passwords at speed.
    """

    answer: bytes = b""
    failure: str | None = None
    is_delayed: bool = False
    is_for_handler: bool = False


_SERVE: Final = Step(is_for_handler=True)


class _State(Enum):
    INITIAL = auto()
    VERSIONS = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    BAD_MECHANISM = auto()
    COMPLETE = auto()
    FAILED = auto()


class _Failed(Exception):
    """The connection is to be closed."""

    def __init__(self, reason: str, answer: bytes = b"", *, is_delayed: bool = True) -> None:
        super().__init__(reason)
        self.step = Step(answer, reason, is_delayed)


class SaslHandshake:
    """One connection's way to its principal.

    offered: gives the enabled mechanisms by name, in the order they are told. They may be others at each exchange; one
    that has begun goes on by what was offered then. versions: by API key, where the listener does not offer all
    versions of SaslHandshake and SaslAuthenticate.
    """

    def __init__(
        self, offered: Callable[[], Mapping[str, OfferedMechanism]], versions: Mapping[int, Versions] | None = None
    ) -> None:
        self._offered = offered
        self._versions = versions
        self._chosen: OfferedMechanism | None = None
        self._state = _State.INITIAL
        self._mechanism = ""
        self._exchange: ServerMechanism | None = None
        self._has_headers = False
        self._identity: Identity | None = None
        self._session_ends_ms: int | None = None
        self._before: tuple[str, Identity] | None = None
        self._begun_again_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        return self._state is _State.COMPLETE

    @property
    def identity(self) -> Identity | None:
        """The identity of the client; None unless the handshake is complete."""
        return self._identity if self.is_complete else None

    @property
    def principal(self) -> str | None:
        """The principal of a complete handshake, as its type, a colon and its name."""
        return None if self.identity is None else f"User:{self.identity.name}"

    @property
    def mechanism(self) -> str:
        """The mechanism that the client chose; empty before it has."""
        return self._mechanism

    def receive(self, frame: bytes | bytearray | memoryview, *, now_ms: int, wall_ms: int) -> Step:
        """Take the next frame, without its size. now_ms: monotonic; wall_ms: the clock of credentials that expire."""
        try:
            if self._state is _State.COMPLETE:
                return self._served(frame, now_ms)
            if self._state is _State.AUTHENTICATE:
                return self._token(frame, now_ms, wall_ms)
            if self._state is _State.BAD_MECHANISM:
                raise _Failed("re-authentication with another mechanism")
            return self._request(frame)
        except MalformedMessage as error:
            return self._fail(Step(failure=f"no request that can be read: {error}"))
        except _Failed as failed:
            return self._fail(failed.step)

    def api_versions_answered(self, error_code: int) -> None:
        """Note the answer of the handler to ApiVersions: behind an error the client may ask again."""
        if not error_code and self._state is _State.VERSIONS:
            self._state = _State.HANDSHAKE

    def _fail(self, step: Step) -> Step:
        self._state, self._exchange = _State.FAILED, None
        return step

    def _served(self, frame: bytes | bytearray | memoryview, now_ms: int) -> Step:
        is_handshake = int.from_bytes(frame[:2], "big") == ApiKey.SASL_HANDSHAKE
        if is_handshake and self._begins_again(now_ms):
            assert self._identity is not None
            self._before = self._mechanism, self._identity
            self._begun_again_ms = now_ms
            self._has_headers = False
            self._state = _State.HANDSHAKE
            return self._request(frame)
        if self._session_ends_ms is not None and now_ms > self._session_ends_ms:
            raise _Failed("the session has expired, and the client has not authenticated again", is_delayed=False)
        return _SERVE

    def _begins_again(self, now_ms: int) -> bool:
        """Tell whether the client may authenticate again; where it may not, the handler of SaslHandshake refuses."""
        if self._session_ends_ms is None:
            return False
        begun_ms = self._begun_again_ms
        return begun_ms is None or now_ms - begun_ms >= MIN_REAUTHENTICATION_INTERVAL_MS

    def _request(self, frame: bytes | bytearray | memoryview) -> Step:
        if self._state is _State.FAILED:
            raise _Failed("a request behind a failure", is_delayed=False)
        header, body = decode_request_header(frame)
        if header.api_key == ApiKey.API_VERSIONS:
            if self._state is _State.HANDSHAKE:
                raise _Failed("ApiVersions comes where SaslHandshake is due", is_delayed=False)
            self._state = _State.VERSIONS
            return _SERVE
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            raise _Failed(f"{_name(header)} comes before the SASL handshake", is_delayed=False)
        request = self._decoded(SaslHandshakeRequest, header, frame, body)
        return self._handshake(header, request.mechanism)

    def _decoded(
        self, type_: type[RequestT], header: RequestHeader, frame: bytes | bytearray | memoryview, body: int
    ) -> RequestT:
        if self._versions is not None:
            offered = self._versions.get(header.api_key)
            if offered is None or not offered.includes(header.api_version):
                raise _Failed(f"{_name(header)} version {header.api_version} is not offered", is_delayed=False)
        return _decoded(type_, header, frame, body)

    def _handshake(self, header: RequestHeader, mechanism: str) -> Step:
        offered = self._offered()
        response = SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=list(offered))
        if mechanism not in offered:
            reason = "the client asks for a SASL mechanism that is not enabled"
            if self._before is not None:  # as in Kafka, whose channel is not being authenticated so far
                raise _Failed(reason, is_delayed=False)
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            raise _Failed(reason, _encoded(header, response))
        if self._before is not None and self._before[0] != mechanism:
            self._state = _State.BAD_MECHANISM
            return Step(_encoded(header, response))
        self._mechanism = mechanism
        self._has_headers = header.api_version >= 1
        self._chosen = offered[mechanism]
        self._exchange = self._chosen.new()
        self._state = _State.AUTHENTICATE
        return Step(_encoded(header, response))

    def _token(self, frame: bytes | bytearray | memoryview, now_ms: int, wall_ms: int) -> Step:
        if not self._has_headers:
            return self._bare_token(bytes(frame), now_ms, wall_ms)
        header, body = decode_request_header(frame)
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            raise _Failed(f"{_name(header)} comes during SASL authentication", _illegal_state(header))
        request = self._decoded(SaslAuthenticateRequest, header, frame, body)
        try:
            answer = self._evaluate(bytes(request.auth_bytes), wall_ms)
        except AuthenticationFailed as error:
            raise _Failed(self._reason(error), _encoded(header, self._refusal(error))) from None
        lifetime_ms = self._completed(now_ms, wall_ms)
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.NONE, error_message="", auth_bytes=answer, session_lifetime_ms=lifetime_ms
        )
        return Step(_encoded(header, response))

    def _bare_token(self, token: bytes, now_ms: int, wall_ms: int) -> Step:
        """A failure has no answer: there is no place for an error in it."""
        try:
            answer = self._evaluate(token, wall_ms)
        except AuthenticationFailed as error:
            raise _Failed(self._reason(error)) from None
        self._completed(now_ms, wall_ms)
        return Step(_SIZE.pack(len(answer)) + answer)

    def _evaluate(self, token: bytes, wall_ms: int) -> bytes:
        """Raises AuthenticationFailed."""
        assert self._exchange is not None
        answer = self._exchange.step(token, wall_ms)
        identity = self._exchange.identity
        if identity is not None and self._before is not None and self._before[1].name != identity.name:
            told = (
                f"Cannot change principals during re-authentication from User.{self._before[1].name}: "
                f"User.{identity.name}"
            )
            raise AuthenticationFailed("re-authentication as another principal", told=told)
        return answer

    def _completed(self, now_ms: int, wall_ms: int) -> int:
        """End the exchange if it is over; the lifetime of the session in milliseconds, and 0 where it has no end."""
        assert self._exchange is not None
        assert self._chosen is not None
        identity = self._exchange.identity
        if identity is None:
            return 0
        self._identity, self._exchange, self._before = identity, None, None
        self._state = _State.COMPLETE
        ends = [self._chosen.max_reauth_ms or None]
        ends.append(None if identity.expires_at_ms is None else identity.expires_at_ms - wall_ms)
        lifetimes = [max(each, 0) for each in ends if each is not None]
        if not lifetimes:
            self._session_ends_ms = None
            return 0
        # A credential that is taken though it has expired is good for no request.
        self._session_ends_ms = now_ms + (min(lifetimes) or -1)
        return min(lifetimes)

    @property
    def _kind(self) -> str:
        return _FIRST_TIME if self._before is None else _AGAIN

    def _reason(self, error: AuthenticationFailed) -> str:
        return f"{self._kind} with {self._mechanism} failed: {error}"

    def _refusal(self, error: AuthenticationFailed) -> SaslAuthenticateResponse:
        masked = (
            f"Authentication failed during {self._kind} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=error.told or masked, auth_bytes=b""
        )


def _decoded(
    type_: type[RequestT], header: RequestHeader, frame: bytes | bytearray | memoryview, body: int
) -> RequestT:
    if not type_.__schema__.stable_versions.includes(header.api_version):
        raise _Failed(f"{_name(header)} version {header.api_version} is not served", is_delayed=False)
    request, _ = decode(type_, header.api_version, frame, body, objects_limit=_STRINGS_LIMIT)
    return request


def _name(header: RequestHeader) -> str:
    return api_name(header.api_key)


def _encoded(header: RequestHeader, response: Message) -> bytes:
    parts = encode_response(header.correlation_id, response, header.api_version)
    return b"".join(part for part in parts if isinstance(part, bytes))


def _illegal_state(header: RequestHeader) -> bytes:
    """The response that carries nothing but the error, where the API has a place for it. The request is not decoded."""
    type_ = response_type(header.api_key)
    schema = type_.__schema__
    if not schema.versions.includes(header.api_version) or all(each.name != "error_code" for each in schema.fields):
        return b""
    response = type_()
    response.error_code = ErrorCode.ILLEGAL_SASL_STATE  # type: ignore[attr-defined]
    return _encoded(header, response)
