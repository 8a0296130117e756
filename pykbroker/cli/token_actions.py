"""Actions of `pykbroker tokens`: create, renew, expire, describe."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

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

from .acl_options import check_principal
from .command import CommandFailed, exactly_one, reject
from .output import Column, print_table

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOptions:
    """A field per flag."""

    bootstrap_server: str
    command_config: Path | None
    create: bool
    renew: bool
    expire: bool
    describe: bool
    owner_principals: tuple[str, ...]
    renewer_principals: tuple[str, ...]
    max_life_time_period: int | None
    renew_time_period: int | None
    expiry_time_period: int | None
    hmac: str | None

    @property
    def hmac_bytes(self) -> bytes:
        """The HMAC that was given, as `--create` prints it. Raises CommandFailed."""
        try:
            return b64decode(self.hmac or "", validate=True)
        except Base64Error:
            raise CommandFailed("--hmac is no text in base64") from None

    @property
    def owners(self) -> list[Principal]:
        return [check_principal("--owner-principal", each) for each in self.owner_principals]

    @property
    def renewers(self) -> list[Principal]:
        return [check_principal("--renewer-principal", each) for each in self.renewer_principals]


def action_of(options: TokenOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    action = exactly_one(
        {
            "--create": options.create,
            "--renew": options.renew,
            "--expire": options.expire,
            "--describe": options.describe,
        }
    )
    needed: dict[str, dict[str, object]] = {
        "--create": {"--max-life-time-period": options.max_life_time_period},
        "--renew": {"--renew-time-period": options.renew_time_period},
        "--expire": {"--expiry-time-period": options.expiry_time_period},
    }
    for of_action, flags in needed.items():
        for flag, value in flags.items():
            if of_action == action and value is None:
                raise CommandFailed(f"{action} needs {flag}; -1 is the cluster's own")
            if of_action != action:
                reject({flag: value}, f"can be used with {of_action} only")
    if action in ("--renew", "--expire"):
        if options.hmac is None:
            raise CommandFailed(f"{action} needs --hmac")
        _ = options.hmac_bytes
    else:
        reject({"--hmac": options.hmac}, "can be used with --renew and --expire only")
    if action != "--create":
        reject({"--renewer-principal": options.renewer_principals}, "can be used with --create only")
    if action in ("--renew", "--expire"):
        reject({"--owner-principal": options.owner_principals}, "can be used with --create and --describe only")
    if action == "--create" and len(options.owners) > 1:
        raise CommandFailed("A token has one --owner-principal")
    return action


async def create(cluster: Cluster, options: TokenOptions) -> None:
    assert options.max_life_time_period is not None
    token = await create_token(
        cluster,
        options.renewers,
        max_lifetime_ms=options.max_life_time_period,
        owner=next(iter(options.owners), None),
    )
    click.echo(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


async def renew(cluster: Cluster, options: TokenOptions) -> None:
    assert options.renew_time_period is not None
    expires_ms = await renew_token(cluster, options.hmac_bytes, options.renew_time_period)
    click.echo(f"Completed renew operation. New expiry date : {_minute(expires_ms)}")


async def expire(cluster: Cluster, options: TokenOptions) -> None:
    assert options.expiry_time_period is not None
    expires_ms = await expire_token(cluster, options.hmac_bytes, options.expiry_time_period)
    click.echo(f"Completed expire operation. New expiry date : {_minute(expires_ms)}")


async def describe(cluster: Cluster, options: TokenOptions) -> None:
    tokens = await describe_tokens(cluster, options.owners or None)
    click.echo(f"Total number of tokens : {len(tokens)}")
    _print(tokens)


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
