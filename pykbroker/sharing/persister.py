"""The persister keeps the state of share partitions, as leaders and the group coordinator see it.

Behind it is the share coordinator of each share partition, on this node or another one. Kafka's counterparts are
`Persister`, `PartitionData` and `PersisterStateBatch` of `org.apache.kafka.server.share.persister`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pykbroker.protocol.errors import ErrorCode

UNINITIALIZED_EPOCH = 0
"""The state epoch of a share partition that the group has not initialized."""
UNINITIALIZED_START_OFFSET = -1
"""The leader finds the offset itself, by `share.auto.offset.reset`."""
UNKNOWN_COUNT = -1
"""`delivery_complete_count` where nobody has said it."""
NO_LEADER_EPOCH = -1
"""The group coordinator reads on behalf of no leader, and fences nobody."""


class SharePartitionKey(NamedTuple):
    """A share partition: one partition of a topic, as one share group consumes it."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """Consecutive offsets with one delivery state and one delivery count.

    first_offset, last_offset: inclusive. delivery_state: 0 available, 2 acknowledged, 3 archiving, 4 archived.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class Initialization(NamedTuple):
    """Give the share partition a new state that begins at `start_offset`, in a state epoch of the group's."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int


class Reading(NamedTuple):
    """Read the share partition's state. leader_epoch: leaders of an earlier epoch cannot write from then on."""

    key: SharePartitionKey
    leader_epoch: int


class Writing(NamedTuple):
    """Change the state of `batches`, and forget what is below `start_offset` (-1 keeps the one there is)."""

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class Outcome(NamedTuple):
    """The outcome of one initialization, writing or deletion."""

    key: SharePartitionKey
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class PartitionState(NamedTuple):
    """The state of a share partition. A reading has no leader epoch and no count, and a summary no batches: the
    protocol does not carry them.
    """

    key: SharePartitionKey
    state_epoch: int = UNINITIALIZED_EPOCH
    leader_epoch: int = NO_LEADER_EPOCH
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class Persister(Protocol):
    """The persister: each method answers for each key that it was asked, in the same order, and raises nothing.

    Errors that pass (a coordinator that loads, moves or is not there yet) are tried again within a bound of attempts
    and time before they are answered. Errors of a state that another leader or initialization has fenced are
    FENCED_LEADER_EPOCH and FENCED_STATE_EPOCH.
    """

    async def initialize(self, initializations: Sequence[Initialization]) -> list[Outcome]: ...

    async def read(self, readings: Sequence[Reading]) -> list[PartitionState]: ...

    async def write(self, writings: Sequence[Writing]) -> list[Outcome]: ...

    async def delete(self, keys: Sequence[SharePartitionKey]) -> list[Outcome]: ...

    async def read_summary(self, readings: Sequence[Reading]) -> list[PartitionState]: ...
