"""Partitions learn about the cluster's brokers from the newest metadata (`KRaftMetadataCache`)."""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.metadata.image import MetadataImage


class ImageBrokers:
    """A `replication.isr.Brokers`."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def live_epoch(self, broker_id: int) -> int | None:
        broker = self._image().brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def may_join_isr(self, broker_id: int) -> bool:
        broker = self._image().brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown
