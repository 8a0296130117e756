"""The four requests, field by field: each error code of each, and who sees which tokens."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.quorum.forwarding import disclose_response, enclose

from .asking import Asking, creation, description, expiry, renewal, shown_creation, shown_expiry, shown_tokens
from .conftest import FreshTokens
from .token_broker import HOUR_MS, TlsWire, Token, TokenBroker, log_in_by_token

LONGEST = (1 << 63) - 1
VERSIONS = {"create": (1, 2, 3), "renew": (1, 2), "expire": (1, 2), "describe": (1, 2, 3)}


def test_tokens_are_created(tokens: TokenBroker, answers: TestAnswers) -> None:
    asked: dict[str, Any] = {
        "plain": creation(),
        "with renewers": creation("User:bob", "User:carol", "User:bob", "User:"),
        "a renewer that is a group": creation("User:bob", "Group:eng"),
        "a renewer of no type": creation(":bob"),
        "a short life": creation(max_lifetime_ms=HOUR_MS),
        "a life of one millisecond": creation(max_lifetime_ms=1),
        "no life": creation(max_lifetime_ms=0),
        "a life before now": creation(max_lifetime_ms=-LONGEST - 1),
        "the longest life": creation(max_lifetime_ms=LONGEST),
        "for oneself": creation(owner="User:alice"),
        "for nobody": creation(owner="User:"),
        "for another": creation(owner="User:bob"),
        "for another, with a group": creation("Group:eng", owner="User:bob"),
        "for a group": creation(owner="Group:alice"),
        "for somebody of no type": creation(owner="bob"),
        "for no name of no type": creation(owner=""),
        "for somebody of an empty type": creation(owner=":bob"),
    }
    for on_controller in (False, True):
        with Asking(tokens, on_controller=on_controller) as asking:
            where = "controller" if on_controller else "broker"
            for name, request in asked.items():
                answers.same(f"{name}, {where}", shown_creation(asking.ask("alice", request)))
            for version in VERSIONS["create"][:-1]:
                answer = asking.ask("alice", creation("User:bob"), version)
                answers.same(f"version {version}, {where}", shown_creation(answer))
                refused = asking.ask("alice", creation("Group:bob"), version)
                answers.same(f"version {version}, refused, {where}", shown_creation(refused))


def test_whoever_may_creates_tokens_for_others(tokens: TokenBroker, answers: TestAnswers) -> None:
    with Asking(tokens) as asking:
        answers.same("without the right", shown_creation(asking.ask("carol", creation(owner="User:frank"))))
        asking.allow("carol", Operation.CREATE_TOKENS, ResourceType.USER, "User:frank")
        until(lambda: not asking.ask("carol", creation(owner="User:frank")).error_code, "carol may")
        created = asking.created("carol", "User:bob", owner="User:frank")
        answers.same("with the right", shown_creation(created))
        answers.same("a super user", shown_creation(asking.ask("admin", creation(owner="User:frank"))))
        answers.same("not for others", shown_creation(asking.ask("carol", creation(owner="User:eve"))))
        answers.same("not for a group", shown_creation(asking.ask("carol", creation(owner="Group:frank"))))
        hmac, issued = bytes(created.hmac), created.issue_timestamp_ms
        answers.same("the requester renews", shown_expiry(asking.ask("carol", renewal(hmac)), issued))
        answers.same("the requester expires", shown_expiry(asking.ask("carol", expiry(hmac)), issued))
        answers.same("a renewer renews", shown_expiry(asking.ask("bob", renewal(hmac)), issued))
        names = {created.token_id: "franks"}
        answers.same("the requester sees it", shown_tokens(asking.ask("carol", description()), names))
        answers.same("in version 2", shown_tokens(asking.ask("carol", description(), 2), names))
        answers.same("by the owner", shown_tokens(asking.ask("carol", description("User:frank")), names))
        answers.same("by the requester", shown_tokens(asking.ask("carol", description("User:carol")), names))


def test_tokens_are_renewed_by_their_owner_and_their_renewers(tokens: TokenBroker, answers: TestAnswers) -> None:
    for on_controller in (False, True):
        with Asking(tokens, on_controller=on_controller) as asking:
            where = "controller" if on_controller else "broker"
            created = asking.created("alice", "User:bob")
            hmac, issued = bytes(created.hmac), created.issue_timestamp_ms
            for user in ("alice", "bob", "eve", "admin"):
                for period_ms in (HOUR_MS, 2 * HOUR_MS, 47 * HOUR_MS, 0, -1, -LONGEST - 1, LONGEST, 1000 * HOUR_MS):
                    answer = asking.ask(user, renewal(hmac, period_ms))
                    answers.same(f"{user}, {period_ms} ms, {where}", shown_expiry(answer, issued))
            for version in VERSIONS["renew"]:
                answer = asking.ask("alice", renewal(hmac), version)
                answers.same(f"version {version}, {where}", shown_expiry(answer, issued))
            for name, wrong in {"no": b"", "half an": hmac[:32], "a wrong": hmac[::-1], "a long": hmac + b"x"}.items():
                answers.same(f"{name} HMAC, {where}", shown_expiry(asking.ask("alice", renewal(wrong)), issued))
            short = asking.created("alice", max_lifetime_ms=HOUR_MS)
            answer = asking.ask("alice", renewal(bytes(short.hmac)))
            answers.same(f"not over its lifetime, {where}", shown_expiry(answer, short.issue_timestamp_ms))


def test_tokens_are_expired_by_their_owner_and_their_renewers(tokens: TokenBroker, answers: TestAnswers) -> None:
    for on_controller in (False, True):
        with Asking(tokens, on_controller=on_controller) as asking:
            where = "controller" if on_controller else "broker"
            created = asking.created("alice", "User:bob")
            hmac, issued = bytes(created.hmac), created.issue_timestamp_ms
            for user in ("alice", "bob", "eve", "admin"):
                for period_ms in (HOUR_MS, 2 * HOUR_MS, 1000 * HOUR_MS, LONGEST):
                    answer = asking.ask(user, expiry(hmac, period_ms))
                    answers.same(f"{user}, {period_ms} ms, {where}", shown_expiry(answer, issued))
            for name, wrong in {"no": b"", "half an": hmac[:32], "a wrong": hmac[::-1]}.items():
                answers.same(f"{name} HMAC, {where}", shown_expiry(asking.ask("alice", expiry(wrong)), issued))
            answers.same(f"not by others, {where}", shown_expiry(asking.ask("eve", expiry(hmac, -5)), issued))
            answers.same(f"at once, {where}", shown_expiry(asking.ask("bob", expiry(hmac, -5)), issued))
            until(lambda: asking.ask("bob", expiry(hmac)).error_code == 62, "the token is gone")  # noqa: B023
            answers.same(f"gone, {where}", shown_expiry(asking.ask("bob", renewal(hmac)), issued))
            another = asking.created("alice")
            least = asking.ask("alice", expiry(bytes(another.hmac), -LONGEST - 1), 1)
            answers.same(f"the least period, {where}", shown_expiry(least, another.issue_timestamp_ms))


def test_an_expired_token_is_good_for_nothing(tokens: TokenBroker, answers: TestAnswers) -> None:
    with Asking(tokens) as asking:
        created = asking.created("alice", "User:bob")
        hmac, issued = bytes(created.hmac), created.issue_timestamp_ms
        assert not asking.ask("alice", expiry(hmac, 0)).error_code
        until(lambda: asking.ask("alice", renewal(hmac)).error_code == 66, "the token has expired")
        answers.same("renewed by others", shown_expiry(asking.ask("eve", renewal(hmac)), issued))
        answers.same("expired by others", shown_expiry(asking.ask("eve", expiry(hmac, 1000)), issued))
        answers.same("expired later", shown_expiry(asking.ask("alice", expiry(hmac, 1000)), issued))
        described = asking.ask("alice", description("User:alice"))
        answers.same("described", created.token_id in {each.token_id for each in described.tokens})
        answers.same("removed", shown_expiry(asking.ask("bob", expiry(hmac)), issued))
        until(lambda: asking.ask("alice", renewal(hmac)).error_code == 62, "the token is gone")


def test_expired_tokens_are_swept_away(fresh_tokens: FreshTokens) -> None:
    tokens = fresh_tokens({"delegation.token.expiry.check.interval.ms": "300"})
    with Asking(tokens) as asking:
        short, stays = Token.of(asking.ask("alice", creation(max_lifetime_ms=1))), asking.create("alice")
        until(lambda: asking.ids("alice") == {stays.token_id}, "the expired token is swept away")
        assert asking.ask("alice", renewal(short.hmac)).error_code == 62
        assert not asking.ask("alice", renewal(stays.hmac)).error_code


def test_tokens_are_described_to_those_who_may_see_them(tokens: TokenBroker, answers: TestAnswers) -> None:
    with Asking(tokens) as asking:
        names = {
            asking.create("alice", "User:bob").token_id: "of alice",
            asking.create("bob").token_id: "of bob",
            asking.create("admin", "User:carol", owner="User:bob").token_id: "made for bob",
            asking.create("admin", "User:bob", "User:alice", owner="Group:eng").token_id: "of a group",
            asking.create("eve").token_id: "of eve",
        }
        asked = {
            "all": description(),
            "of alice": description("User:alice"),
            "of bob and eve": description("User:bob", "User:eve"),
            "of carol": description("User:carol"),
            "of a group": description("Group:eng"),
            "of a user like the group": description("User:eng"),
            "of nobody there": description("User:zoe"),
            "of bob twice": description("User:bob", "User:bob"),
        }
        for user in ("alice", "bob", "carol", "eve", "admin"):
            for name, request in asked.items():
                answers.same(f"{user}, {name}", shown_tokens(asking.ask(user, request), names))
            nobody = description()
            nobody.owners = []
            answers.same(f"{user}, of no owners", shown_tokens(asking.ask(user, nobody), names))
            for version in VERSIONS["describe"][:-1]:
                answers.same(
                    f"{user}, version {version}", shown_tokens(asking.ask(user, description(), version), names)
                )
        of_alice = next(token_id for token_id, name in names.items() if name == "of alice")
        asking.allow("eve", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, of_alice)
        until(lambda: of_alice in asking.ids("eve"), "eve may see one")
        answers.same("with a right on the token", shown_tokens(asking.ask("eve", description()), names))
        asking.allow("eve", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob")
        until(lambda: len(names.keys() & asking.ids("eve")) == 4, "eve may see bob's")
        answers.same("with a right on bob", shown_tokens(asking.ask("eve", description()), names))
        answers.same("of alice alone", shown_tokens(asking.ask("eve", description("User:alice")), names))


REQUESTS: dict[str, Message] = {
    "create": creation("User:bob"),
    "create for another": creation("Group:bob", owner="User:bob"),
    "create for no type": creation(owner="bob"),
    "renew": renewal(b"x" * 64),
    "expire": expiry(b"x" * 64),
    "describe": description(),
}


def refusals(wire: Wire) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, request in REQUESTS.items():
        for version in VERSIONS[name.split()[0]]:
            if " for " in name and version < 3:
                continue  # which has no owners
            answer: Any = wire.call(request, version)
            if name.startswith("create"):
                shown = shown_creation(answer)
            else:
                shown = [answer.error_code, getattr(answer, "expiry_timestamp_ms", None)]
            found[f"{name}, version {version}"] = shown
    return found


def test_whoever_has_not_authenticated_has_no_tokens(tokens: TokenBroker, answers: TestAnswers) -> None:
    with Wire(tokens.plaintext) as wire:
        answers.same("plaintext", refusals(wire))
    with TlsWire(tokens, has_certificate=False) as wire:
        answers.same("TLS without a certificate", refusals(wire))
    with TlsWire(tokens, has_certificate=True) as wire:
        answers.same("TLS with a certificate", refusals(wire))


def test_a_token_makes_no_tokens(tokens: TokenBroker, answers: TestAnswers) -> None:
    with Asking(tokens) as asking:
        token = asking.create("alice", "User:alice")
    with Wire(tokens.sasl) as wire:
        assert not log_in_by_token(wire, token).error_code
        answers.same("by a token", refusals(wire))
        answer: Any = wire.call(renewal(token.hmac), 2)
        answers.same("renews itself", [answer.error_code, answer.expiry_timestamp_ms])


def test_a_controller_looks_at_what_a_broker_passes_on(tokens: TokenBroker, answers: TestAnswers) -> None:
    """The envelope says whether its client has authenticated by a token; how else, the broker has looked at."""
    with Asking(tokens, on_controller=True) as asking:
        for by_token in (False, True):
            for user in ("User:alice", "User:ANONYMOUS"):
                found: dict[str, Any] = {}
                for name, request in REQUESTS.items():
                    if name != "describe":
                        answer = _passed_on(asking, request, user, by_token=by_token)
                        is_creation = name.startswith("create")
                        found[name] = shown_creation(answer) if is_creation else str(answer)
                answers.same(f"{user}, by token: {by_token}", found)


def _passed_on(asking: Asking, request: Message, user: str, *, by_token: bool) -> Any:
    schema = request.__schema__
    assert schema.api_key is not None
    header = RequestHeader(schema.api_key, schema.stable_versions.high, 7, "client")
    envelope = asking.ask("admin", enclose(request, header, user, "10.1.2.3", by_token=by_token))
    assert not envelope.error_code, envelope
    return disclose_response(envelope, header)


@pytest.mark.parametrize("secret", [None, ""], ids=["no secret", "an empty secret"])
def test_without_a_secret_there_are_no_tokens(
    fresh_tokens: FreshTokens, answers: TestAnswers, secret: str | None
) -> None:
    tokens = fresh_tokens({}, secret=secret)
    for on_controller in (False, True):
        with Asking(tokens, on_controller=on_controller) as asking:
            where = "controller" if on_controller else "broker"
            found: dict[str, Any] = {}
            for name, request in REQUESTS.items():
                if not (on_controller and name == "describe"):
                    answer = asking.ask("alice", request)
                    is_creation = name.startswith("create")
                    found[name] = shown_creation(answer) if is_creation else str(answer)
            answers.same(where, found)
    with Wire(tokens.sasl) as wire:
        answer = log_in_by_token(wire, Token("AAAAAAAAAAAAAAAAAAAAAA", b"x" * 64))
        answers.same("log-in", [answer.error_code, answer.error_message])
