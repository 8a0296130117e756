"""The quota that applies to a client: Kafka's precedence of eight entities, and how they are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pykbroker.quotas.entities import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuotaEntity,
    ordered,
)
from pykbroker.server.runtime.log_lines import printable

from .wording import client

KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
UNITS: Final = {
    PRODUCER_BYTE_RATE: "bytes a second",
    CONSUMER_BYTE_RATE: "bytes a second",
    REQUEST_PERCENTAGE: "percent of the broker's thread",
    CONTROLLER_MUTATION_RATE: "partitions a second",
}


def precedence(user: str, client_id: str) -> list[ClientQuotaEntity]:
    """Return the entities whose quota may apply, the one that wins first (`quotas.limits`)."""
    entities: list[ClientQuotaEntity] = []
    if client_id:
        entities += [frozenset({(USER, user), (CLIENT_ID, client_id)}), frozenset({(USER, user), (CLIENT_ID, None)})]
    entities.append(frozenset({(USER, user)}))
    if client_id:
        entities += [frozenset({(USER, None), (CLIENT_ID, client_id)}), frozenset({(USER, None), (CLIENT_ID, None)})]
    entities.append(frozenset({(USER, None)}))
    if client_id:
        entities += [frozenset({(CLIENT_ID, client_id)}), frozenset({(CLIENT_ID, None)})]
    return entities


def name_of(entity: ClientQuotaEntity) -> str:
    """Return such as "user alice, the default client-id"."""
    parts = sorted(ordered(entity), key=lambda part: part[0] != USER)
    return ", ".join(f"the default {kind}" if name is None else f"{kind} {printable(name)}" for kind, name in parts)


def client_name(user: str, client_id: str) -> str:
    """Return such as "client app of user alice"."""
    named = client(client_id, "")
    return f"{named} of user {printable(user)}" if user else named


def winning(
    quotas: Mapping[ClientQuotaEntity, Mapping[str, float]], key: str, user: str, client_id: str
) -> tuple[ClientQuotaEntity, float, tuple[str, ...]] | None:
    """Return the entity whose quota applies, its limit, and those that it comes before; None where there is none."""
    found = [(entity, quotas[entity][key]) for entity in precedence(user, client_id) if key in quotas.get(entity, {})]
    if not found:
        return None
    (entity, limit), *others = found
    return entity, limit, tuple(f"{name_of(each)} with {value:g}" for each, value in others)
