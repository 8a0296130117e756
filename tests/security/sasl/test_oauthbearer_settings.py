"""Settings of tokens: each wrong combination names its key, and nothing is open where it is meant to be shut."""

from __future__ import annotations

import pytest

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.unserved_keys import unserved
from pykbroker.security.java_options import options_of_process
from pykbroker.security.sasl.node_settings import between_brokers, check_sasl, sasl_settings, to_controllers
from pykbroker.security.sasl.oauthbearer.login_settings import EndpointLogin, FileLogin
from pykbroker.security.sasl.oauthbearer.unsecured import UnsecuredValidator
from pykbroker.security.sasl.oauthbearer.unsecured_login import UnsecuredLogin
from pykbroker.security.sasl.oauthbearer.validator_settings import SecuredTokens
from pykbroker.security.sasl.process_options import ProcessOptions

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
PREFIX = "listener.name.sasl_ssl.oauthbearer."
HANDLER = f"{PREFIX}sasl.server.callback.handler.class"
LOGIN = f"{PREFIX}sasl.login.callback.handler.class"
JAAS = f"{PREFIX}sasl.jaas.config"
URL = "https://issuer.example.org/keys"
TOKENS = "https://issuer.example.org/token"
ALLOWED = ProcessOptions(
    frozenset({URL, TOKENS, "file:///keys.json", "file:///token", "http://issuer.example.org/keys"})
)
BASE = {
    "listeners": "SASL_SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
    "security.inter.broker.protocol": "SASL_SSL",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    JAAS: f'{MODULE} unsecuredLoginStringClaim_sub="admin";',
}
SIGNED = {
    "sasl.oauthbearer.jwks.endpoint.url": URL,
    "sasl.oauthbearer.expected.audience": "kafka, other",
    "sasl.oauthbearer.expected.issuer": "https://issuer.example.org",
}
FETCHED = {
    JAAS: f'{MODULE} clientId="broker" clientSecret="hunter2" scope="a b" extension_traceId="hunter2";',
    "sasl.oauthbearer.token.endpoint.url": TOKENS,
}


def config(*changes: dict[str, str | None]) -> BrokerConfig:
    merged: dict[str, str | None] = dict(BASE)
    for each in changes:
        merged |= each
    return BrokerConfig({key: value for key, value in merged.items() if value is not None})


def rules(*changes: dict[str, str | None]) -> UnsecuredValidator | SecuredTokens | None:
    given = config(*changes)
    check_sasl(given, ALLOWED)
    return sasl_settings(given, "SASL_SSL").mechanisms[0].tokens


def test_unsecured_tokens_are_taken_where_nothing_is_said() -> None:
    assert rules() == UnsecuredValidator()
    explicit = f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    line = f'{MODULE} unsecuredLoginStringClaim_sub="admin" unsecuredValidatorRequiredScope="a";'
    assert rules({HANDLER: explicit, JAAS: line}) == UnsecuredValidator(required_scope=("a",))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {HANDLER: f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"},
        {"sasl.oauthbearer.jwt.validator.class": f"{PACKAGE}.BrokerJwtValidator"},
    ],
)
def test_an_address_of_keys_is_enough_for_signatures_to_be_checked(asked: dict[str, str]) -> None:
    found = rules(SIGNED, asked)
    assert isinstance(found, SecuredTokens)
    assert (found.jwks.url, found.jwks.refresh_ms, found.jwks.backoff_ms, found.jwks.backoff_max_ms) == (
        URL,
        3_600_000,
        100,
        10_000,
    )
    expected = found.expected
    assert (expected.audience, expected.issuer) == (("kafka", "other"), "https://issuer.example.org")
    assert (expected.clock_skew_s, expected.scope_claim, expected.principal_claim) == (30, "scope", "sub")


def test_keys_of_a_mechanism_win_over_those_of_a_listener_and_of_all() -> None:
    found = rules(
        SIGNED,
        {
            f"{PREFIX}sasl.oauthbearer.expected.issuer": "own",
            "listener.name.sasl_ssl.sasl.oauthbearer.expected.issuer": "of the listener",
            "listener.name.sasl_ssl.sasl.oauthbearer.clock.skew.seconds": "5",
            "sasl.oauthbearer.clock.skew.seconds": "7",
            "sasl.oauthbearer.sub.claim.name": " user ",
            "sasl.oauthbearer.jwks.endpoint.url": None,
            f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url": "file:///keys.json",
        },
    )
    assert isinstance(found, SecuredTokens)
    assert (found.expected.issuer, found.expected.clock_skew_s, found.expected.principal_claim) == ("own", 5, "user")
    assert found.jwks.name == f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url"


def test_issuer_and_audience_are_given_up_by_name() -> None:
    found = rules(
        {
            "sasl.oauthbearer.jwks.endpoint.url": URL,
            "sasl.oauthbearer.allow.unverified.audience": "true",
            f"{PREFIX}sasl.oauthbearer.allow.unverified.issuer": "true",
        }
    )
    assert isinstance(found, SecuredTokens)
    assert (found.expected.audience, found.expected.issuer) == (None, None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({HANDLER: "org.example.Handler"}, (HANDLER, "org.example.Handler", "are allowed")),
        ({HANDLER: f"{PACKAGE}.secured.OAuthBearerValidatorCallbackHandler"}, (HANDLER, "since Kafka 4.0 its name is")),
        ({HANDLER: f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"}, ("jwks.endpoint.url is missing", HANDLER)),
        (
            {"sasl.oauthbearer.jwt.validator.class": f"{PACKAGE}.BrokerJwtValidator"},
            ("jwks.endpoint.url is missing", "sasl.oauthbearer.jwt.validator.class"),
        ),
        ({"sasl.oauthbearer.jwt.validator.class": "org.example.V"}, ("jwt.validator.class", "BrokerJwtValidator are")),
        (
            {"sasl.oauthbearer.jwt.validator.class": f"{PACKAGE}.ClientJwtValidator", **SIGNED},
            ("jwt.validator.class", "BrokerJwtValidator are allowed"),
        ),
        (
            {HANDLER: f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler", **SIGNED},
            (HANDLER, "looks at no signature"),
        ),
        ({"sasl.oauthbearer.expected.audience": "kafka"}, ("expected.audience", "jwks.endpoint.url")),
        ({"sasl.oauthbearer.expected.issuer": "me"}, ("expected.issuer", "jwks.endpoint.url")),
        ({**SIGNED, "sasl.oauthbearer.expected.audience": None}, ("expected.audience is missing", "allow.unverified")),
        (
            {**SIGNED, "sasl.oauthbearer.expected.issuer": " "},
            ("expected.issuer is missing", "allow.unverified.issuer"),
        ),
        (
            {**SIGNED, "sasl.oauthbearer.allow.unverified.issuer": "yes"},
            ("allow.unverified.issuer", "either true or false"),
        ),
        ({**SIGNED, "sasl.oauthbearer.clock.skew.seconds": "-1"}, ("clock.skew.seconds", "-1", "at least 0")),
        ({**SIGNED, "sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"}, ("refresh.ms", "at least 1")),
        ({**SIGNED, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "-1"}, ("retry.backoff.ms", "at least 0")),
        ({**SIGNED, "sasl.oauthbearer.sub.claim.name": " "}, ("sub.claim.name", "blank")),
        (
            {**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "http://issuer.example.org/keys"},
            ("jwks.endpoint.url", "http hides nothing", "https://HOST"),
        ),
        ({**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "ftp://issuer/keys"}, ("ftp://issuer/keys", "https://HOST")),
        ({**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "https:///keys"}, ("https:///keys", "are allowed")),
        (
            {**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "https://issuer:x/keys"},
            ("https://issuer:x/keys", "address"),
        ),
        ({**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "https://a:hunter2@issuer/"}, ("no user",)),
        ({**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "file://elsewhere/keys"}, ("a file no host",)),
        (
            {**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": "https://elsewhere.example.org/keys"},
            ("jwks.endpoint.url", "elsewhere", "KAFKA_OPTS", "org.apache.kafka.sasl.oauthbearer.allowed.urls"),
        ),
        (
            {**SIGNED, JAAS: f'{MODULE} unsecuredLoginStringClaim_sub="a" unsecuredValidatorRequiredScope="a";'},
            (JAAS, "unsecuredValidatorRequiredScope", "without a signature alone"),
        ),
        (
            {JAAS: f'{MODULE} unsecuredValidatorAllowableClockSkewMs="x";'},
            (JAAS, "AllowableClockSkewMs", "milliseconds"),
        ),
        (
            {**SIGNED, JAAS: f'{MODULE} ssl.truststore.location="/x" ssl.truststore.type="ZIP";'},
            (f"{JAAS}: ssl.truststore.type", "ZIP"),
        ),
        ({LOGIN: "org.example.Handler"}, (LOGIN, "org.example.Handler", "are allowed")),
        ({LOGIN: f"{PACKAGE}.OAuthBearerLoginCallbackHandler"}, ("token.endpoint.url is missing",)),
        (
            {**FETCHED, LOGIN: f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"},
            (LOGIN, "asks for no token"),
        ),
        ({**FETCHED, JAAS: f"{MODULE};"}, ("client.credentials.client.id is missing", "clientId")),
        ({**FETCHED, JAAS: f"{MODULE} clientId=a;"}, ("client.credentials.client.secret is missing", "clientSecret")),
        (
            {**FETCHED, "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever"},
            ("jwt.retriever.class", "jwt-bearer is not served"),
        ),
        (
            {**FETCHED, "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.FileJwtRetriever"},
            ("jwt.retriever.class", "takes file"),
        ),
        (
            {**FETCHED, "sasl.oauthbearer.token.endpoint.url": "https://elsewhere/"},
            ("token.endpoint.url", "KAFKA_OPTS"),
        ),
        ({**FETCHED, "sasl.login.connect.timeout.ms": "0"}, ("connect.timeout.ms", "at least 1")),
        ({**FETCHED, "sasl.login.retry.backoff.ms": "-5"}, ("sasl.login.retry.backoff.ms", "at least 0")),
        (
            {**FETCHED, JAAS: f"{MODULE} clientId=a clientSecret=hunter2 extension_a1=b;"},
            (JAAS, "extension_a1", "name of letters"),
        ),
        ({JAAS: f"{MODULE} unsecuredLoginExtension_a=b;"}, (JAAS, "says no principal")),
        ({JAAS: f"{MODULE} unsecuredLoginLifetimeSeconds=5;"}, (JAAS, "principal must be given")),
        ({JAAS: "org.apache.kafka.common.security.plain.PlainLoginModule required;"}, (JAAS, "OAuthBearerLoginModule")),
        ({JAAS: None}, (f"{JAAS} is missing", "OAuthBearerLoginModule")),
    ],
)
def test_a_wrong_combination_is_one_line(changes: dict[str, str | None], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_sasl(config(changes), ALLOWED)
    line = str(refused.value)
    assert [each for each in words if each.lower() not in line.lower()] == []
    assert "\n" not in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "name",
    [
        "sasl.server.callback.handler.class",
        "sasl.login.callback.handler.class",
        "listener.name.sasl_ssl.sasl.server.callback.handler.class",
        "listener.name.sasl_ssl.plain.sasl.server.callback.handler.class",
        "listener.name.sasl_ssl.scram-sha-256.sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.client.callback.handler.class",
        "sasl.oauthbearer.assertion.file",
    ],
)
def test_what_no_mechanism_reads_ends_the_start(name: str) -> None:
    """Kafka reads handlers for one mechanism of one listener, too, and ignores what stands elsewhere."""
    assert unserved({name: "org.example.Handler"}) == [name]


def test_what_is_read_at_the_start_does_not_change_at_run_time() -> None:
    for name in (HANDLER, LOGIN, *SIGNED, "sasl.oauthbearer.allow.unverified.issuer"):
        assert unserved({name: "true"}, at_run_time=True) == [name]


def test_a_node_has_its_token_from_its_own_claims() -> None:
    own = between_brokers(config())
    assert own is not None
    login = own.token_login()
    assert isinstance(login.source, UnsecuredLogin)
    assert login.source.claims == {"sub": "admin"}
    assert to_controllers(config()) is None


def test_a_node_that_asks_no_other_needs_no_token() -> None:
    own = between_brokers(config(SIGNED, {JAAS: f"{MODULE};"}))
    assert own is not None
    with pytest.raises(ConfigurationError, match="says nothing of a token"):
        own.token_login()


def test_a_node_has_its_token_from_a_file_or_an_endpoint() -> None:
    by_file = between_brokers(config({JAAS: f"{MODULE};", "sasl.oauthbearer.token.endpoint.url": "file:///a%20token"}))
    assert by_file is not None
    assert by_file.token_login().source == FileLogin("/a token")
    given = config(FETCHED, {"sasl.oauthbearer.scope": "c", "sasl.login.read.timeout.ms": "500"})
    check_sasl(given, ALLOWED)
    by_endpoint = between_brokers(given)
    assert by_endpoint is not None
    login = by_endpoint.token_login()
    assert isinstance(login.source, EndpointLogin)
    source = login.source
    assert (source.url, source.client_id, source.client_secret, source.scope) == (TOKENS, "broker", "hunter2", "c")
    assert (source.connect_timeout_ms, source.read_timeout_ms, source.backoff_ms) == (None, 500, 100)
    assert login.extensions == {"traceId": "hunter2"}
    assert "hunter2" not in repr(source)


@pytest.mark.parametrize(
    ("options", "urls"),
    [
        ("", set()),
        ("-Xmx1G -Dother=https://a", set()),
        ("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a,https://b", {"https://a", "https://b"}),
        (
            "'-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a, file:///b c' -Da=b",
            {"https://a", "file:///b c"},
        ),
        (
            "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a "
            "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://b",
            {"https://b"},
        ),
        ("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=", set()),
    ],
)
def test_the_environment_says_which_addresses_are_allowed(options: str, urls: set[str]) -> None:
    assert options_of_process(options).allowed_urls == urls


def test_options_with_a_quote_that_does_not_end_are_said() -> None:
    with pytest.raises(ConfigurationError, match="KAFKA_OPTS"):
        options_of_process("-Da='b")
