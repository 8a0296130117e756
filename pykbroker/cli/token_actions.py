"""Actions of `pykbroker tokens`: create, renew, expire, describe."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.delegation_tokens import (
    DelegationToken,
    Principal,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)

from .command import CommandFailed
from .confirmation import confirm, is_settled
from .entries import Field, Value, print_entries, print_json
from .output import Column, print_table
from .suggestions import did_you_mean
from .token_options import TokenOptions

_COLUMNS = (
    Column("TOKENID"),
    Column("HMAC", 30),
    Column("OWNER"),
    Column("REQUESTER"),
    Column("RENEWERS", 25),
    Column("ISSUEDATE"),
    Column("EXPIRYDATE"),
    Column("MAXDATE"),
)
_FIELDS = (
    Field("token_id"),
    Field("owner"),
    Field("requester"),
    Field("renewers"),
    Field("issued"),
    Field("expires"),
    Field("max", "MAX-LIFE"),
)


async def create(cluster: Cluster, options: TokenOptions) -> None:
    """Create a token, and print it with its HMAC, which is secret and not shown again in words."""
    token = await create_token(
        cluster,
        options.renewers,
        max_lifetime_ms=-1 if options.max_life_time_period is None else options.max_life_time_period,
        owner=next(iter(options.owners), None),
    )
    if options.as_json:
        print_json([_json(token, with_hmac=True)])
        return
    click.echo(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


async def renew(cluster: Cluster, options: TokenOptions) -> None:
    """Let a token expire later."""
    hmac = await _hmac(cluster, options)
    expires_ms = await renew_token(cluster, hmac, _period_ms(options.renew_time_period))
    _print_expiry("renew", expires_ms, options)


async def expire(cluster: Cluster, options: TokenOptions) -> None:
    """Let a token expire earlier, or at once; the word asks at a terminal."""
    hmac = await _hmac(cluster, options)
    if options.token_id is not None and not is_settled(yes=options.yes, named=True):
        await confirm("Expire this delegation token", [options.token_id], yes=options.yes, named=True)
    expires_ms = await expire_token(cluster, hmac, _period_ms(options.expiry_time_period))
    _print_expiry("expire", expires_ms, options)


def _print_expiry(operation: str, expires_ms: int, options: TokenOptions) -> None:
    if options.as_json:
        print_json([{"token_id": options.token_id, "expires_ms": expires_ms}])
    else:
        click.echo(f"Completed {operation} operation. New expiry date : {_minute(expires_ms)}")


async def describe(cluster: Cluster, options: TokenOptions) -> None:
    """Print tokens in the columns of Kafka's tool, which have the HMACs; JSON has them not."""
    tokens = await describe_tokens(cluster, options.owners or None)
    if options.as_json:
        print_json([_json(token) for token in tokens])
        return
    click.echo(f"Total number of tokens : {len(tokens)}")
    _print(tokens)


async def list_all(cluster: Cluster, options: TokenOptions) -> None:
    """Print tokens without their HMACs."""
    tokens = await describe_tokens(cluster, options.owners or None)
    if options.as_json:
        print_json([_json(token) for token in tokens])
        return
    rows: list[list[Value]] = [
        [
            token.token_id,
            _text(token.owner),
            _text(token.requester),
            [_text(each) for each in token.renewers],
            _minute(token.issued_ms),
            _minute(token.expires_ms),
            _minute(token.max_ms),
        ]
        for token in tokens
    ]
    print_entries(_FIELDS, rows, as_json=False)


async def _hmac(cluster: Cluster, options: TokenOptions) -> bytes:
    """Return the HMAC that was given, or that of the token with the id. Raises CommandFailed."""
    if options.token_id is None:
        return options.hmac_bytes
    tokens = {token.token_id: token for token in await describe_tokens(cluster)}
    if options.token_id not in tokens:
        hint = did_you_mean(options.token_id, tokens)
        raise CommandFailed(f"There is no token '{options.token_id[:250]}' that you may see.{hint}")
    return tokens[options.token_id].hmac


def _period_ms(given: int | None) -> int:
    return -1 if given is None else given


def _json(token: DelegationToken, *, with_hmac: bool = False) -> Value:
    shown: dict[str, Value] = {"token_id": token.token_id}
    if with_hmac:
        shown["hmac"] = b64encode(token.hmac).decode()
    return shown | {
        "owner": _text(token.owner),
        "requester": _text(token.requester),
        "renewers": [_text(each) for each in token.renewers],
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "max_ms": token.max_ms,
    }


def _print(tokens: Sequence[DelegationToken]) -> None:
    print_table(_COLUMNS, [_cells(token) for token in tokens], apart=True)


def _cells(token: DelegationToken) -> list[str]:
    return [
        token.token_id,
        b64encode(token.hmac).decode(),
        _text(token.owner),
        _text(token.requester),
        f"[{', '.join(map(_text, token.renewers))}]",
        _minute(token.issued_ms),
        _minute(token.expires_ms),
        _minute(token.max_ms),
    ]


def _text(principal: Principal) -> str:
    return ":".join(principal)


def _minute(at_ms: int) -> str:
    """A time of the local clock, as Kafka's tool shows it."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%dT%H:%M")
