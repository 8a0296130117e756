"""Delegation tokens in the controller, in the image and its snapshots: who changes what, and when a token ends."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from pykbroker.long_work import whole
from pykbroker.metadata.delegation_tokens import MOST_RENEWER_BYTES
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.metadata.image_difference import difference
from pykbroker.metadata.known_tokens import KnownTokens
from pykbroker.metadata.request_context import ControllerRequestContext
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from pykbroker.protocol.messages.metadata_records import (
    DelegationTokenRecord,
    FeatureLevelRecord,
    RemoveDelegationTokenRecord,
)
from pykbroker.protocol.schema import Message
from pykbroker.security.tokens.secret import TokenSecret

from .cluster import Cluster, one_node

SECRET = "hush"
HOUR_MS = 3_600_000
MAX_LIFETIME_MS, EXPIRY_TIME_MS, SWEEP_MS = 48 * HOUR_MS, 24 * HOUR_MS, HOUR_MS
PROPERTIES = {
    "delegation.token.secret.key": SECRET,
    "delegation.token.max.lifetime.ms": str(MAX_LIFETIME_MS),
    "delegation.token.expiry.time.ms": str(EXPIRY_TIME_MS),
    "delegation.token.expiry.check.interval.ms": str(SWEEP_MS),
}
ALICE, BOB, EVE = "User:alice", "User:bob", "User:eve"
LONGEST = (1 << 63) - 1
DISABLED, EXPIRED, MISMATCH, NOT_FOUND = (
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    ErrorCode.DELEGATION_TOKEN_EXPIRED,
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
)


class Tokens:
    """A controller whose clients ask for tokens."""

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        self.cluster = one_node(PROPERTIES if properties is None else properties)

    def ask(self, principal: str, request: Message) -> Any:
        return self.step(principal, request)[1]

    def step(self, principal: str, request: Message) -> tuple[list[Message], Any]:
        context = ControllerRequestContext(principal=principal, wall_ms=self.cluster.wall_ms)
        return self.cluster.step(request, context)

    def create(
        self, principal: str, *renewers: str, owner: tuple[str, str] | None = None, max_lifetime_ms: int = -1
    ) -> CreateDelegationTokenResponse:
        response: CreateDelegationTokenResponse = self.ask(
            principal, creation(*renewers, lifetime=max_lifetime_ms, owner=owner)
        )
        return response

    def renew(self, principal: str, token: CreateDelegationTokenResponse, period_ms: int = -1) -> tuple[int, int]:
        answer = self.ask(principal, RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms))
        return answer.error_code, answer.expiry_timestamp_ms

    def expire(self, principal: str, token: CreateDelegationTokenResponse, period_ms: int = -1) -> tuple[int, int]:
        answer = self.ask(principal, ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=period_ms))
        return answer.error_code, answer.expiry_timestamp_ms

    @property
    def known(self) -> set[str]:
        """The ids in the image, which the log alone gives, too."""
        assert self.cluster.replayed() == self.cluster.image
        return set(self.cluster.image.delegation_tokens)


def creation(*renewers: str, lifetime: int = -1, owner: tuple[str, str] | None = None) -> CreateDelegationTokenRequest:
    request = CreateDelegationTokenRequest(max_lifetime_ms=lifetime)
    for each in renewers:
        kind, _, name = each.partition(":")
        request.renewers.append(CreatableRenewers(principal_type=kind, principal_name=name))
    if owner is not None:
        request.owner_principal_type, request.owner_principal_name = owner
    return request


def test_what_is_recorded_is_everything_but_the_hmac() -> None:
    tokens = Tokens()
    records, answer = tokens.step(ALICE, creation(BOB, EVE, BOB, owner=("User", "carol")))
    now = tokens.cluster.wall_ms
    assert records == [
        DelegationTokenRecord(
            owner="User:carol",
            requester=ALICE,
            renewers=[BOB, EVE, BOB],
            issue_timestamp=now,
            max_timestamp=now + MAX_LIFETIME_MS,
            expiration_timestamp=now + EXPIRY_TIME_MS,
            token_id=answer.token_id,
        )
    ]
    assert answer.hmac == hmac.digest(SECRET.encode(), answer.token_id.encode(), "sha512")
    assert (answer.principal_type, answer.principal_name) == ("User", "carol")
    assert (answer.token_requester_principal_type, answer.token_requester_principal_name) == ("User", "alice")
    assert len(answer.token_id) == 22


@pytest.mark.parametrize(
    ("asked", "lifetime", "expiry"),
    [
        (-1, MAX_LIFETIME_MS, EXPIRY_TIME_MS),
        (0, MAX_LIFETIME_MS, EXPIRY_TIME_MS),
        (-LONGEST - 1, MAX_LIFETIME_MS, EXPIRY_TIME_MS),
        (LONGEST, MAX_LIFETIME_MS, EXPIRY_TIME_MS),
        (30 * HOUR_MS, 30 * HOUR_MS, EXPIRY_TIME_MS),
        (HOUR_MS, HOUR_MS, HOUR_MS),
        (1, 1, 1),
    ],
)
def test_a_token_lives_as_long_as_asked_within_the_limits(asked: int, lifetime: int, expiry: int) -> None:
    answer = Tokens().create(ALICE, max_lifetime_ms=asked)
    assert answer.max_timestamp_ms - answer.issue_timestamp_ms == lifetime
    assert answer.expiry_timestamp_ms - answer.issue_timestamp_ms == expiry


def test_times_end_where_a_record_has_no_room_for_later_ones() -> None:
    tokens = Tokens(
        PROPERTIES | {"delegation.token.max.lifetime.ms": str(LONGEST), "delegation.token.expiry.time.ms": str(LONGEST)}
    )
    token = tokens.create(ALICE)
    assert token.max_timestamp_ms == token.expiry_timestamp_ms == LONGEST
    assert tokens.expire(ALICE, token, HOUR_MS) == (0, tokens.cluster.wall_ms + HOUR_MS)
    assert tokens.renew(ALICE, token) == (0, LONGEST)
    assert tokens.expire(ALICE, token, LONGEST) == (0, LONGEST)


@pytest.mark.parametrize("renewers", [("Group:eng",), (BOB, "user:bob"), (BOB, ":bob")])
def test_renewers_are_users(renewers: tuple[str, ...]) -> None:
    tokens = Tokens()
    refused = tokens.create(ALICE, *renewers)
    assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert (refused.hmac, refused.token_id, refused.issue_timestamp_ms) == (b"", "", 0)
    assert not tokens.known


def test_the_names_of_renewers_are_bounded() -> None:
    tokens = Tokens()
    name = f"User:{'n' * 1019}"
    assert not tokens.create(ALICE, *[name] * (MOST_RENEWER_BYTES // len(name))).error_code
    assert tokens.create(ALICE, *[name] * (MOST_RENEWER_BYTES // len(name) + 1)).error_code == ErrorCode.INVALID_REQUEST
    assert tokens.create(ALICE, *[BOB] * 100_000).error_code == ErrorCode.INVALID_REQUEST
    assert len(tokens.known) == 1


@pytest.mark.parametrize("secret", [{}, {"delegation.token.secret.key": ""}])
def test_without_a_secret_there_are_no_tokens(secret: dict[str, str]) -> None:
    tokens = Tokens(secret)
    token = tokens.create(ALICE)
    assert (token.error_code, token.principal_name) == (DISABLED, "alice")
    assert tokens.renew(ALICE, token) == tokens.expire(ALICE, token) == (DISABLED, 0)


def test_a_cluster_of_an_older_metadata_version_has_no_tokens() -> None:
    tokens = Tokens()
    token = tokens.create(ALICE)
    for level, error_code in ((13, ErrorCode.UNSUPPORTED_VERSION), (14, ErrorCode.NONE)):
        record = FeatureLevelRecord(name="metadata.version", feature_level=level)
        tokens.cluster.controller.replay(record, len(tokens.cluster.log))
        assert tokens.create(ALICE).error_code == error_code
        assert tokens.renew(ALICE, token)[0] == error_code
        assert tokens.expire(ALICE, token)[0] == error_code


def test_owner_and_renewers_renew_and_nobody_else() -> None:
    tokens = Tokens()
    token = tokens.create(ALICE, BOB, owner=("User", "carol"))
    now = tokens.cluster.wall_ms
    for principal in ("User:carol", BOB):
        assert tokens.renew(principal, token, HOUR_MS) == (0, now + HOUR_MS)
        assert tokens.renew(principal, token, LONGEST) == (0, now + EXPIRY_TIME_MS)
        assert tokens.renew(principal, token, 0) == (0, now + EXPIRY_TIME_MS)
    for principal in (ALICE, EVE, "Group:carol", "User:Carol"):
        assert tokens.renew(principal, token) == (MISMATCH, 0)
        assert tokens.expire(principal, token) == (MISMATCH, 0)
    [left] = tokens.cluster.image.delegation_tokens.values()
    assert left.expiry_timestamp == now + EXPIRY_TIME_MS


def test_a_renewal_does_not_outlive_the_token() -> None:
    tokens = Tokens()
    token = tokens.create(ALICE)
    tokens.cluster.now_ms += 23 * HOUR_MS
    assert tokens.renew(ALICE, token) == (0, token.issue_timestamp_ms + 47 * HOUR_MS)
    tokens.cluster.now_ms += 23 * HOUR_MS
    assert tokens.renew(ALICE, token) == (0, token.max_timestamp_ms)


def test_an_expired_token_can_be_removed_and_nothing_else() -> None:
    tokens = Tokens()
    token = tokens.create(ALICE, BOB)
    assert tokens.expire(BOB, token, 0) == (0, tokens.cluster.wall_ms)
    assert tokens.renew(BOB, token, HOUR_MS)[0] == ErrorCode.NONE, "the last millisecond counts"
    assert tokens.expire(BOB, token, 0)[0] == ErrorCode.NONE
    tokens.cluster.now_ms += 1
    assert tokens.renew(ALICE, token) == (EXPIRED, 0)
    assert tokens.renew(EVE, token) == (EXPIRED, 0)
    assert tokens.expire(ALICE, token, HOUR_MS) == (EXPIRED, 0)
    assert tokens.expire(EVE, token, HOUR_MS) == (MISMATCH, 0)
    assert tokens.known == {token.token_id}
    assert tokens.expire(ALICE, token, -7) == (0, tokens.cluster.wall_ms)
    assert not tokens.known
    assert tokens.expire(ALICE, token) == tokens.renew(ALICE, token) == (NOT_FOUND, 0)


@pytest.mark.parametrize("change", [lambda right: b"", lambda right: right[:-1], lambda right: right + b"\0"])
def test_a_token_is_found_by_its_whole_hmac_alone(change: Any) -> None:
    tokens = Tokens()
    token = tokens.create(ALICE)
    token.hmac = change(token.hmac)
    assert tokens.renew(ALICE, token) == tokens.expire(ALICE, token) == (NOT_FOUND, 0)


def test_expired_tokens_are_swept_each_hour() -> None:
    tokens = Tokens()
    assert tokens.cluster.advance(10 * SWEEP_MS) == [], "without tokens nothing is due"
    short, long = tokens.create(ALICE, max_lifetime_ms=SWEEP_MS // 2), tokens.create(ALICE)
    tokens.cluster.heartbeat(1)
    removed = tokens.cluster.advance(SWEEP_MS - 1)
    assert not [each for each in removed if isinstance(each, RemoveDelegationTokenRecord)]
    assert tokens.cluster.advance(1) == [RemoveDelegationTokenRecord(token_id=short.token_id)]
    assert tokens.renew(ALICE, short)[0] == NOT_FOUND
    assert tokens.cluster.advance(24 * SWEEP_MS) == [RemoveDelegationTokenRecord(token_id=long.token_id)]
    assert not tokens.known


def test_many_expired_tokens_are_swept_a_thousand_at_a_time() -> None:
    tokens = Tokens()
    for _ in range(2500):
        tokens.create(ALICE, max_lifetime_ms=1)
    tokens.create(ALICE)
    tokens.cluster.now_ms = tokens.cluster.controller.next_deadline_ms() or 0
    steps = []
    while tokens.cluster.controller.next_deadline_ms() == tokens.cluster.now_ms:
        records = tokens.cluster.take(tokens.cluster.controller.expire(tokens.cluster.now_ms, tokens.cluster.wall_ms))
        steps.append(len([each for each in records if isinstance(each, RemoveDelegationTokenRecord)]))
    assert [each for each in steps if each] == [1000, 1000, 500]
    assert len(tokens.known) == 1


def test_another_controller_knows_the_tokens_of_the_log() -> None:
    tokens = Tokens()
    token, gone = tokens.create(ALICE), tokens.create(ALICE)
    tokens.expire(ALICE, gone)
    tokens.cluster.restart_controller()
    assert tokens.renew(ALICE, gone)[0] == NOT_FOUND
    assert tokens.renew(ALICE, token)[0] == ErrorCode.NONE


def record(token_id: str, expiry: int = 5) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        token_id=token_id, owner=ALICE, requester=BOB, renewers=[EVE], max_timestamp=9, expiration_timestamp=expiry
    )


def test_views_snapshots_and_differences_have_the_tokens() -> None:
    image = MetadataImage()
    changes = ImageChanges()
    for offset, each in enumerate([record("a"), record("b"), record("c")]):
        changes.merge(image.replay(each, offset))
    view = image.view()
    changes.merge(image.replay(record("b", 7), 3))
    changes.merge(image.replay(RemoveDelegationTokenRecord(token_id="a"), 4))
    changes.merge(image.replay(RemoveDelegationTokenRecord(token_id="unknown"), 5))
    assert list(view.records()) == [record("a"), record("b"), record("c")]
    assert list(image.records()) == [record("b", 7), record("c")]
    assert list(changes.delegation_tokens) == ["a", "b", "c", "unknown"]
    assert list(difference(view, image).delegation_tokens) == ["a", "b"]
    assert list(difference(MetadataImage(), image).delegation_tokens) == ["b", "c"]
    assert changes
    assert [list(each.delegation_tokens) for each in changes.portions(3)] == [["a", "b", "c"], ["unknown"]]


def test_known_tokens_follow_the_image() -> None:
    secret = TokenSecret(SECRET)
    image = MetadataImage()
    image.replay(record("a"), 0)
    known = whole(KnownTokens.of(image, secret))
    for offset, each in enumerate([record("b"), record("a", 8), RemoveDelegationTokenRecord(token_id="a")], 1):
        known.follow(image, image.replay(each, offset))
    found = known.find(image, secret.hmac("b"))
    assert found is not None
    assert found.token_id == "b"
    assert known.find(image, secret.hmac("a")) is None
    assert known.find(image, TokenSecret("another").hmac("b")) is None


def test_the_secret_is_shown_by_nothing() -> None:
    assert SECRET not in repr(TokenSecret(SECRET))
    assert SECRET not in str(vars_of(Cluster(PROPERTIES)))


def vars_of(cluster: Cluster) -> object:
    return cluster.controller._state.known_tokens.secret
