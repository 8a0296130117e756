"""The exchange of OAUTHBEARER: the client's message, the challenge of a refusal, and its end."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.security.sasl.mechanism import AuthenticationFailed, Identity
from pykbroker.security.sasl.oauthbearer.client import OAuthBearerClient
from pykbroker.security.sasl.oauthbearer.client_first import MAX_MESSAGE_BYTES, ClientFirst, is_extension
from pykbroker.security.sasl.oauthbearer.compact_token import MAX_TOKEN_CHARS, InvalidToken
from pykbroker.security.sasl.oauthbearer.key_set import KeySet
from pykbroker.security.sasl.oauthbearer.remote_keys import RemoteKeys
from pykbroker.security.sasl.oauthbearer.secured import Expectations, SecuredValidator
from pykbroker.security.sasl.oauthbearer.server import OAuthBearerServer, TokenValidator
from pykbroker.security.sasl.oauthbearer.unsecured import UnsecuredValidator

from .tokens import AUDIENCE, ISSUER, NOW_MS, jwk, jwks, part, rsa_key, unsecured


def message(token: str = "t", authorization_id: str = "", pairs: str = "") -> bytes:
    named = f"a={authorization_id}" if authorization_id else ""
    return f"n,{named},\x01auth=Bearer {token}\x01{pairs}\x01".encode()


def secured() -> SecuredValidator:
    keys = RemoteKeys(lambda: None)
    keys.take(KeySet.read(jwks(jwk(rsa_key(), "k"))))
    return SecuredValidator(keys, Expectations((AUDIENCE,), ISSUER))


def test_the_example_of_the_rfc_is_read() -> None:
    """RFC 7628, section 4.1, without the channel binding flag that SASL2 alone has and with Kafka's names."""
    read = ClientFirst.read(
        b"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01"
        b"auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01"
    )
    assert read.token == "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
    assert read.authorization_id == "user@example.com"
    assert read.extensions == {"host": "server.example.com", "port": "143"}
    assert ClientFirst.read(read.to_bytes()) == read
    assert read.token not in repr(read)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,auth=Bearer t\x01\x01",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer t\x01\x01",
        b"n,a=,\x01auth=Bearer t\x01\x01",
        b"n,a=a=b,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer t t\x01\x01",
        b"n,,\x01auth=Bearer t\x00\x01\x01",
        "n,,\x01auth=Bearer tä\x01\x01".encode(),
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01Auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer t\x01a1=x\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\x7f\x01\x01",
        b"n,,\x01auth=Bearer t\x01\x01more",
        message("t" * MAX_MESSAGE_BYTES),
    ],
)
def test_what_is_no_message_of_a_client_fails_in_masked_words(data: bytes) -> None:
    server = OAuthBearerServer(UnsecuredValidator())
    with pytest.raises(AuthenticationFailed) as refused:
        server.step(data, NOW_MS)
    assert refused.value.told is None
    assert server.identity is None


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
def test_the_scheme_has_any_case(scheme: str) -> None:
    assert ClientFirst.read(f"n,,\x01auth={scheme} t\x01\x01".encode()).token == "t"


def test_a_good_token_ends_the_exchange_and_says_when_it_expires() -> None:
    server, client = OAuthBearerServer(UnsecuredValidator()), OAuthBearerClient(unsecured(), {"traceId": "1 2"})
    assert not client.is_complete
    challenge = server.step(client.step(b""), NOW_MS)
    assert challenge == b""
    assert server.identity == Identity("alice", NOW_MS + 600_000)
    assert client.step(challenge) == b""
    assert client.is_complete


def test_a_token_that_is_refused_is_told_twice() -> None:
    server, client = OAuthBearerServer(UnsecuredValidator()), OAuthBearerClient(unsecured(exp=1))
    challenge = server.step(client.step(b""), NOW_MS)
    assert challenge == b'{"status":"invalid_token"}'
    answer = client.step(challenge)
    assert answer == b"\x01"
    assert not client.is_complete
    with pytest.raises(AuthenticationFailed) as refused:
        server.step(answer, NOW_MS)
    assert refused.value.told == '{"status":"invalid_token"}'
    assert "expired" in str(refused.value)
    assert server.identity is None
    with pytest.raises(AuthenticationFailed, match="behind the end"):
        client.step(b"")


def test_a_scope_that_is_missing_is_told() -> None:
    server = OAuthBearerServer(UnsecuredValidator(required_scope=("read", "write")))
    challenge = server.step(message(unsecured(scope=["read"])), NOW_MS)
    assert challenge == b'{"status":"insufficient_scope", "scope":"[read, write]"}'


def test_no_second_token_is_looked_at() -> None:
    server = OAuthBearerServer(UnsecuredValidator())
    server.step(message(unsecured(exp=1)), NOW_MS)
    with pytest.raises(AuthenticationFailed):
        server.step(message(unsecured()), NOW_MS)
    assert server.identity is None


def test_nobody_may_be_another_than_the_token_says() -> None:
    assert OAuthBearerServer(UnsecuredValidator()).step(message(unsecured(), "alice"), NOW_MS) == b""
    server = OAuthBearerServer(UnsecuredValidator())
    with pytest.raises(AuthenticationFailed) as refused:
        server.step(message(unsecured(), "bob"), NOW_MS)
    assert refused.value.told == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (alice)"
    )
    assert server.identity is None


def test_extensions_have_names_of_letters_and_printable_text() -> None:
    assert is_extension("traceId", "a b\t1~")
    for name, text in (("auth", "x"), ("a1", "x"), ("", "x"), ("a", ""), ("a", "\x01"), ("a", "ä")):
        assert not is_extension(name, text)


@given(data=st.binary() | st.text().map(str.encode), secure=st.booleans())
def test_no_bytes_do_anything_but_fail(data: bytes, secure: bool) -> None:
    validator: TokenValidator = secured() if secure else UnsecuredValidator()
    server = OAuthBearerServer(validator)
    try:
        assert server.step(data, NOW_MS).startswith(b'{"status":')
        server.step(b"\x01", NOW_MS)
    except AuthenticationFailed:
        pass
    assert server.identity is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(["alg", "kid", "typ", "crit", "b64", "iss", "aud", "sub", "exp", "iat", "nbf", "jti", "scope"])
OBJECTS = st.dictionaries(NAMES, st.sampled_from(["none", "RS256", "ES256", "HS256", "k", ISSUER, AUDIENCE]) | JSON)


@given(
    header=OBJECTS | JSON,
    payload=OBJECTS | JSON,
    signature=st.binary(max_size=300),
    secure=st.booleans(),
    scope=st.sampled_from([(), ("read",)]),
)
def test_no_token_does_anything_but_pass_or_fail(
    header: object, payload: object, signature: bytes, secure: bool, scope: tuple[str, ...]
) -> None:
    validator: TokenValidator = secured() if secure else UnsecuredValidator(required_scope=scope)
    with suppress(InvalidToken):
        identity = validator.validate(f"{part(header)}.{part(payload)}.{part(signature)}", NOW_MS)
        assert not secure  # nothing was signed
        assert identity.name.encode()


def test_a_token_has_a_bound() -> None:
    good = unsecured()
    longest = unsecured(more="x" * ((MAX_TOKEN_CHARS - len(good)) * 3 // 4 - 30))
    assert len(longest) > MAX_TOKEN_CHARS - 200
    assert UnsecuredValidator().validate(longest, NOW_MS).name == "alice"
    with pytest.raises(InvalidToken, match="longer"):
        UnsecuredValidator().validate(unsecured(more="x" * MAX_TOKEN_CHARS), NOW_MS)
