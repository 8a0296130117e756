"""What a token opens: raw exchanges, Kafka's own tools, and clients that know nothing of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka.errors import KafkaError

from compat_tests.answers import TestAnswers
from compat_tests.waiting import until
from compat_tests.wire import Closed, Wire
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from pykbroker.security.sasl.mechanism import AuthenticationFailed
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .asking import Asking, description, expiry, renewal, shown_expiry
from .token_broker import HOUR_MS, Token, TokenBroker, log_in_by_token
from .token_tool import TokenTools, created, shown

METADATA = MetadataRequest(topics=[])


def served(wire: Wire) -> str:
    try:
        wire.call(METADATA, 5)
    except Closed:
        return "closed"
    return "served"


def log_in(tokens: TokenBroker, token: Token, mechanism: str, **options: Any) -> Any:
    """The answer to the log-in, and what becomes of the next request."""
    with Wire(tokens.sasl) as wire:
        answer = log_in_by_token(wire, token, mechanism, **options)
        return [answer.error_code, answer.error_message, served(wire)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_whoever_has_the_token_is_let_in(tokens: TokenBroker, answers: TestAnswers, mechanism: str) -> None:
    with Asking(tokens) as asking:
        token, other = asking.create("alice"), asking.create("alice")
        cases = {
            "right": token,
            "the other's HMAC": Token(token.token_id, other.hmac),
            "half the HMAC": Token(token.token_id, token.hmac[:32]),
            "no such token": Token("A" * 22, token.hmac),
            "a user": Token("alice", token.hmac),
        }
        for name, each in cases.items():
            answers.same(name, log_in(tokens, each, mechanism))
        for text in ("TRUE", "false", "yes", "1"):
            answers.same(f"tokenauth={text}", log_in(tokens, token, mechanism, tokenauth=text))
        asking.ask("alice", expiry(other.hmac))
        until(lambda: log_in(tokens, other, mechanism)[0] == 58, "the token is gone")
        answers.same("removed", log_in(tokens, other, mechanism))


def test_a_token_is_no_user(tokens: TokenBroker, answers: TestAnswers) -> None:
    """A user who has the id of a token for a name has a password of his own."""
    with Asking(tokens) as asking:
        token = asking.create("alice")
        mechanism = MECHANISMS["SCRAM-SHA-256"]
        salted = mechanism.salted_password(token.password, b"salt", 4096)
        change = ScramCredentialUpsertion(
            name=token.token_id, mechanism=1, iterations=4096, salt=b"salt", salted_password=salted
        )
        answer = asking.ask("admin", AlterUserScramCredentialsRequest(upsertions=[change]))
        assert not answer.results[0].error_code, answer
        until(lambda: log_in(tokens, token, "SCRAM-SHA-256", tokenauth="false")[0] == 0, "the user is known")
        with Wire(tokens.sasl) as wire:
            assert not log_in_by_token(wire, token, tokenauth="false").error_code
            answer = wire.call(renewal(token.hmac), 2)
            answers.same("as a user", [answer.error_code, answer.expiry_timestamp_ms])
        with Wire(tokens.sasl) as wire:
            assert not log_in_by_token(wire, token).error_code
            answer = wire.call(renewal(token.hmac), 2)
            answers.same("as a token", [answer.error_code, answer.expiry_timestamp_ms])


def test_an_expired_token_opens_nothing(tokens: TokenBroker, answers: TestAnswers) -> None:
    """Kafka lets it in, with a session that is over at once; pykbroker refuses it."""
    with Asking(tokens) as asking:
        token = asking.create("alice")
        assert not asking.ask("alice", expiry(token.hmac, 0)).error_code
        until(lambda: asking.ask("alice", renewal(token.hmac)).error_code == 66, "the token has expired")
        for mechanism in MECHANISMS:
            until(lambda: log_in(tokens, token, mechanism)[2] == "closed", "the broker knows that it has expired")  # noqa: B023
            answers.same(mechanism, log_in(tokens, token, mechanism)[2])


def test_a_session_ends_with_its_token(tokens: TokenBroker, answers: TestAnswers) -> None:
    with Asking(tokens) as asking:
        lasting = asking.create("alice")
        with Wire(tokens.sasl) as wire:
            left = log_in_by_token(wire, lasting).session_lifetime_ms
            answers.same("of a day", f"{left / HOUR_MS:.1f} h")
        token = asking.create("alice", max_lifetime_ms=1500)
        with Wire(tokens.sasl) as wire:
            left = log_in_by_token(wire, token).session_lifetime_ms
            assert 0 < left <= 1500
            assert served(wire) == "served"
            until(lambda: served(wire) == "closed", "the session is over")
        with Wire(tokens.sasl) as wire:
            answer = log_in_by_token(wire, lasting, authenticate_version=0)
            answers.same("a client that knows no sessions", [answer.session_lifetime_ms, served(wire)])


def test_whoever_is_in_stays_when_the_token_is_removed_or_renewed(tokens: TokenBroker, answers: TestAnswers) -> None:
    with Asking(tokens) as asking, Wire(tokens.sasl) as wire:
        token = asking.create("alice", "User:bob")
        assert not log_in_by_token(wire, token).error_code
        issued = next(each for each in asking.ask("alice", description()).tokens if each.token_id == token.token_id)
        renewed = asking.ask("bob", renewal(token.hmac, 2 * HOUR_MS))
        answers.same("renewed", shown_expiry(renewed, issued.issue_timestamp))
        answers.same("after a renewal", served(wire))
        asking.ask("bob", expiry(token.hmac))
        until(lambda: log_in(tokens, token, "SCRAM-SHA-256")[0] == 58, "the token is gone")
        answers.same("after its removal", served(wire))
        answers.same("again", _again(wire, token))
        answers.same("and then", served(wire))


def test_a_connection_changes_from_a_token_to_another(tokens: TokenBroker, answers: TestAnswers) -> None:
    """Re-authentication with another token of the same owner goes through, and with one of another owner does not."""
    with Asking(tokens) as asking, Wire(tokens.sasl) as wire:
        first, second, other = asking.create("alice"), asking.create("alice"), asking.create("bob")
        assert not log_in_by_token(wire, first).error_code
        answers.same("the second", _again(wire, second))
        answer: Any = wire.call(renewal(second.hmac), 2)
        answers.same("still by a token", answer.error_code)
    with Wire(tokens.sasl) as wire:
        assert not log_in_by_token(wire, first).error_code
        answers.same("another's", _again(wire, other))


def _again(wire: Wire, token: Token) -> Any:
    try:
        answer = log_in_by_token(wire, token)
    except (Closed, AuthenticationFailed) as failure:
        return type(failure).__name__
    return [answer.error_code, answer.error_message]


def test_clients_without_tokens_are_refused(tokens: TokenBroker, answers: TestAnswers) -> None:
    """librdkafka and kafka-python have no `tokenauth`: to them the id is a user's name, and there is no such user."""
    with Asking(tokens) as asking:
        token = asking.create("alice")
    errors: list[str] = []
    common = {"bootstrap.servers": tokens.bootstrap, "security.protocol": "SASL_PLAINTEXT"}
    admin = AdminClient(
        {
            **common,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": token.token_id,
            "sasl.password": token.password,
            "error_cb": lambda error: errors.append(error.name()),
            "log_level": 0,
        }
    )
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=2)
    admin.poll(0)
    answers.same("librdkafka", sorted(set(errors) & {"_AUTHENTICATION"}))
    with pytest.raises(KafkaException, match="No such configuration property"):
        AdminClient({**common, "sasl.tokenauth": "true"})
    with pytest.raises(KafkaError) as refused:
        KafkaConsumer(
            bootstrap_servers=tokens.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username=token.token_id,
            sasl_plain_password=token.password,
            bootstrap_timeout_ms=2_000,
        )
    answers.same("kafka-python", type(refused.value).__name__)


@pytest.mark.java
def test_kafkas_own_clients_log_in_by_token(tokens: TokenBroker, answers: TestAnswers, tmp_path: Path) -> None:
    tools = TokenTools(tokens, tmp_path)
    with Asking(tokens) as asking:
        token, gone = asking.create("admin"), asking.create("admin")
        asking.ask("admin", expiry(gone.hmac))
        until(lambda: log_in(tokens, gone, "SCRAM-SHA-256")[0] == 58, "the token is gone")
    cases = {"right": token, "a wrong HMAC": Token(token.token_id, gone.hmac), "removed": gone}
    for mechanism in MECHANISMS:
        for name, each in cases.items():
            done = tools.topics(tools.properties_of(each, mechanism))
            refused = [line for line in (done.stdout + done.stderr).splitlines() if "Authentication failed" in line]
            told = refused[0][refused[0].index("Authentication failed") :] if refused else ""
            answers.same(f"{mechanism}, {name}", [done.returncode, told])
    by_token = tools.tokens_with(tools.properties_of(token, "SCRAM-SHA-512"), "--describe")
    answers.same("a token describes tokens", shown(by_token))


@pytest.mark.java
def test_kafkas_tool_creates_describes_renews_and_expires(
    tokens: TokenBroker, answers: TestAnswers, tmp_path: Path
) -> None:
    tools = TokenTools(tokens, tmp_path)
    with Asking(tokens) as asking:
        made = tools.tokens(
            "alice", "--create", "--max-life-time-period", str(HOUR_MS), "--renewer-principal", "User:bob"
        )
        token = created(made)
        answers.same("created", shown(made, token))
        asking.wait_for(token)
        for user in ("alice", "bob", "carol"):
            described = tools.tokens(user, "--describe", "--owner-principal", "User:alice")
            answers.same(f"{user} describes", shown(described, token))
        for user in ("alice", "bob", "carol"):
            renewed = tools.tokens(user, "--renew", "--renew-time-period", "60000", "--hmac", token.password)
            answers.same(f"{user} renews", shown(renewed, token))
        refused = tools.tokens("alice", "--create", "--max-life-time-period", "-1", "--owner-principal", "User:carol")
        answers.same("for another", shown(refused))
        for_another = tools.tokens(
            "admin", "--create", "--max-life-time-period", "-1", "--owner-principal", "User:carol"
        )
        answers.same("for another, by a super user", shown(for_another, created(for_another)))
        for user in ("carol", "bob", "alice"):
            expired = tools.tokens(user, "--expire", "--expiry-time-period", "-1", "--hmac", token.password)
            answers.same(f"{user} expires", shown(expired, token))
            if user == "bob":
                until(lambda: asking.ask("admin", renewal(token.hmac)).error_code == 62, "the token is gone")
