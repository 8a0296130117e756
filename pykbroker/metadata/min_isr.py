"""The tie of min.insync.replicas to eligible leader replicas (KIP-966): one value for the whole cluster.

Who is eligible is worked out with a topic's minimum, and every controller must come to the same. So the minimum of all
brokers stands in the metadata as soon as eligible leaders are kept, no broker has one of its own, and when it changes
nobody is eligible any more until the ISR shrinks again. Kafka has this in `ConfigurationControlManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import ClearElrRecord, ConfigRecord, FeatureLevelRecord
from pykbroker.protocol.schema import Message

from .controller_state import ControllerState
from .features import ELR_VERSION
from .image import BROKER_RESOURCE, TOPIC_RESOURCE

MIN_ISR: Final = "min.insync.replicas"


def check(state: ControllerState, records: Iterable[ConfigRecord]) -> None:
    """Raises ApiError."""
    if not state.elr_enabled:
        return
    for record in records:
        if record.resource_type == BROKER_RESOURCE and record.name == MIN_ISR:
            if record.resource_name:
                reason = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
                raise ApiError(ErrorCode.INVALID_CONFIG, reason)
            if record.value is None:
                reason = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
                raise ApiError(ErrorCode.INVALID_CONFIG, reason)


def with_cleared_elr(state: ControllerState, records: Iterable[Message]) -> list[Message]:
    """The same records, and behind them those that forget who was eligible by an earlier minimum."""
    altered = list(records)
    if not state.elr_enabled:
        return altered
    names = [
        each.resource_name if each.resource_type == TOPIC_RESOURCE else ""
        for each in altered
        if isinstance(each, ConfigRecord) and each.name == MIN_ISR
    ]
    return [*altered, *(ClearElrRecord(topic_name=name) for name in names)]


def when_enabled(state: ControllerState, records: Sequence[Message]) -> list[Message]:
    """The records that go with others by which eligible leaders are kept from now on."""
    if not any(
        isinstance(each, FeatureLevelRecord) and each.name == ELR_VERSION and each.feature_level for each in records
    ):
        return []
    added: list[Message] = []
    if MIN_ISR not in state.image.configs.get((BROKER_RESOURCE, ""), {}):
        added.append(_record("", state.config.text(MIN_ISR)))
    for (resource_type, name), configs in sorted(state.image.configs.items()):
        if resource_type == BROKER_RESOURCE and name and MIN_ISR in configs:
            added.append(_record(name, None))
    return added


def _record(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_ISR, value=value)
