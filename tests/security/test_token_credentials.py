"""SCRAM credentials of delegation tokens: as Kafka derives them, few computations, and a bounded number of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.messages.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from pykbroker.security.sasl.mechanism import AuthenticationFailed, Identity
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS, ScramMechanism
from pykbroker.security.sasl.scram_server import ScramServer
from pykbroker.security.tokens.credentials import TokenCredentials
from pykbroker.security.tokens.secret import TokenSecret
from pykbroker.server.node.offered_mechanisms import SaslParts, _scram_server
from pykbroker.server.node.token_keys import TokenKeys
from pykbroker.server.runtime.threads import WorkerThreads

SECRET = TokenSecret("hush")
SHA_256, SHA_512 = MECHANISMS["SCRAM-SHA-256"], MECHANISMS["SCRAM-SHA-512"]


def numbered_salts() -> Callable[[], bytes]:
    made = iter(range(1000))
    return lambda: b"salt-%d" % next(made)


def test_a_credential_follows_from_the_hmac_in_base64_and_4096_iterations() -> None:
    credential = TokenCredentials(SECRET, lambda: b"salt").of(SHA_512, "some-id")
    salted = SHA_512.salted_password(SECRET.password("some-id"), b"salt", 4096)
    assert credential == SHA_512.credential(salted, b"salt", 4096)


def test_a_credential_is_computed_once_and_the_least_used_is_forgotten() -> None:
    credentials = TokenCredentials(SECRET, numbered_salts(), most=2)
    first, second = credentials.of(SHA_256, "a"), credentials.of(SHA_512, "a")
    assert [each.salt for each in (first, second)] == [b"salt-0", b"salt-1"]
    assert credentials.of(SHA_256, "a") is first
    assert credentials.of(SHA_256, "b").salt == b"salt-2"
    assert credentials.of(SHA_256, "a") is first
    assert credentials.of(SHA_512, "a").salt == b"salt-3"


class Listener:
    """What a SCRAM listener asks: an image with one token of alice's, and one of a group's."""

    def __init__(self, *, has_secret: bool = True) -> None:
        self.image = MetadataImage()
        self.image.replay(DelegationTokenRecord(token_id="of-alice", owner="User:alice:x", **self._times), 0)
        self.image.replay(DelegationTokenRecord(token_id="of-group", owner="Group:alice", **self._times), 1)
        tokens = TokenCredentials(SECRET, lambda: b"salt") if has_secret else None
        self.parts = SaslParts(lambda: self.image, TokenKeys(WorkerThreads()), tokens)

    _times = {"max_timestamp": 100, "expiration_timestamp": 50}  # noqa: RUF012

    def log_in(
        self, token_id: str, *, mechanism: ScramMechanism = SHA_256, tokenauth: str = "true", now_ms: int = 0
    ) -> Identity | None:
        server: ScramServer = _scram_server(mechanism, self.parts)
        password = ScramPassword(token_id, SECRET.password(token_id))
        client, challenge = ScramClient(mechanism, password, "nonce", {"tokenauth": tokenauth}), b""
        while not client.is_complete:
            if response := client.step(challenge):
                challenge = server.step(response, now_ms)
        return server.identity


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=str)
def test_who_has_the_token_is_its_owner_until_it_expires(mechanism: ScramMechanism) -> None:
    found = Listener().log_in("of-alice", mechanism=mechanism, now_ms=50)
    assert found == Identity("alice:x", 50, by_token=True)


def test_an_expired_token_lets_nobody_in_before_it_is_swept_away() -> None:
    with pytest.raises(AuthenticationFailed, match="an expired delegation token") as failure:
        Listener().log_in("of-alice", now_ms=51)
    assert failure.value.told is None


def test_a_renewed_token_has_the_same_credential() -> None:
    listener = Listener()
    listener.log_in("of-alice")
    before = listener.parts.tokens.of(SHA_256, "of-alice") if listener.parts.tokens else None
    renewal = DelegationTokenRecord(
        token_id="of-alice", owner="User:alice:x", max_timestamp=100, expiration_timestamp=90
    )
    listener.image.replay(renewal, 2)
    found = listener.log_in("of-alice", now_ms=80)
    assert found is not None
    assert found.expires_at_ms == 90
    assert listener.parts.tokens is not None
    assert listener.parts.tokens.of(SHA_256, "of-alice") is before


@pytest.mark.parametrize("token_id", ["of-group", "unknown", "alice:x"])
def test_nobody_else_is_let_in(token_id: str) -> None:
    listener = Listener()
    with pytest.raises(AuthenticationFailed, match="no such user or delegation token"):
        listener.log_in(token_id)
    assert listener.parts.tokens is not None
    assert not listener.parts.tokens._known, "nothing is computed for them"


def test_a_token_is_no_user_and_a_removed_one_is_none() -> None:
    listener = Listener()
    with pytest.raises(AuthenticationFailed, match="no such user"):
        listener.log_in("of-alice", tokenauth="false")
    assert listener.log_in("of-alice") is not None
    listener.image.replay(RemoveDelegationTokenRecord(token_id="of-alice"), 2)
    with pytest.raises(AuthenticationFailed, match="no such user"):
        listener.log_in("of-alice")


def test_without_a_secret_no_token_opens_anything() -> None:
    with pytest.raises(AuthenticationFailed, match="no such user"):
        Listener(has_secret=False).log_in("of-alice")
