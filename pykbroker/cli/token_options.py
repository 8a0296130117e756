"""The flags of `pykbroker tokens`, and which of them go together."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from pathlib import Path

from .acl_options import check_principal
from .command import CommandFailed, exactly_one, reject

Principal = tuple[str, str]
"""A principal's type and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOptions:
    """A field per flag. token_id: whose HMAC is looked up, in place of `--hmac`."""

    bootstrap_server: str
    command_config: Path | None
    create: bool = False
    renew: bool = False
    expire: bool = False
    describe: bool = False
    owner_principals: tuple[str, ...] = ()
    renewer_principals: tuple[str, ...] = ()
    max_life_time_period: int | None = None
    renew_time_period: int | None = None
    expiry_time_period: int | None = None
    hmac: str | None = None
    token_id: str | None = None
    as_json: bool = False
    yes: bool = False

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
    check_principals(options, one_owner=action == "--create")
    return action


def check_principals(options: TokenOptions, *, one_owner: bool) -> None:
    """Raises CommandFailed where a principal is none, or a new token would have several owners."""
    if one_owner and len(options.owners) > 1:
        raise CommandFailed("A token has one --owner-principal")
    _ = options.owners, options.renewers


def check_token(options: TokenOptions) -> None:
    """Raises CommandFailed unless one token is named: by its id, or by its HMAC."""
    if (options.token_id is None) == (options.hmac is None):
        raise CommandFailed("Say which token: its id or --hmac, and not both")
    _ = options.hmac_bytes
