"""A partition as a follower of its leader has it: what was asked, and what it waits for (`PartitionFetchState`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pykbroker.protocol.messages.fetch import FetchPartition

from .partition import Partition

PartitionKey: TypeAlias = tuple[bytes, int]
"""Topic id and index."""


class FollowingState(Enum):
    """FETCHING: from the log's end on.

    SEEKING_END, SEEKING_START: the leader has nothing at the log's end; its own end and start are asked for, in this
    order. TRUNCATING: the log is being cut off (`due_truncation`). STOPPED: nothing is asked until the metadata name
    another leader epoch, or the disk was looked after.
    """

    FETCHING = "fetching"
    SEEKING_END = "seeking the leader's end"
    SEEKING_START = "seeking the leader's start"
    TRUNCATING = "truncating"
    STOPPED = "stopped"


@dataclass(slots=True, eq=False)
class FollowedPartition:
    """A partition that follows a leader. asked: what the leader's session has; None where this partition is not in it.

    lag: how much it was behind the leader's high watermark at the last answer; None before the first one.
    refusals: how often in a row the leader did not know yet, or no longer, that it leads.
    """

    partition: Partition
    leader_epoch: int
    state: FollowingState = FollowingState.FETCHING
    delayed_until_ms: int | None = None
    asked: FetchPartition | None = None
    lag: int | None = None
    is_begun: bool = False
    refusals: int = 0

    @property
    def key(self) -> PartitionKey:
        return self.partition.topic_id, self.partition.index

    @property
    def is_ready(self) -> bool:
        return self.state is FollowingState.FETCHING and self.delayed_until_ms is None

    @property
    def is_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0

    @property
    def is_as_it_was_asked(self) -> bool:
        """An answer that comes now is one about this log in this leader epoch."""
        asked = self.asked
        return (
            asked is not None
            and asked.fetch_offset == self.partition.log.log_end_offset
            and asked.current_leader_epoch == self.leader_epoch == self.partition.leader_epoch
        )
