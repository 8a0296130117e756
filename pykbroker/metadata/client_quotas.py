"""Setting quotas of clients (KIP-546): the rules of Kafka's `ClientQuotaControlManager`.

What a quota does is not here (`pykbroker.quotas`), nor who finds out whether the name of a host has an address.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pykbroker.long_work import LongWork, portions
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import ClientQuotaRecord
from pykbroker.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
    OpData,
)
from pykbroker.protocol.schema import Message
from pykbroker.quotas.entities import (
    CLIENT_ID,
    ENTITY_TYPES,
    IP,
    IP_KEYS,
    USER,
    USER_AND_CLIENT_KEYS,
    ClientQuotaEntity,
    ordered,
)

from .client_quota_records import record_entity
from .controller_state import ControllerState

_LARGEST: Final = {"int": 2.0**31 - 1, "long": 2.0**63}
"""As floats have them: the largest long is none."""
_FRACTION: Final = 1e-6
_STEPS_PER_ENTITY: Final = 6
_STEPS_PER_KEY: Final = 3

_NO_QUOTAS: Final[Mapping[str, float]] = {}


def alter_client_quotas(
    state: ControllerState, request: AlterClientQuotasRequest, unknown_hosts: Collection[str]
) -> LongWork[tuple[list[Message], AlterClientQuotasResponse]]:
    """The quotas of an entity change as a whole or not at all.

    An entity that comes again has an error in place of its first result, though that one stands, as in Kafka.
    unknown_hosts: names of hosts in the request that have no address.
    """
    records: list[Message] = []
    errors: dict[ClientQuotaEntity, ApiError | None] = {}
    for entry in request.entries:
        entity = frozenset({each.entity_type: each.entity_name for each in entry.entity}.items())
        error: ApiError | None = None
        if entity in errors or _repeats_a_key(entry):
            error = _invalid(f"Ignoring duplicate entity {_shown(entity)}")
        else:
            try:
                records += _altered(state, entity, entry.ops, unknown_hosts)
            except ApiError as refusal:
                error = refusal
        errors[entity] = error
        yield _STEPS_PER_ENTITY + _STEPS_PER_KEY * len(entry.ops)
    rows = [_row(entity, error) for entity, error in errors.items()]
    return [] if request.validate_only else records, AlterClientQuotasResponse(entries=rows)


def host_names(request: AlterClientQuotasRequest) -> LongWork[list[str]]:
    """The addresses and names of hosts whose quotas a request changes."""
    named: dict[str, None] = {}
    for portion in portions(each for entry in request.entries for each in entry.entity):
        named.update((each.entity_name, None) for each in portion if each.entity_type == IP and each.entity_name)
        yield len(portion) // 4
    return list(named)


def _repeats_a_key(entry: AlterClientQuotasRequestEntryData) -> bool:
    return len({each.key for each in entry.ops}) < len(entry.ops)


def _altered(
    state: ControllerState, entity: ClientQuotaEntity, ops: Sequence[OpData], unknown_hosts: Collection[str]
) -> list[ClientQuotaRecord]:
    """Raises ApiError."""
    _check_names(entity)
    keys = _keys_of(entity, unknown_hosts)
    current = state.image.client_quotas.get(entity, _NO_QUOTAS)
    records = []
    for op in ops:
        if op.remove:
            if op.key in current:
                records.append(ClientQuotaRecord(entity=record_entity(entity), key=op.key, remove=True))
            continue
        _check_value(keys, op.key, op.value)
        if current.get(op.key) != op.value:
            records.append(ClientQuotaRecord(entity=record_entity(entity), key=op.key, value=op.value))
    return records


def _check_names(entity: ClientQuotaEntity) -> None:
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in ordered(entity):
        if kind not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")


def _keys_of(entity: ClientQuotaEntity, unknown_hosts: Collection[str]) -> Mapping[str, str]:
    """The keys that the entity may have, with their types."""
    parts = dict(entity)
    if IP not in parts:
        return USER_AND_CLIENT_KEYS
    if USER in parts or CLIENT_ID in parts:
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    host = parts[IP]
    if host in unknown_hosts:
        raise _invalid(f"{host} is not a valid IP or resolvable host.")
    return IP_KEYS


def _check_value(keys: Mapping[str, str], key: str, value: float) -> None:
    """Kafka takes what is not a number, and throttles nobody by it."""
    type_ = keys.get(key)
    if type_ is None:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0 or math.isnan(value):
        raise _invalid(f"Quota {key} must be greater than 0")
    largest = _LARGEST.get(type_)
    if largest is None:
        return
    if value > largest:
        raise _invalid(f"Proposed value for {key} is too large for {'an INT' if type_ == 'int' else 'a LONG'}.")
    if value % 1.0 > _FRACTION:
        raise _invalid(f"{key} cannot be a fractional value.")


def _row(entity: ClientQuotaEntity, error: ApiError | None) -> AlterClientQuotasResponseEntryData:
    row = AlterClientQuotasResponseEntryData(
        error_message=None,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in ordered(entity)],
    )
    if error is not None:
        row.error_code, row.error_message = error.code, error.message
    return row


def _shown(entity: ClientQuotaEntity) -> str:
    """An entity as Kafka's texts have it."""
    entries = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in ordered(entity))
    return f"ClientQuotaEntity(entries={{{entries}}})"


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)
