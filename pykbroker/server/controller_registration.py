"""How a controller makes itself known to its cluster (KIP-919); Kafka's counterpart is `ControllerRegistrationManager`.

Every start of the process is a new incarnation and registers anew: listeners, ports and features may have changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.metadata.features import SUPPORTED_FEATURES
from pykbroker.protocol.messages.brokers import ControllerRegistrationRequest, Feature, Listener

from .broker import BoundListener


def controller_registration(
    node_id: int, incarnation_id: bytes, listeners: Sequence[BoundListener]
) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        listeners=[
            Listener(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol_id)
            for each in listeners
        ],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(SUPPORTED_FEATURES.items())
        ],
    )
