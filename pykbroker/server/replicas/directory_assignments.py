"""Assignments of replicas to log directories, which the controller is told where the metadata say otherwise.

Many at a time, again until the controller has taken it. Kafka's counterpart is `AssignmentsManager` (KIP-858).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import trio

from pykbroker.client.errors import code_of
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    AssignReplicasToDirsResponse,
)
from pykbroker.protocol.uuids import uuid_to_text

from ..quorum.controller_channel import ControllerChannel
from ..runtime.signal import Signal

_log = logging.getLogger(__name__)

_RETRY_S = 0.5
_MOST_AT_ONCE = 2000

Replica = tuple[bytes, int]
"""Topic id and partition."""


class DirectoryAssignments:
    def __init__(self, controller: ControllerChannel, image: Callable[[], MetadataImage], node_id: int) -> None:
        self._controller = controller
        self._image = image
        self._node_id = node_id
        self._wanted: dict[Replica, bytes] = {}
        self._news = Signal()
        self._told: dict[Replica, trio.Event] = {}

    def note(self, topic_id: bytes, index: int, directory_id: bytes) -> None:
        """The replica lies there; the latest word counts."""
        self._wanted[topic_id, index] = directory_id
        self._news.set()

    async def assign(self, topic_id: bytes, index: int, directory_id: bytes) -> None:
        """Return when the controller has committed it, or has refused it for good: the replica is not ours."""
        told = self._told.setdefault((topic_id, index), trio.Event())
        self.note(topic_id, index, directory_id)
        await told.wait()

    async def run(self) -> None:
        """Send assignments until the task is cancelled; the broker is registered before."""
        while True:
            await self._news.wait()
            while self._wanted:
                batch = dict(list(self._wanted.items())[:_MOST_AT_ONCE])
                if not await self._tell(batch):
                    await trio.sleep(_RETRY_S)
                    continue
                for replica, directory_id in batch.items():
                    if self._wanted.get(replica) == directory_id:
                        del self._wanted[replica]
                        told = self._told.pop(replica, None)
                        if told is not None:
                            told.set()

    async def _tell(self, batch: Mapping[Replica, bytes]) -> bool:
        broker = self._image().brokers.get(self._node_id)
        response: AssignReplicasToDirsResponse = await self._controller.submit(
            AssignReplicasToDirsRequest(
                broker_id=self._node_id,
                broker_epoch=-1 if broker is None else broker.epoch,
                directories=_by_directory(batch),
            )
        )
        if response.error_code:
            error = code_of(response.error_code).name
            _log.warning("the controller does not assign replicas to log directories, and is asked again: %s", error)
            return False
        for directory in response.directories:
            for topic in directory.topics:
                for each in topic.partitions:
                    if each.error_code:
                        error = code_of(each.error_code).name
                        at = (each.partition_index, uuid_to_text(topic.topic_id))
                        _log.info("partition %d of topic id %s is not assigned to a log directory: %s", *at, error)
        return True


def _by_directory(batch: Mapping[Replica, bytes]) -> list[AssignReplicasToDirsRequestDirectoryData]:
    directories: dict[bytes, dict[bytes, list[AssignReplicasToDirsRequestPartitionData]]] = {}
    for (topic_id, index), directory_id in batch.items():
        partitions = directories.setdefault(directory_id, {}).setdefault(topic_id, [])
        partitions.append(AssignReplicasToDirsRequestPartitionData(partition_index=index))
    return [
        AssignReplicasToDirsRequestDirectoryData(
            id=directory_id,
            topics=[
                AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )
        for directory_id, topics in directories.items()
    ]
