"""Users, clients and addresses as entities of configurations: quotas, and SCRAM credentials of users.

The model is Kafka's `ConfigCommand`. Its flags name an entity; an empty name is the default of its type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from pykbroker.client.quotas import ANY_NAME, EntityQuotas, alter_quotas, describe_quotas
from pykbroker.client.scram_users import delete_scram_credential, describe_scram_users, set_scram_password
from pykbroker.quotas.entities import CLIENT_ID, IP, IP_KEYS, USER, USER_AND_CLIENT_KEYS, ClientQuotaEntity, ordered
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .command import CommandFailed
from .entries import Value, print_json
from .java_double import java_double
from .output import Column, print_table, stdout_is_terminal
from .printable import printable
from .scram_password import ScramPassword, parse_scram_password
from .suggestions import did_you_mean

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

QUOTA_TYPES: Final = {"users": USER, "clients": CLIENT_ID, "ips": IP}
"""The types of entities that quotas are for, by the names that they have in flags."""

_SINGULAR: Final = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
_KEYS: Final = {USER: USER_AND_CLIENT_KEYS, CLIENT_ID: USER_AND_CLIENT_KEYS, IP: IP_KEYS}
_MOST_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class ClientEntity:
    """An entity that flags name.

    names: by type, such as `{"user": "alice", "client-id": ""}`, in the order of the flags; an empty one is the
    default, None is any.
    """

    names: Mapping[str, str | None]

    @property
    def is_user(self) -> bool:
        return list(self.names) == [USER]

    @property
    def is_whole(self) -> bool:
        """Tell whether each type has a name, so that the entity can be altered."""
        return None not in self.names.values()

    @property
    def quota_entity(self) -> ClientQuotaEntity:
        return frozenset((type_, name or None) for type_, name in self.names.items())

    @property
    def quota_filter(self) -> dict[str, object]:
        return {type_: ANY_NAME if name is None else name or None for type_, name in self.names.items()}

    def __str__(self) -> str:
        """The words of Kafka's tool, which names the first type alone."""
        type_, name = next(iter(self.names.items()))
        singular = type_.removesuffix("-id")
        return f"config for {singular} {name}" if name else f"default config for {singular}s in the cluster"


def entity_of(types: Iterable[str], names: Iterable[str]) -> ClientEntity:
    """The entity of `--entity-type` and `--entity-name` flags, in their order. Raises CommandFailed."""
    left = list(names)
    found: dict[str, str | None] = {}
    for type_ in types:
        if type_ in found:
            raise CommandFailed("Duplicate entity type(s) specified")
        found[type_] = left.pop(0) if left else None
    if left:
        raise CommandFailed("--entity-name is given more often than --entity-type")
    if len(found) > 1 and IP in found:
        raise CommandFailed("Only 'users' and 'clients' entity types may be specified together")
    return ClientEntity(found)


@dataclass(frozen=True, slots=True)
class ClientChange:
    """A change of quotas, or of a user's SCRAM credentials: the two are never in one change."""

    entity: ClientEntity
    quotas: Mapping[str, float]
    removed_quotas: tuple[str, ...]
    passwords: Mapping[str, ScramPassword]
    removed_mechanisms: tuple[str, ...]


def change_of(entity: ClientEntity, to_set: Mapping[str, str], to_delete: Iterable[str]) -> ClientChange:
    """Read the values that are to be set. Raises CommandFailed; no text of it has a password."""
    if not entity.is_whole:
        raise CommandFailed("--alter needs the name, or the default, of each entity type")
    to_delete = tuple(to_delete)
    _check_keys(entity, (*to_set, *to_delete))
    change = ClientChange(
        entity,
        {key: _quota(key, value) for key, value in to_set.items() if key not in MECHANISMS},
        tuple(key for key in to_delete if key not in MECHANISMS),
        {key: parse_scram_password(key, value) for key, value in to_set.items() if key in MECHANISMS},
        tuple(key for key in to_delete if key in MECHANISMS),
    )
    of_scram, of_quotas = len(change.passwords) + len(change.removed_mechanisms), len(change.quotas)
    if of_scram and (of_quotas or change.removed_quotas):
        raise CommandFailed("Quotas and SCRAM credentials of a user cannot be altered at once")
    if of_scram and not entity.names[USER]:
        raise CommandFailed("There is no default of SCRAM credentials: they need a user's name")
    return change


async def make(cluster: Cluster, change: ClientChange) -> None:
    """A request names a user's credentials once, so that each mechanism has a request of its own."""
    user = change.entity.names.get(USER) or ""
    for mechanism, password in change.passwords.items():
        await set_scram_password(cluster, user, mechanism, password.text, password.iterations)
    for mechanism in change.removed_mechanisms:
        await delete_scram_credential(cluster, user, mechanism)
    if change.quotas or change.removed_quotas:
        await alter_quotas(cluster, change.entity.quota_entity, change.quotas, change.removed_quotas)


async def print_quotas(cluster: Cluster, entity: ClientEntity) -> None:
    """Print the quotas of the entities that have these types, and no other."""
    print_found_quotas(await describe_quotas(cluster, entity.quota_filter, only_these_types=True))


async def print_scram_users(cluster: Cluster, name: str | None) -> None:
    """Print the mechanisms of a user, or of all. Nothing is printed where there is no credential."""
    users = await describe_scram_users(cluster, [] if name is None else [name])
    if stdout_is_terminal():
        rows = [
            [user, mechanism, str(iterations)] for user, own in users.items() for mechanism, iterations in own.items()
        ]
        if rows:
            print_table([Column("User"), Column("Mechanism"), Column("Iterations", right=True)], rows)
        return
    for user, own in users.items():
        texts = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in own.items())
        click.echo(f"SCRAM credential configs for user-principal '{printable(user)}' are {texts}")


def quotas_json(found: Iterable[EntityQuotas]) -> list[Value]:
    """Return entities with their quotas as JSON; the name of a default is null."""
    return [
        {"entity": dict(ordered(each.entity)), "quotas": {key: _number(value) for key, value in each.values.items()}}
        for each in found
    ]


def scram_users_json(users: Mapping[str, Mapping[str, int]]) -> list[Value]:
    """Return users with their mechanisms as JSON."""
    return [
        {
            "user": user,
            "mechanisms": [{"mechanism": name, "iterations": iterations} for name, iterations in own.items()],
        }
        for user, own in users.items()
    ]


def change_json(change: ClientChange) -> Value:
    """Return a change as JSON, in which no password is."""
    entity: dict[str, Value] = dict(ordered(change.entity.quota_entity))
    if change.passwords or change.removed_mechanisms:
        return {"user": entity[USER], "set": list(change.passwords), "deleted": list(change.removed_mechanisms)}
    set_ = {key: _number(value) for key, value in change.quotas.items()}
    return {"entity": entity, "set": set_, "deleted": list(change.removed_quotas)}


def print_change(change: ClientChange, *, as_json: bool) -> None:
    """Print that a change is made."""
    if as_json:
        print_json([change_json(change)])
    else:
        click.echo(f"Completed updating {change.entity}.")


def _number(value: float) -> Value:
    """Return a number that JSON has: it has no infinity, which a broker may answer, and a text says it then."""
    if not math.isfinite(value):
        return java_double(value)
    return int(value) if value.is_integer() else value


def print_found_quotas(found: Iterable[EntityQuotas]) -> None:
    """Print entities with their quotas, a line each, or as a table on a terminal."""
    if stdout_is_terminal():
        rows = [[named(each.entity), key, java_double(value)] for each in found for key, value in each.values.items()]
        if rows:
            print_table([Column("Entity"), Column("Quota"), Column("Value", right=True)], rows)
        return
    for each in found:
        values = ", ".join(f"{key}={java_double(value)}" for key, value in each.values.items())
        click.echo(f"Quota configs for {printable(named(each.entity))} are {values}")


def named(entity: ClientQuotaEntity) -> str:
    """Return an entity as Kafka's tool names it."""
    parts = sorted(entity, key=lambda part: (USER, CLIENT_ID, IP).index(part[0]))
    return ", ".join(
        f"the default {_SINGULAR[type_]}" if name is None else f"{_SINGULAR[type_]} '{name}'" for type_, name in parts
    )


def _check_keys(entity: ClientEntity, keys: Iterable[str]) -> None:
    type_ = next(iter(entity.names))
    known = [*_KEYS[type_], *(MECHANISMS if entity.is_user else ())]
    for key in keys:
        if key not in known:
            hint = did_you_mean(key, known)
            raise CommandFailed(
                f"'{key[:_MOST_CHARACTERS]}' is no config of {type_}s; {', '.join(known)} are{hint and '.'}{hint}"
            )


def _quota(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandFailed(f"Cannot parse quota configuration value for {key}: {text[:_MOST_CHARACTERS]}") from None
