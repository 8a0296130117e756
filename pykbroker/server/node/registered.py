"""Facts that brokers and controllers both register of themselves (KIP-631, KIP-919)."""

from __future__ import annotations

from collections.abc import Iterable

from pykbroker.metadata.features import REGISTERED_FEATURES
from pykbroker.protocol.messages.brokers import Feature, Listener

from .bound_listeners import BoundListener


def registered_listeners(listeners: Iterable[BoundListener]) -> list[Listener]:
    return [
        Listener(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol_id)
        for each in listeners
    ]


def registered_features() -> list[Feature]:
    return [
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in sorted(REGISTERED_FEATURES.items())
    ]
