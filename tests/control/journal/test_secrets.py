from __future__ import annotations

import pytest

from pykbroker.control.journal.decoding import request_values, response_values
from pykbroker.control.journal.exchange import Exchange
from pykbroker.control.journal.journal import Journal
from pykbroker.control.journal.secrets import hidden_in_request, hidden_in_response
from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from pykbroker.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from pykbroker.protocol.schema import Message, Struct

from .entries import PEER, new_journal, record

SECRET = b"s3cr3t-" * 4
TEXT = SECRET.decode()
PAIRS: list[tuple[Message, Message]] = [
    (SaslAuthenticateRequest(auth_bytes=SECRET), SaslAuthenticateResponse(auth_bytes=SECRET, error_message=TEXT)),
    (
        AlterUserScramCredentialsRequest(
            upsertions=[ScramCredentialUpsertion(name="alice", salt=SECRET, salted_password=SECRET)]
        ),
        AlterUserScramCredentialsResponse(),
    ),
    (CreateDelegationTokenRequest(), CreateDelegationTokenResponse(token_id="known", hmac=SECRET)),
    (
        DescribeDelegationTokenRequest(),
        DescribeDelegationTokenResponse(tokens=[DescribedDelegationToken(token_id="known", hmac=SECRET)]),
    ),
    (RenewDelegationTokenRequest(hmac=SECRET), RenewDelegationTokenResponse()),
    (ExpireDelegationTokenRequest(hmac=SECRET), ExpireDelegationTokenResponse()),
    (
        AlterConfigsRequest(
            resources=[
                AlterConfigsRequestAlterConfigsResource(
                    resource_type=4,
                    resource_name="1",
                    configs=[AlterConfigsRequestAlterableConfig(name="ssl.keystore.password", value=TEXT)],
                )
            ]
        ),
        AlterConfigsResponse(responses=[AlterConfigsResourceResponse(error_message=f"bad {TEXT}")]),
    ),
    (
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=4,
                    resource_name="1",
                    configs=[
                        IncrementalAlterConfigsRequestAlterableConfig(name="ssl.key.password", value=TEXT),
                        IncrementalAlterConfigsRequestAlterableConfig(name="ssl.key.password", value=None),
                    ],
                )
            ]
        ),
        IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse(error_message=f"bad {TEXT}")]),
    ),
]
NO_NAMES: dict[bytes, str] = {}


def kept(exchange: Exchange) -> bytes:
    return exchange.request + exchange.response


@pytest.mark.parametrize(("request_", "response"), PAIRS, ids=lambda message: type(message).__name__)
def test_a_secret_is_kept_nowhere_and_all_else_can_be_read(request_: Message, response: Message) -> None:
    versions = type(request_).__schema__.stable_versions
    for version in range(versions.low, versions.high + 1):
        exchange = record(new_journal(), request_, response, version)
        assert SECRET not in kept(exchange)
        assert SECRET[:8] not in kept(exchange)
        assert not exchange.is_withheld
        assert not exchange.is_cut
        for values in (request_values(exchange, NO_NAMES), response_values(exchange, NO_NAMES)):
            assert values is not None
            assert "not_shown" not in values
            assert TEXT not in repr(values)


def test_the_message_itself_is_as_it_was() -> None:
    request = SaslAuthenticateRequest(auth_bytes=SECRET)
    record(new_journal(), request, SaslAuthenticateResponse(), 2)
    assert request.auth_bytes == SECRET


def test_configurations_of_topics_are_no_secrets() -> None:
    request = incremental([("retention.ms", "86400000"), ("sasl.jaas.config", TEXT)], resource_type=2)
    values = request_values(record(new_journal(), request, None, 1), NO_NAMES)
    (resource,) = values["resources"]
    assert [(each["name"], each["value"]) for each in resource["configs"]] == [
        ("retention.ms", "86400000"),
        ("sasl.jaas.config", "*" * len(TEXT)),
    ]


@pytest.mark.parametrize("padding", [2_000, 100_000])
def test_a_body_that_is_too_large_to_be_taken_apart_is_withheld(padding: int) -> None:
    configs = [("ssl.key.password", TEXT), *((f"k{number}", TEXT) for number in range(padding))]
    exchange = record(new_journal(), incremental(configs, resource_type=4), None, 1)
    assert SECRET[:8] not in kept(exchange)
    values = request_values(exchange, NO_NAMES)
    assert set(values) == {"not_shown"}


def test_bytes_that_are_no_message_are_withheld() -> None:
    exchange = forged(new_journal(), ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, SECRET)
    assert SECRET[:8] not in kept(exchange)
    assert request_values(exchange, NO_NAMES) == {"not_shown": "it has secrets"}


def test_bytes_behind_a_message_are_hidden() -> None:
    exchange = forged(new_journal(), ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, b"\x01\x00" + SECRET)
    assert SECRET[:8] not in kept(exchange)
    assert exchange.request.endswith(b"\x01\x00" + bytes(len(SECRET)))
    assert request_values(exchange, NO_NAMES) == {"owners": []}


def test_unknown_tagged_fields_are_hidden() -> None:
    request = RenewDelegationTokenRequest(hmac=b"x", unknown_tagged_fields={99: SECRET})
    exchange = record(new_journal(), request, None, 2)
    assert SECRET[:8] not in kept(exchange)
    assert not exchange.is_withheld


SUSPICIOUS = {"hmac", "salt", "salted_password", "auth_bytes", "password", "request_data", "response_data", "secret"}


@pytest.mark.parametrize("api_key", list(ApiKey), ids=lambda key: key.name)
def test_no_api_has_a_field_that_looks_like_a_secret_and_is_not_hidden(api_key: ApiKey) -> None:
    assert suspicious(request_type(api_key)) <= hidden_in_request(api_key)
    assert suspicious(response_type(api_key)) <= hidden_in_response(api_key)


def suspicious(kind: type[Struct]) -> set[str]:
    found: set[str] = set()
    for each in kind.__schema__.fields:
        if each.name in SUSPICIOUS:
            found.add(each.name)
        if each.element == "struct":
            found |= suspicious(each.struct)
    return found


def incremental(configs: list[tuple[str, str]], *, resource_type: int) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=resource_type,
                resource_name="x",
                configs=[
                    IncrementalAlterConfigsRequestAlterableConfig(name=name, value=value) for name, value in configs
                ],
            )
        ]
    )


def forged(journal: Journal, api_key: int, version: int, body: bytes) -> Exchange:
    frame = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + b"\x00" + body
    return journal.begin(PEER, frame, len(frame), "User:ANONYMOUS")


@pytest.mark.parametrize("version", [-1, 99, 32767])
def test_a_version_that_nobody_knows_is_withheld(version: int) -> None:
    exchange = forged(new_journal(), ApiKey.INCREMENTAL_ALTER_CONFIGS, version % 65536, SECRET)
    assert SECRET[:8] not in kept(exchange)
    assert set(request_values(exchange, NO_NAMES)) == {"not_shown"}
