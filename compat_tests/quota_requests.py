"""Quotas by raw requests: they are set, and asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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

from .brokers import Broker
from .waiting import until
from .wire import Wire

Parts = Mapping[str, str | None]
Values = Mapping[str, float | None]
"""New values by key; None takes a quota away."""

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""How a filter matches a part of an entity."""


def entry(parts: Parts, values: Values | Iterable[tuple[str, float | None]]) -> AlterClientQuotasRequestEntryData:
    changes = values.items() if isinstance(values, Mapping) else values
    return AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes],
    )


def alter(
    broker: Broker, *entries: AlterClientQuotasRequestEntryData, version: int = 1, validate_only: bool = False
) -> list[tuple[int, str | None, list[tuple[str, str | None]]]]:
    """Error, its text and the entity of each row; the rows have no order."""
    with Wire(broker.address) as wire:
        answer = wire.call(AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only), version)
    assert isinstance(answer, AlterClientQuotasResponse)
    rows = [(row.error_code, row.error_message, _parts(row.entity)) for row in answer.entries]
    return sorted(rows, key=lambda row: repr(row[2]))


def set_quotas(broker: Broker, parts: Parts, values: Values) -> None:
    """Returns when the broker knows them: Kafka's answers before."""
    rows = alter(broker, entry(parts, values))
    assert [row[0] for row in rows] == [0], rows
    filters = [component(kind, DEFAULT if name is None else EXACT, name) for kind, name in parts.items()]
    wanted = {key: value for key, value in values.items() if value is not None}

    def is_known() -> bool:
        _, _, found = describe(broker, *filters, strict=True)
        known = dict(found[0][1]) if found else {}
        return all(known.get(key) == wanted.get(key) for key in values)

    until(is_known, "the broker knows its quotas")


def component(kind: str, match_type: int, match: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=match_type, match=match)


def describe(
    broker: Broker, *components: ComponentData, strict: bool = False, version: int = 1
) -> tuple[int, str | None, list[tuple[list[tuple[str, str | None]], list[tuple[str, float]]]] | None]:
    """Error, its text, and entities with their quotas; entities and quotas have no order."""
    with Wire(broker.address) as wire:
        answer = wire.call(DescribeClientQuotasRequest(components=list(components), strict=strict), version)
    assert isinstance(answer, DescribeClientQuotasResponse)
    found = None
    if answer.entries is not None:
        found = sorted(
            (
                (_parts(each.entity), sorted((value.key, value.value) for value in each.values))
                for each in answer.entries
            ),
            key=repr,
        )
    return answer.error_code, answer.error_message, found


def _parts(entity: Iterable[EntityData]) -> list[tuple[str, str | None]]:
    return sorted(((each.entity_type, each.entity_name) for each in entity), key=lambda part: part[0])
