"""Quotas of clients as records of the metadata log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pykbroker.protocol.messages.metadata_records import ClientQuotaRecord, EntityData
from pykbroker.quotas.entities import ClientQuotaEntity, ordered


def quota_records(entity: ClientQuotaEntity, quotas: Mapping[str, float]) -> Iterator[ClientQuotaRecord]:
    """The records that give an entity its quotas."""
    for key, value in quotas.items():
        yield ClientQuotaRecord(entity=record_entity(entity), key=key, value=value)


def record_entity(entity: ClientQuotaEntity) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in ordered(entity)]
