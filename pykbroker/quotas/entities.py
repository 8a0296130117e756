"""A quota holds for an entity: a user, a client id, both, or an address; each of them by name or as the default.

Kafka's counterparts are `ClientQuotaEntity` and `QuotaConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

ClientQuotaEntity: TypeAlias = frozenset[tuple[str, str | None]]
"""Types with names; None names the default of its type."""

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

USER_AND_CLIENT_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        PRODUCER_BYTE_RATE: "long",
        CONSUMER_BYTE_RATE: "long",
        REQUEST_PERCENTAGE: "double",
        CONTROLLER_MUTATION_RATE: "double",
    }
)
IP_KEYS: Final[Mapping[str, str]] = MappingProxyType({CONNECTION_CREATION_RATE: "int"})
"""The keys of a quota with their types, by what it holds for."""


def ordered(entity: ClientQuotaEntity) -> list[tuple[str, str | None]]:
    """The parts of an entity in an order that does not depend on chance: that of their types."""
    return sorted(entity, key=_type_of)


def _type_of(part: tuple[str, str | None]) -> str:
    return part[0]
