"""Partitions learn about the cluster's brokers from the newest metadata (`KRaftMetadataCache`)."""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.metadata.image import MetadataImage


class ImageBrokers:
    """A `replication.isr.Brokers`.

    incarnation: broker id and incarnation id of this process; None where it is known without a registration.
    """

    def __init__(self, image: Callable[[], MetadataImage], incarnation: tuple[int, bytes] | None) -> None:
        self._image = image
        self._unknown_incarnation = incarnation

    def live_epoch(self, broker_id: int) -> int | None:
        broker = self._image().brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def may_join_isr(self, broker_id: int) -> bool:
        broker = self._image().brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def knows_this_process(self) -> bool:
        return self._unknown_incarnation is None

    def find_this_process(self) -> bool:
        """Look for its registration in the image, which is applied as a whole; whether it was found now."""
        if self._unknown_incarnation is None:
            return False
        broker_id, incarnation_id = self._unknown_incarnation
        broker = self._image().brokers.get(broker_id)
        if broker is None or broker.incarnation_id != incarnation_id:
            return False
        self._unknown_incarnation = None
        return True
