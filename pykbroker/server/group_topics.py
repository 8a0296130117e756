"""The topics of the newest metadata, as the rules of groups want to see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pykbroker.metadata.image import MetadataImage


class ImageTopics:
    """A `pykbroker.groups.topics.TopicsView`. image: gives the newest."""

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

    def replica_racks(self, topic_id: bytes) -> Iterator[tuple[str, ...]]:
        """Of many partitions few have replicas that no other has."""
        known: dict[tuple[int, ...], tuple[str, ...]] = {}
        for index in range(self.partition_count(topic_id)):
            replicas = self._replicas(topic_id, index)
            if replicas not in known:
                known[replicas] = self._racks_of(replicas)
            yield known[replicas]

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset(self._racks_of(self._replicas(topic_id, partition)))

    def _replicas(self, topic_id: bytes, partition: int) -> tuple[int, ...]:
        topic = self._image().topic_by_id(topic_id)
        state = None if topic is None else topic.partitions.get(partition)
        return () if state is None else state.replicas

    def _racks_of(self, replicas: tuple[int, ...]) -> tuple[str, ...]:
        brokers = [self._image().brokers.get(replica) for replica in replicas]
        return tuple(broker.rack for broker in brokers if broker is not None and broker.rack is not None)

    def as_of_now(self) -> ImageTopics:
        view = self._image().view()
        return ImageTopics(lambda: view)
