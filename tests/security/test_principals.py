"""Names of principals: `ssl.principal.mapping.rules` as Apache Kafka's `SslPrincipalMapper` applies them."""

from __future__ import annotations

import pytest

from pykbroker.config import ConfigurationError
from pykbroker.security.tls.principals import NoRuleMatches, PrincipalMapper

NAME = "CN=Alice,OU=Dev,O=x"

MAPPED = [
    ("DEFAULT", NAME, NAME),
    ("RULE:^CN=(.*?),.*$/$1/", NAME, "Alice"),
    ("RULE:^CN=(.*?),.*$/$1/L", NAME, "alice"),
    ("RULE:^CN=(.*?),.*$/$1/U", NAME, "ALICE"),
    ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/", NAME, "Alice@Dev"),
    ("RULE:^OU=.*$/x/, RULE:^CN=(.*?),.*$/$1/ ,DEFAULT", NAME, "Alice"),
    ("RULE:^OU=.*$/x/,,DEFAULT", NAME, NAME),
    ("RULE:Alice/x/,DEFAULT", NAME, NAME),
    ("RULE:CN=Alice/x/,DEFAULT", NAME, NAME),
    ("RULE:.*/all/", NAME, "allall"),
    ("RULE:(.*)/$1@x/", NAME, f"{NAME}@x@x"),
    ("RULE:CN=Alice|CN=Alice,OU=Dev,O=x/y/", NAME, "y,OU=Dev,O=x"),
    ("RULE:.*//", NAME, ""),
    ("RULE:^CN=(A)(B)?.*$/$1$2$3/", NAME, "A$3"),
    ("RULE:^CN=(A).*$/$12/", NAME, "A2"),
    ("RULE:^CN=(A).*$/$01/", NAME, "A"),
    ("RULE:^CN=(A).*$/$0/", NAME, NAME),
    ("RULE:^CN=(?P<first>A).*$/${first}/", NAME, "A"),
    ("RULE:^CN=(A).*$/\\$1\\\\/", NAME, "$1\\"),
    ("RULE:^CN=a\\/b$/x\\/y/", "CN=a/b", "x/y"),
    ("RULE:^CN=a,O=b$/comma/", "CN=a,O=b", "comma"),
    ("RULE:^CN=(.*)$/$1/L", "CN=ÄÖ", "äö"),
]
"""Rules, a name, and what Apache Kafka 4.3.1 makes of it."""

NOT_MAPPED = [
    ("", NAME),
    (",", NAME),
    ("RULE:Alice/x/", NAME),
    ("RULE:cn=.*/x/", NAME),
    ("RULE:^CN=(.*?),.*$/$1/", "CN=a\nb,O=x"),
    ("RULE:^CN=(.*?),.*$/$1/", "CN=a\rb,O=x"),
    ("RULE:^CN=(.*?),.*$/$1/", "CN=a\u2028b,O=x"),
]

MALFORMED = [
    "default",
    "DEFAULTX",
    "DEFAULT;DEFAULT",
    "foo,DEFAULT",
    "RULE:a",
    "RULE:a/b",
    "RULE:a/b/X",
    "RULE:a/b/LU",
    "RULE:a/b/ L",
    "RULE:a/b/L/DEFAULT",
    "RULE://x/",
    "RULE:(/",
    "RULE:(/x/",
    "RULE:[/x/",
]
"""Refused by Apache Kafka 4.3.1, too."""


@pytest.mark.parametrize(("rules", "name", "mapped"), MAPPED)
def test_the_first_rule_that_matches_all_of_a_name_maps_it(rules: str, name: str, mapped: str) -> None:
    assert PrincipalMapper(rules).name(name) == mapped


@pytest.mark.parametrize(("rules", "name"), NOT_MAPPED)
def test_a_name_without_a_rule_is_nobodys(rules: str, name: str) -> None:
    with pytest.raises(NoRuleMatches, match="No rules apply to"):
        PrincipalMapper(rules).name(name)


@pytest.mark.parametrize("rules", MALFORMED)
def test_malformed_rules_are_named_with_their_key(rules: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^Invalid rule .* in configuration a\.key: "):
        PrincipalMapper(f"RULE:^CN=x$/x/,{rules}", key="a.key")


@pytest.mark.parametrize("pattern", ["CN=(?=a).*", "CN=(?<!a).*", "(CN)=\\1", "CN=a*+"])
def test_a_pattern_beyond_re2_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match="no look-around, back references or possessive repeats"):
        PrincipalMapper(f"RULE:{pattern}/x/")


@pytest.mark.parametrize("replacement", ["$1", "$", "x$y", "${name}"])
def test_a_replacement_that_would_fail_with_each_client_is_refused(replacement: str) -> None:
    with pytest.raises(ConfigurationError, match="group"):
        PrincipalMapper(f"RULE:CN=.*/{replacement}/")


def test_a_pattern_that_is_found_everywhere_in_a_long_name_ends_soon() -> None:
    mapper = PrincipalMapper("RULE:a|.*b/x/")
    with pytest.raises(NoRuleMatches):
        mapper.name("a" * 8000 + "b")
