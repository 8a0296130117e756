"""The authorizer of a node, as its properties describe it: `authorizer.class.name` and the keys that go with it.

Kafka's `StandardAuthorizer` is the one that is offered, by Kafka's name of it. `super.users` and
`allow.everyone.if.no.acl.found` are keys of that class, and not of Kafka's brokers: without the class nobody reads
them, so that they would protect nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .keys import InvalidValue

CLASS_NAME: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
EARLY_START_LISTENERS: Final = "early.start.listeners"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

OF_THE_AUTHORIZER: Final = (SUPER_USERS, ALLOW_EVERYONE)
"""Keys that only the authorizer knows."""


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """The settings of an authorizer.

    super_users: principals such as "User:admin". early_start_listeners: those that serve before the ACLs are loaded.
    """

    super_users: frozenset[str]
    allows_everyone_without_acls: bool
    early_start_listeners: frozenset[str]


def authorizer_config(
    given: Mapping[str, str], early: Sequence[str] | None, *, listeners: Sequence[str], controllers: Sequence[str]
) -> AuthorizerConfig | None:
    """Return None where there is no authorizer. Raises InvalidValue.

    given: all keys of the node, as text. early: the value of `early.start.listeners`. listeners: the names of all
    listeners; controllers: of the controllers'.
    """
    name = given.get(CLASS_NAME, "").strip()
    if not name:
        _check_unprotected(given)
        return None
    if name != STANDARD_AUTHORIZER:
        raise InvalidValue(CLASS_NAME, name, f"{STANDARD_AUTHORIZER}, or empty for none")
    names = controllers if early is None else [each.strip().upper() for each in early]
    for each in names:
        if early is not None and each not in listeners:
            raise InvalidValue(EARLY_START_LISTENERS, ",".join(early), f"some of the listeners {', '.join(listeners)}")
    return AuthorizerConfig(_super_users(given.get(SUPER_USERS, "")), _allows_everyone(given), frozenset(names))


def _check_unprotected(given: Mapping[str, str]) -> None:
    if given.get(SUPER_USERS, "").strip():
        raise InvalidValue(SUPER_USERS, given[SUPER_USERS], f"not set without {CLASS_NAME}, since it protects nothing")


def _super_users(text: str) -> frozenset[str]:
    principals = frozenset(filter(None, (each.strip() for each in text.split(";"))))
    for each in sorted(principals):
        kind, colon, name = each.partition(":")
        if not (kind and colon and name):
            reason = f"principals with semicolons between them, and '{each}' is not type:name, such as User:admin"
            raise InvalidValue(SUPER_USERS, text, reason)
    return principals


def _allows_everyone(given: Mapping[str, str]) -> bool:
    text = given.get(ALLOW_EVERYONE, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidValue(ALLOW_EVERYONE, given[ALLOW_EVERYONE], "true or false")
    return text == "true"
