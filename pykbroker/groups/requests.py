"""What is asked of a coordinator in parts, besides the requests of the protocol.

One request of a client may concern a hundred thousand groups, or offsets of a group; handlers ask for some at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListGroupsRequest

from .offsets import CommittedOffset
from .pending_offsets import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSomeGroups:
    """Of these groups those that are there and that the request asks for. Answered by a `ListGroupsResponse`."""

    request: ListGroupsRequest
    group_ids: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    """One group of a DeleteGroups request. Answered by an `ErrorCode`, when all of the group is gone."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAllOffsets:
    """Everything that the group has committed. Answered by `AllOffsets`."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1


@dataclass(frozen=True, slots=True)
class AllOffsets:
    """A group's offsets at one time, by topic. pending: where a transaction may be about to replace them."""

    error_code: ErrorCode = ErrorCode.NONE
    topics: Sequence[tuple[str, Mapping[int, CommittedOffset]]] = ()
    pending: Mapping[Place, object] | None = None

    def is_pending(self, topic: str, partition: int) -> bool:
        return self.pending is not None and (topic, partition) in self.pending
