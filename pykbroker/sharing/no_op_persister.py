"""A persister that keeps nothing: `group.share.persister.class.name` is empty, or names Kafka's `NoOpStatePersister`.

Every share partition begins anew with each of its leaders. It is for tests and for those who need no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .persister import Initialization, Outcome, PartitionState, Reading, SharePartitionKey, Writing

DEFAULT_CLASS_NAME: Final = "org.apache.kafka.server.share.persister.DefaultStatePersister"
CLASS_NAMES: Final = ("", "org.apache.kafka.server.share.persister.NoOpStatePersister")


class NoOpPersister:
    """A `Persister` to which everything is done, and nothing known."""

    async def initialize(self, initializations: Sequence[Initialization]) -> list[Outcome]:
        return [Outcome(each.key) for each in initializations]

    async def read(self, readings: Sequence[Reading]) -> list[PartitionState]:
        return [PartitionState(each.key) for each in readings]

    async def write(self, writings: Sequence[Writing]) -> list[Outcome]:
        return [Outcome(each.key) for each in writings]

    async def delete(self, keys: Sequence[SharePartitionKey]) -> list[Outcome]:
        return [Outcome(key) for key in keys]

    async def read_summary(self, readings: Sequence[Reading]) -> list[PartitionState]:
        return [PartitionState(each.key, leader_epoch=0) for each in readings]
