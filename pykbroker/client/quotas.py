"""Quotas of clients and addresses (KIP-546): describe and alter. Raises KafkaError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pykbroker.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    OpData,
)
from pykbroker.quotas.entities import ClientQuotaEntity, ordered

from .errors import check

if TYPE_CHECKING:
    from .cluster import Cluster

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2

ANY_NAME: Final = object()
"""In a filter: each entity that has this type, its default too."""


@dataclass(frozen=True, slots=True)
class EntityQuotas:
    """The quotas of one entity, by their keys."""

    entity: ClientQuotaEntity
    values: Mapping[str, float]


async def describe_quotas(
    cluster: Cluster, wanted: Mapping[str, object], *, only_these_types: bool
) -> list[EntityQuotas]:
    """The entities that the filter finds, in the order of their names, defaults last.

    wanted: for each type a name, None for the default, or ANY_NAME. only_these_types: an entity that has another type
    besides is left out.
    """
    return quotas_of(await ask_quotas(cluster, wanted, only_these_types=only_these_types))


async def ask_quotas(
    cluster: Cluster, wanted: Mapping[str, object], *, only_these_types: bool
) -> DescribeClientQuotasResponse:
    """Return the answer of which `quotas_of` makes what `describe_quotas` returns."""
    request = DescribeClientQuotasRequest(
        components=[_component(type_, name) for type_, name in wanted.items()], strict=only_these_types
    )
    return await cluster.request(
        request, DescribeClientQuotasResponse, verify=lambda answer: check(answer.error_code, answer.error_message)
    )


def quotas_of(response: DescribeClientQuotasResponse) -> list[EntityQuotas]:
    """Return the entities of an answer. A thread is the place for this where there may be many."""
    found = [
        EntityQuotas(
            frozenset((part.entity_type, part.entity_name) for part in entry.entity),
            {value.key: value.value for value in sorted(entry.values, key=lambda value: value.key)},
        )
        for entry in response.entries or ()
    ]
    return sorted(found, key=_order)


async def alter_quotas(
    cluster: Cluster, entity: ClientQuotaEntity, to_set: Mapping[str, float], to_remove: Iterable[str]
) -> None:
    """Set and remove quotas of one entity; its others stay."""
    ops = [OpData(key=key, value=value) for key, value in to_set.items()]
    ops += [OpData(key=key, remove=True) for key in to_remove]
    parts = [EntityData(entity_type=type_, entity_name=name) for type_, name in ordered(entity)]
    request = AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=parts, ops=ops)])
    await cluster.request(request, AlterClientQuotasResponse, verify=_check_altered)


def _component(type_: str, name: object) -> ComponentData:
    if name is ANY_NAME:
        return ComponentData(entity_type=type_, match_type=_ANY, match=None)
    if name is None:
        return ComponentData(entity_type=type_, match_type=_DEFAULT, match=None)
    return ComponentData(entity_type=type_, match_type=_EXACT, match=str(name))


def _order(found: EntityQuotas) -> list[tuple[str, bool, str]]:
    return [(type_, name is None, name or "") for type_, name in ordered(found.entity)]


def _check_altered(response: AlterClientQuotasResponse) -> None:
    for entry in response.entries:
        check(entry.error_code, entry.error_message)
