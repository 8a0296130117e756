"""The users that a secured broker begins with: an administrator, who may do everything, and an application."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

ADMINISTRATOR = "admin"
APPLICATION = "app"
_PASSWORD_BYTES = 24


@dataclass(frozen=True, slots=True)
class User:
    """A password is of letters, digits, `-` and `_`: it needs no escapes, in whatever file it stands."""

    name: str
    password: str = field(repr=False)


def new_password() -> str:
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def new_users() -> tuple[User, ...]:
    return User(ADMINISTRATOR, new_password()), User(APPLICATION, new_password())
