"""The rules of groups see the topics of the newest metadata through this view."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat

from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.partition_state import PartitionState


class ImageTopics:
    """The topics are a `pykbroker.groups.common.topics.TopicsView`. image: gives the newest."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    @property
    def version(self) -> int:
        return self._image().offset

    @property
    def names(self) -> Iterable[str]:
        return self._image().topics

    def topic_id(self, name: str) -> bytes | None:
        topic = self._image().topic(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._image().topic_by_id(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, topic_id: bytes) -> int:
        topic = self._image().topic_by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def replica_racks(self, topic_id: bytes) -> Iterable[tuple[str, ...]]:
        """Return the racks of each partition's replicas without a call for each partition: there may be very many."""
        image = self._image()
        topic = image.topic_by_id(topic_id)
        if topic is None:
            return ()
        if all(broker.rack is None for broker in image.brokers.values()):
            return repeat((), len(topic.partitions))
        states = map(topic.partitions.get, range(len(topic.partitions)))
        return map(_KnownRacks(self._racks_of).__getitem__, map(_replicas_of, states))

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset(self._racks_of(self._replicas(topic_id, partition)))

    def _replicas(self, topic_id: bytes, partition: int) -> tuple[int, ...]:
        topic = self._image().topic_by_id(topic_id)
        return () if topic is None else _replicas_of(topic.partitions.get(partition))

    def _racks_of(self, replicas: tuple[int, ...]) -> tuple[str, ...]:
        brokers = [self._image().brokers.get(replica) for replica in replicas]
        return tuple(broker.rack for broker in brokers if broker is not None and broker.rack is not None)

    def as_of_now(self) -> ImageTopics:
        view = self._image().view()
        return ImageTopics(lambda: view)


class _KnownRacks(dict[tuple[int, ...], tuple[str, ...]]):
    """The racks are known by replicas: of many partitions few have some that no other has."""

    def __init__(self, racks_of: Callable[[tuple[int, ...]], tuple[str, ...]]) -> None:
        super().__init__()
        self._racks_of = racks_of

    def __missing__(self, replicas: tuple[int, ...]) -> tuple[str, ...]:
        self[replicas] = racks = self._racks_of(replicas)
        return racks


def _replicas_of(state: PartitionState | None) -> tuple[int, ...]:
    return () if state is None else state.replicas
