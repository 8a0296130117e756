"""The order of requests before a connection is authenticated, and when it must be anew (KIP-368)."""

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import SIZE_BYTES, decode_response_header, encode_request
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from pykbroker.protocol.schema import Message, Versions
from pykbroker.security.sasl.mechanism import AuthenticationFailed, Identity, ServerMechanism
from pykbroker.security.sasl.plain import PlainServer
from pykbroker.security.sasl.server_handshake import OfferedMechanism, SaslHandshake, Step

ALICE = b"\0alice\0alice-secret"
WRONG = b"\0alice\0wrong"
MASKED = "Authentication failed during authentication due to invalid credentials with SASL mechanism TWO"


def plain() -> PlainServer:
    return PlainServer({"alice": "alice-secret", "bob": "bob-secret"})


class TwoSteps:
    """A mechanism of two messages, whose second one names the user; its credential ends at `expires_at_ms`."""

    def __init__(self, expires_at_ms: int | None = None) -> None:
        self.identity: Identity | None = None
        self._expires_at_ms = expires_at_ms
        self._is_begun = False

    def step(self, response: bytes, now_ms: int) -> bytes:
        if not self._is_begun:
            self._is_begun = True
            return b"challenge"
        if response == b"":
            raise AuthenticationFailed("no name")
        self.identity = Identity(response.decode(), self._expires_at_ms)
        return b"final"


@dataclass
class Client:
    """A client of one connection: it encodes requests and decodes answers."""

    mechanisms: dict[str, OfferedMechanism] = field(default_factory=lambda: {"PLAIN": OfferedMechanism(plain)})
    now_ms: int = 1_000_000
    wall_ms: int = 5_000_000

    def __post_init__(self) -> None:
        self.handshake = SaslHandshake(lambda: self.mechanisms)

    def frame(self, frame: bytes) -> Step:
        return self.handshake.receive(frame, now_ms=self.now_ms, wall_ms=self.wall_ms)

    def send(self, request: Message, version: int = 1) -> Step:
        return self.frame(encode_request(request, version, 7, "client")[SIZE_BYTES:])

    def choose(self, mechanism: str, version: int = 1) -> Step:
        return self.send(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Step:
        return self.send(SaslAuthenticateRequest(auth_bytes=token), version)

    def log_in(self, token: bytes = ALICE, mechanism: str = "PLAIN") -> SaslAuthenticateResponse:
        self.choose(mechanism)
        return answer(self.token(token), SaslAuthenticateRequest, 2)


def answer(step: Step, request: type[Message], version: int) -> object:
    api_key = request.__schema__.api_key
    assert api_key is not None
    frame = step.answer[SIZE_BYTES:]
    assert int.from_bytes(step.answer[:SIZE_BYTES], "big") == len(frame)
    correlation_id, body = decode_response_header(frame, api_key, version)
    assert correlation_id == 7
    response, end = decode(response_type(api_key), version, frame, body)
    assert end == len(frame)
    return response


def test_a_client_finds_its_way() -> None:
    client = Client()
    assert client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).is_for_handler
    client.handshake.api_versions_answered(ErrorCode.NONE)
    assert answer(client.choose("PLAIN"), SaslHandshakeRequest, 1) == SaslHandshakeResponse(
        error_code=0, mechanisms=["PLAIN"]
    )
    assert client.handshake.principal is None
    assert client.handshake.identity is None
    assert answer(client.token(ALICE), SaslAuthenticateRequest, 2) == SaslAuthenticateResponse(
        error_code=0, error_message="", auth_bytes=b"", session_lifetime_ms=0
    )
    assert client.handshake.principal == "User:alice"
    assert client.handshake.mechanism == "PLAIN"
    assert client.send(MetadataRequest(topics=None), 5) == Step(is_for_handler=True)


def test_a_listener_that_does_not_offer_all_versions_refuses_the_others() -> None:
    offered = {ApiKey.SASL_HANDSHAKE: Versions(0, 1), ApiKey.SASL_AUTHENTICATE: Versions(0, 1)}
    client = Client()
    client.handshake = SaslHandshake(lambda: client.mechanisms, offered)
    client.choose("PLAIN")
    refused = client.token(ALICE, 2)
    assert (refused.answer, refused.failure) == (b"", "SaslAuthenticate version 2 is not offered")
    other = Client()
    other.handshake = SaslHandshake(lambda: other.mechanisms, offered)
    other.choose("PLAIN")
    other.token(ALICE, 1)
    assert other.handshake.principal == "User:alice"
    none = Client()
    none.handshake = SaslHandshake(lambda: none.mechanisms, {})
    assert none.choose("PLAIN").failure == "SaslHandshake version 1 is not offered"


def test_bare_tokens_follow_the_old_handshake() -> None:
    client = Client({"TWO": OfferedMechanism(TwoSteps)})
    client.choose("TWO", version=0)
    assert client.frame(b"first").answer == b"\0\0\0\x09challenge"
    assert not client.handshake.is_complete
    assert client.frame(b"carol").answer == b"\0\0\0\x05final"
    assert client.handshake.principal == "User:carol"


def test_a_bare_token_that_fails_has_no_answer() -> None:
    client = Client()
    client.choose("PLAIN", version=0)
    step = client.frame(WRONG)
    assert (step.answer, step.is_delayed) == (b"", True)
    assert step.failure is not None


def test_a_bare_token_of_plain_has_an_empty_answer() -> None:
    client = Client()
    client.choose("PLAIN", version=0)
    assert client.frame(ALICE) == Step(b"\0\0\0\0")
    assert client.handshake.is_complete


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("token", "message"),
    [
        (WRONG, "Authentication failed: Invalid username or password"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_a_failure_is_told_after_a_delay_and_closes(token: bytes, message: str, version: int) -> None:
    client = Client()
    client.choose("PLAIN")
    step = client.token(token, version)
    response = answer(step, SaslAuthenticateRequest, version)
    assert isinstance(response, SaslAuthenticateResponse)
    assert (response.error_code, response.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    assert step.is_delayed
    assert step.failure is not None
    assert "alice" not in step.failure
    assert client.handshake.principal is None
    assert client.send(MetadataRequest(topics=None), 5).failure == "a request behind a failure"


def test_an_unknown_mechanism_is_answered_with_the_enabled_ones() -> None:
    client = Client()
    step = client.choose("GSSAPI")
    assert answer(step, SaslHandshakeRequest, 1) == SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["PLAIN"]
    )
    assert step.is_delayed
    assert step.failure is not None


@pytest.mark.parametrize("request_", [MetadataRequest(topics=None), SaslAuthenticateRequest(auth_bytes=ALICE)])
def test_behind_the_versions_nothing_but_a_handshake_is_taken(request_: Message) -> None:
    client = Client()
    assert client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).is_for_handler
    client.handshake.api_versions_answered(ErrorCode.NONE)
    step = client.send(request_, 2)
    assert not step.is_for_handler
    assert step.failure is not None


def test_api_versions_comes_again_only_behind_an_error() -> None:
    client = Client()
    for error_code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REQUEST, ErrorCode.NONE):
        assert client.send(ApiVersionsRequest(), 0).is_for_handler
        client.handshake.api_versions_answered(error_code)
    assert client.send(ApiVersionsRequest(), 0).failure == "ApiVersions comes where SaslHandshake is due"


@pytest.mark.parametrize(("version", "error_code"), [(3, ErrorCode.ILLEGAL_SASL_STATE), (99, None)])
def test_another_request_during_authentication_is_an_illegal_state(version: int, error_code: int | None) -> None:
    client = Client()
    client.choose("PLAIN")
    header = ApiKey.API_VERSIONS.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\x07\xff\xff\0"
    step = client.frame(header)
    assert step.is_delayed
    assert step.failure == "ApiVersions comes during SASL authentication"
    if error_code is None:
        assert step.answer == b""
    else:
        response = answer(step, ApiVersionsRequest, version)
        assert isinstance(response, ApiVersionsResponse)
        assert response.error_code == error_code


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\0",
        b"\0\x11\0\x01\0\0\0\x07\xff\xff\0\x7fshort",
        b"\0\x11\0\x02\0\0\0\x07\xff\xff\0\x01x",
        b"\0\x24\0\x00\0\0\0\x07\xff\xff\0\0\0\0",
    ],
)
def test_what_is_no_handshake_is_closed_without_an_answer(frame: bytes) -> None:
    step = Client().frame(frame)
    assert step.failure is not None
    assert (step.answer, step.is_for_handler) == (b"", False)


@pytest.mark.parametrize(
    ("max_reauth_ms", "expires_in_ms", "lifetime_ms"),
    [(0, None, 0), (500, None, 500), (0, 300, 300), (500, 300, 300), (200, 300, 200)],
)
def test_a_session_lasts_as_long_as_the_broker_and_the_credential_allow(
    max_reauth_ms: int, expires_in_ms: int | None, lifetime_ms: int
) -> None:
    expires_at_ms = None if expires_in_ms is None else 5_000_000 + expires_in_ms
    client = Client({"TWO": OfferedMechanism(lambda: TwoSteps(expires_at_ms), max_reauth_ms)})
    client.choose("TWO")
    client.token(b"")
    response = answer(client.token(b"carol"), SaslAuthenticateRequest, 2)
    assert isinstance(response, SaslAuthenticateResponse)
    assert response.session_lifetime_ms == lifetime_ms
    client.now_ms += lifetime_ms
    assert client.send(MetadataRequest(topics=None), 5).is_for_handler
    client.now_ms += 1
    ends = max_reauth_ms > 0 or expires_in_ms is not None
    step = client.send(MetadataRequest(topics=None), 5)
    assert step.is_for_handler is not ends
    assert (step.failure is not None) is ends


@pytest.mark.parametrize("expires_in_ms", [0, -9])
def test_a_credential_that_has_expired_is_good_for_no_request(expires_in_ms: int) -> None:
    """Tokens are taken for some seconds longer than they live, since clocks differ; Kafka closes then, too."""
    client = Client({"TWO": OfferedMechanism(lambda: TwoSteps(5_000_000 + expires_in_ms), 500)})
    client.choose("TWO")
    client.token(b"")
    response = answer(client.token(b"carol"), SaslAuthenticateRequest, 2)
    assert isinstance(response, SaslAuthenticateResponse)
    assert response.session_lifetime_ms == 0
    assert client.send(MetadataRequest(topics=None), 5).failure is not None


def reauthenticating() -> Client:
    client = Client(
        {"PLAIN": OfferedMechanism(plain, 10_000), "TWO": OfferedMechanism(TwoSteps, 10_000)},
    )
    client.log_in()
    client.now_ms += 20_000
    return client


def test_a_session_is_renewed_even_behind_its_end() -> None:
    client = reauthenticating()
    client.log_in()
    assert client.handshake.principal == "User:alice"
    assert client.send(MetadataRequest(topics=None), 5).is_for_handler
    client.now_ms += 10_001
    assert client.send(MetadataRequest(topics=None), 5).failure is not None


def test_the_principal_stays_the_same() -> None:
    client = reauthenticating()
    response = client.log_in(b"\0bob\0bob-secret")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    expected = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert response.error_message == expected
    assert client.handshake.principal is None


def test_the_mechanism_stays_the_same() -> None:
    client = reauthenticating()
    assert answer(client.choose("TWO"), SaslHandshakeRequest, 1) == SaslHandshakeResponse(
        error_code=0, mechanisms=["PLAIN", "TWO"]
    )
    step = client.token(ALICE)
    assert (step.answer, step.is_delayed) == (b"", True)
    assert step.failure == "re-authentication with another mechanism"


def test_an_unknown_mechanism_has_no_answer_the_second_time() -> None:
    step = reauthenticating().choose("NONE")
    assert (step.answer, step.is_delayed) == (b"", False)
    assert step.failure is not None


def test_a_second_failure_says_that_it_is_the_second_time() -> None:
    client = Client({"TWO": OfferedMechanism(TwoSteps, 10_000)})
    for name, message in ((b"carol", ""), (b"", MASKED.replace("authentication", "re-authentication"))):
        client.choose("TWO")
        client.token(b"")
        response = answer(client.token(name), SaslAuthenticateRequest, 2)
        assert isinstance(response, SaslAuthenticateResponse)
        assert response.error_message == message


def test_nothing_else_is_served_while_a_client_authenticates_again() -> None:
    client = reauthenticating()
    client.choose("PLAIN")
    assert client.send(MetadataRequest(topics=None), 5).failure is not None


def test_a_client_may_authenticate_again_once_in_a_second() -> None:
    client = reauthenticating()
    client.log_in()
    client.now_ms += 999
    assert client.choose("PLAIN").is_for_handler
    client.now_ms += 1
    assert not client.choose("PLAIN").is_for_handler


def test_where_sessions_do_not_end_a_handshake_is_for_its_handler() -> None:
    client = Client()
    client.log_in()
    assert client.choose("PLAIN").is_for_handler
    assert client.token(ALICE).is_for_handler


def with_password(password: str, max_reauth_ms: int = 0) -> dict[str, OfferedMechanism]:
    return {"PLAIN": OfferedMechanism(lambda: PlainServer({"alice": password}), max_reauth_ms)}


def test_an_exchange_that_has_begun_goes_on_by_what_was_offered_then() -> None:
    client = Client(with_password("alice-secret", 5_000))
    client.choose("PLAIN")
    client.mechanisms = {}
    response = answer(client.token(ALICE), SaslAuthenticateRequest, 2)
    assert isinstance(response, SaslAuthenticateResponse)
    assert (response.error_code, response.session_lifetime_ms) == (ErrorCode.NONE, 5_000)


def test_who_is_in_stays_until_the_session_ends_whatever_is_offered_by_then() -> None:
    client = Client(with_password("alice-secret", 10_000))
    client.log_in()
    client.mechanisms = with_password("another", 10_000)
    client.now_ms += 9_000
    assert client.send(MetadataRequest(topics=None), 5).is_for_handler
    assert client.log_in().error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, "a new password counts from now on"


def test_a_mechanism_that_is_offered_no_more_renews_no_session() -> None:
    client = reauthenticating()
    client.mechanisms = {"TWO": OfferedMechanism(TwoSteps, 10_000)}
    assert client.choose("PLAIN").failure is not None


def test_a_session_that_has_no_end_gets_none_by_a_change() -> None:
    client = Client(with_password("alice-secret"))
    client.log_in()
    client.mechanisms = with_password("another", 1)
    client.now_ms += 1_000_000
    assert client.send(MetadataRequest(topics=None), 5).is_for_handler
    assert client.choose("PLAIN").is_for_handler


REQUESTS = st.sampled_from(sorted(ApiKey)).flatmap(
    lambda api_key: st.tuples(
        st.just(int(api_key)),
        st.integers(-1, request_type(api_key).__schema__.versions.high + 1),
        st.binary(max_size=40),
    )
)
FRAMES = st.one_of(
    st.binary(max_size=60),
    REQUESTS.map(
        lambda each: (
            each[0].to_bytes(2, "big") + each[1].to_bytes(2, "big", signed=True) + b"\0\0\0\1\xff\xff" + each[2]
        )
    ),
    st.sampled_from(["PLAIN", "TWO", "NONE"]).flatmap(
        lambda name: st.sampled_from([0, 1]).map(
            lambda version: encode_request(SaslHandshakeRequest(mechanism=name), version, 1, None)[SIZE_BYTES:]
        )
    ),
    st.sampled_from([b"", WRONG, b"\0mallory\0x"]).flatmap(
        lambda token: st.sampled_from([0, 1, 2]).map(
            lambda version: encode_request(SaslAuthenticateRequest(auth_bytes=token), version, 1, None)[SIZE_BYTES:]
        )
    ),
)


def refusing() -> ServerMechanism:
    return PlainServer({})


@settings(max_examples=400, deadline=None)
@given(frames=st.lists(FRAMES, max_size=8), error_code=st.sampled_from([0, 35]))
@example(frames=[b"\0\x12\0\0\0\0\0\1\xff\xff"] * 2 + [b"\0\x03\0\0\0\0\0\1\xff\xff\xff\xff\xff\xff"], error_code=0)
def test_no_sequence_of_frames_reaches_a_handler_before_authentication(frames: list[bytes], error_code: int) -> None:
    offered = {"PLAIN": OfferedMechanism(refusing, 1), "TWO": OfferedMechanism(refusing)}
    handshake = SaslHandshake(lambda: offered)
    for frame in frames:
        step = handshake.receive(frame, now_ms=0, wall_ms=0)
        if step.is_for_handler:
            assert int.from_bytes(frame[:2], "big") == ApiKey.API_VERSIONS
            assert step == Step(is_for_handler=True)
            handshake.api_versions_answered(error_code)
        assert handshake.principal is None
        assert not handshake.is_complete
        if step.failure is not None:
            break
