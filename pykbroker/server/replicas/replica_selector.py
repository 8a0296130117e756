"""`replica.selector.class`: who refers consumers to closer replicas, with the racks of the newest metadata."""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import MetadataImage
from pykbroker.replication.replica_selector import LEADER_SELECTOR, RACK_AWARE_SELECTOR, RackAwareReplicaSelector

from ..runtime.startup_error import StartupError


def replica_selector(config: BrokerConfig, image: Callable[[], MetadataImage]) -> RackAwareReplicaSelector | None:
    """Return None where consumers read from leaders. Raises StartupError for a class that is not known here."""
    name = config.optional_str("replica.selector.class")
    if name in (None, "", LEADER_SELECTOR):
        return None
    if name != RACK_AWARE_SELECTOR:
        raise StartupError(f"replica.selector.class={name} is not known: there is {RACK_AWARE_SELECTOR}")

    def rack_of(broker_id: int) -> str | None:
        broker = image().brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.rack

    return RackAwareReplicaSelector(rack_of)
