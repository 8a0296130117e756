"""Client quotas (KIP-546)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+", listeners="broker"):
    """The request finds quotas by a filter on their entities."""

    components: list[ComponentData] = field("[]struct")
    strict: bool = field("bool")


class ComponentData(Struct):
    entity_type: str = field("string")
    match_type: int = field("int8")
    match: str | None = field("string", nullable="0+")


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    """Entities with their quotas."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    entries: list[DescribeClientQuotasResponseEntryData] | None = field("[]struct", nullable="0+")


class DescribeClientQuotasResponseEntryData(Struct):
    entity: list[EntityData] = field("[]struct")
    values: list[ValueData] = field("[]struct")


class EntityData(Struct):
    entity_type: str = field("string")
    entity_name: str | None = field("string", nullable="0+")


class ValueData(Struct):
    key: str = field("string")
    value: float = field("float64")


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+", listeners="broker controller"):
    """The request sets and removes quotas of entities."""

    entries: list[AlterClientQuotasRequestEntryData] = field("[]struct")
    validate_only: bool = field("bool")


class AlterClientQuotasRequestEntryData(Struct):
    entity: list[EntityData] = field("[]struct")
    ops: list[OpData] = field("[]struct")


class OpData(Struct):
    key: str = field("string")
    value: float = field("float64")
    remove: bool = field("bool")


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    """The outcome for each entity."""

    throttle_time_ms: int = field("int32")
    entries: list[AlterClientQuotasResponseEntryData] = field("[]struct")


class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    entity: list[EntityData] = field("[]struct")
