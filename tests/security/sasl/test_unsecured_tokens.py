"""Tokens without a signature, which Kafka takes where nothing else is said: its rules, its options."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.config import ConfigurationError
from pykbroker.security.sasl.oauthbearer.compact_token import LAST_MS, InvalidToken
from pykbroker.security.sasl.oauthbearer.unsecured import UnsecuredValidator
from pykbroker.security.sasl.oauthbearer.unsecured_login import UnsecuredLogin

from .tokens import NOW_MS, NOW_S, claims, part, unsecured

KEY = "listener.name.x.oauthbearer.sasl.jaas.config"


def refused(token: str, **rules: Any) -> str:
    with pytest.raises(InvalidToken) as error:
        UnsecuredValidator(**rules).validate(token, NOW_MS)
    return str(error.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sub": None}, "'sub' names no principal"),
        ({"sub": " "}, "'sub' names no principal"),
        ({"sub": 7}, "'sub' names no principal"),
        ({"sub": ["a"]}, "'sub' names no principal"),
        ({"sub": "x" * 1_025}, "longer than 1024"),
        ({"sub": "\ud800"}, "no text of Unicode"),
        ({"exp": None}, "no claim 'exp'"),
        ({"exp": "1"}, "'exp' is not a number"),
        ({"exp": True}, "'exp' is not a number"),
        ({"exp": NOW_S}, "expired"),
        ({"exp": -1e300}, "expired"),
        ({"iat": "1"}, "'iat' is not a number"),
        ({"iat": NOW_S + 1}, "issued in the future"),
        ({"exp": NOW_S + 1, "iat": NOW_S + 1}, "issued in the future"),
        ({"scope": 1}, "neither a text nor a list"),
    ],
)
def test_what_claims_must_be(changes: dict[str, Any], reason: str) -> None:
    assert reason in refused(unsecured(**changes))


def test_the_clock_may_differ_as_far_as_allowed() -> None:
    validator = UnsecuredValidator(clock_skew_ms=2_000)
    assert validator.validate(unsecured(iat=NOW_S + 2), NOW_MS).name == "alice"
    assert validator.validate(unsecured(exp=NOW_S - 1.9), NOW_MS).expires_at_ms == NOW_MS - 1_900
    assert "expired" in refused(unsecured(exp=NOW_S - 2), clock_skew_ms=2_000)
    assert "future" in refused(unsecured(iat=NOW_S + 2.001), clock_skew_ms=2_000)
    assert "before it was issued" in refused(unsecured(exp=NOW_S - 1, iat=NOW_S - 1), clock_skew_ms=2_000)


def test_times_may_have_fractions_or_be_beyond_all_clocks() -> None:
    assert UnsecuredValidator().validate(unsecured(exp=NOW_S + 0.0015), NOW_MS).expires_at_ms == NOW_MS + 2
    for far in (1e300, 10**30, float("1e308")):
        assert UnsecuredValidator().validate(unsecured(exp=far), NOW_MS).expires_at_ms == LAST_MS


def test_the_claims_may_have_other_names() -> None:
    validator = UnsecuredValidator(principal_claim="user", scope_claim="roles", required_scope=("a",))
    assert validator.validate(unsecured(user="bob", roles=[" a ", 5]), NOW_MS).name == "bob"
    assert validator.validate(unsecured(user="bob", roles="a"), NOW_MS).name == "bob"
    with pytest.raises(InvalidToken) as error:  # a text is one scope, blanks or not
        validator.validate(unsecured(user="bob", roles="a b"), NOW_MS)
    assert error.value.scope == "[a]"


NONE = part({"alg": "none"})
GOOD = part(claims())


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "three parts"),
        ("a.b", "three parts"),
        ("a.b.c.d", "three parts"),
        ("..", "no JSON"),
        (f"{NONE}.{GOOD}.c2ln", "has a signature"),
        (part({"alg": "RS256"}) + f".{GOOD}.", "algorithm"),
        (part({"alg": "None"}) + f".{GOOD}.", "algorithm"),
        (part({}) + f".{GOOD}.", "algorithm"),
        (part([]) + f".{GOOD}.", "no JSON object"),
        (f"{NONE}." + part([1]) + ".", "no JSON object"),
        (f"{NONE}." + part("text") + ".", "no JSON object"),
        (part(b'{"alg":"none","alg":"none"}') + f".{GOOD}.", "no JSON"),
        (f"{NONE}." + part(b'{"exp":NaN}') + ".", "no JSON"),
        (f"{NONE}." + part(b'{"exp":' + b"9" * 5_000 + b"}") + ".", "no JSON"),
        (f"{NONE}." + part(b"[" * 40_000) + ".", "no JSON"),
        (f"{NONE}." + part(b'{"a":' * 5_000) + ".", "no JSON"),
        (f"{NONE}." + part(b"\xff\xfe{}") + ".", "no JSON"),
        (f"{NONE}.a+b/.", "Base64url"),
        (f"{NONE}.aaaaa.", "Base64url"),
        (f"{NONE}=.{GOOD}.", "Base64url"),
    ],
)
def test_what_is_no_token_is_refused(token: str, reason: str) -> None:
    assert reason in refused(token)


def test_options_of_a_jaas_line() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": " user ",
        "unsecuredValidatorScopeClaimName": "roles",
        "unsecuredValidatorRequiredScope": " read  write ",
        "unsecuredValidatorAllowableClockSkewMs": "3000",
    }
    assert UnsecuredValidator.of(KEY, options) == UnsecuredValidator("user", "roles", ("read", "write"), 3_000)
    assert UnsecuredValidator.of(KEY, {"unsecuredValidatorPrincipalClaimName": " "}) == UnsecuredValidator()


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("unsecuredValidatorAllowableClockSkewMs", "-1"),
        ("unsecuredValidatorAllowableClockSkewMs", "1s"),
        ("unsecuredValidatorAllowableClockSkewMs", "2147483648"),
        ("unsecuredValidatorRequiredScope", 'a "b"'),
    ],
)
def test_a_bad_option_is_named(option: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{KEY}: {option}"):
        UnsecuredValidator.of(KEY, {option: text})


def test_what_a_client_makes_for_itself_is_taken() -> None:
    login = UnsecuredLogin.of(
        KEY,
        {
            "unsecuredLoginStringClaim_user": 'al"ice\\',
            "unsecuredLoginNumberClaim_level": "2.5",
            "unsecuredLoginListClaim_scope": "|read|write",
            "unsecuredLoginPrincipalClaimName": "user",
            "unsecuredLoginLifetimeSeconds": "60",
        },
    )
    token = login.token(NOW_MS)
    identity = UnsecuredValidator(principal_claim="user", required_scope=("write",)).validate(token, NOW_MS)
    assert (identity.name, identity.expires_at_ms) == ('al"ice\\', NOW_MS + 60_000)
    assert "ice" not in repr(login)


@pytest.mark.parametrize(
    ("text", "elements"),
    [("", []), ("|", []), ("|a", ["a"]), ("|a|b", ["a", "b"]), ("|a||b|", ["a", "", "b", ""]), (".|", ["|"])],
)
def test_a_list_begins_with_its_delimiter(text: str, elements: list[str]) -> None:
    options = {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginListClaim_scope": text}
    assert UnsecuredLogin.of(KEY, options).claims["scope"] == elements


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unsecuredLoginStringClaim_sub": " "},
        {"unsecuredLoginStringClaim_name": "a"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_n": "x"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_n": "nan"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_exp": "5"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginStringClaim_iat": "5"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "0"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "1.5"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "9" * 30},
    ],
)
def test_a_bad_login_is_named(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=KEY):
        UnsecuredLogin.of(KEY, options)
