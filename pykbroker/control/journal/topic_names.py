"""Topic ids of requests have names, also those of topics that are deleted by the time somebody asks."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Final

from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.server.node.node import Node
from pykbroker.server.quorum.metadata_publisher import MetadataPublisher

MOST_DELETED: Final = 10_000


class TopicNames:
    """The names by id: those of a node's image, and of topics that were deleted, the last `MOST_DELETED`.

    The image outlives its node here, and nothing else of the node does.
    """

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._deleted: dict[bytes, str] = {}
        self._followed: Callable[[], MetadataPublisher | None] = lambda: None

    def follow(self, node: Node | None) -> None:
        """Follow the metadata of a running node from now on. To be called again and again: it costs a look."""
        parts = None if node is None else node.parts
        if parts is not None and (metadata := parts.node.metadata) is not self._followed():
            self._followed = weakref.ref(metadata)
            self._image = metadata.image
            metadata.subscribe(self._apply)

    def get(self, topic_id: bytes) -> str | None:
        """Return a topic's name; None where nobody knows it any more."""
        topic = None if self._image is None else self._image.topic_by_id(topic_id)
        return self._deleted.get(topic_id) if topic is None else topic.name

    def _apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        self._image = image
        for topic_id, topic in changes.deleted_topics.items():
            self._deleted[topic_id] = topic.name
        while len(self._deleted) > MOST_DELETED:
            del self._deleted[next(iter(self._deleted))]
