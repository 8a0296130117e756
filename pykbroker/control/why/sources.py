"""The brokers that are asked: those of one process, which share a metadata log and an event loop."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from pykbroker.groups.shard import GroupShard
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.partition import Partition
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from pykbroker.server.node.broker import Broker

AT_ONCE: Final = 200
"""Entries that are looked at before others have their turn."""


@dataclass(frozen=True, slots=True)
class NoCoordinator:
    """A group's coordinator is none of the sources. reason: a word for programs. words: of a sentence."""

    reason: str
    words: str


class NothingToAsk(ValueError):
    """No broker runs here."""


class Sources:
    """The running brokers. One of them is enough; what only another one knows is said to be unknown."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        if not brokers:
            raise NothingToAsk("no broker runs here that could be asked")
        self.brokers = brokers
        self.decided: dict[Hashable, str] = {}
        """What decides about rights, as far as it was looked for while one question is answered."""

    @property
    def any(self) -> Broker:
        return self.brokers[0]

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that one of them has."""
        return max((broker.image for broker in self.brokers), key=lambda image: image.offset)

    def broker(self, node_id: int) -> Broker | None:
        return next((broker for broker in self.brokers if broker.node_id == node_id), None)

    def leader_id(self, topic: str, index: int) -> int | None:
        """Return who leads the partition, -1 where nobody does; None where there is no such partition."""
        state = self.image.partition(topic, index)
        return None if state is None else state.leader

    def led(self, topic: str, index: int) -> Partition | None:
        """Return the partition at its leader; None where that is not among the sources."""
        leader_id = self.leader_id(topic, index)
        broker = None if leader_id is None else self.broker(leader_id)
        partition = None if broker is None else broker.partitions.get_partition(topic, index)
        return None if isinstance(partition, ErrorCode) or partition is None or not partition.is_leader else partition

    def coordinator_of(self, group_id: str) -> tuple[Broker, GroupShard] | NoCoordinator:
        """Return the coordinator of a group and its shard, or what there is instead."""
        index = self.any.groups.partition_for(group_id)
        if index is None:
            return _none(f"there is no topic {CONSUMER_OFFSETS} yet, so no group has ever had a coordinator")
        leader_id = self.leader_id(CONSUMER_OFFSETS, index)
        if leader_id is None or leader_id < 0:
            return _none(f"{CONSUMER_OFFSETS}-{index} has no leader, so the group has no coordinator now")
        broker = self.broker(leader_id)
        if broker is None:
            return NoCoordinator("coordinated-elsewhere", f"broker {leader_id} coordinates it, and was not asked")
        shard = broker.groups.shard(index)
        if shard is None:
            return _none(f"its coordinator, broker {leader_id}, is reading {CONSUMER_OFFSETS}-{index}")
        return broker, shard


def _none(words: str) -> NoCoordinator:
    return NoCoordinator("no-coordinator", words)


class Turns:
    """Turns let others have the event loop now and then."""

    def __init__(self) -> None:
        self._count = 0

    async def took(self, entries: int = 1) -> None:
        self._count += entries
        if self._count >= AT_ONCE:
            self._count = 0
            await trio.lowlevel.checkpoint()
