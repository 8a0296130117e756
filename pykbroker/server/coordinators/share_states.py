"""The state of share groups at the share coordinator, as the group coordinator has it created and deleted (KIP-932).

The group's shard writes down what is about to be done; then it is done here, by the node's persister; and the shard is
told what became of it. The rules are these:

- What is done for one group is done one after the other, so that no initialization passes a deletion. An initialization
  looks again, when its turn has come, whether the group still waits for it.
- Initializations of a group that wait for their turn are put together.
- Whoever goes away while it waits for a deletion leaves the topics in the group's record as deleting. The next one who
  asks has them deleted again, which changes nothing where there is nothing left.
- Where the shard has gone meanwhile, its successor has a record that says what was begun, and begins again. What is
  under way here is given up then, so that it takes nothing away that the successor has created.

Kafka's counterpart is the part of `GroupCoordinatorService` that talks to a `Persister`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from pykbroker.groups.common.requests import (
    AlterShareOffsets,
    BeginShareStateDeletion,
    DeleteGroup,
    EndShareInitialization,
    EndShareStateDeletion,
)
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.sharing.persister import (
    NO_LEADER_EPOCH,
    UNINITIALIZED_START_OFFSET,
    Initialization,
    Outcome,
    PartitionState,
    Persister,
    Reading,
    SharePartitionKey,
)
from pykbroker.state_machine import CoordinatorContext

from ..runtime.log_lines import printable

if TYPE_CHECKING:
    from pykbroker.groups.shard import GroupRequest
    from pykbroker.groups.share.state_changes import ShareAlteration, ShareDeletion, ShareInitialization

_log = logging.getLogger(__name__)

PARTITIONS_AT_ONCE: Final = 500
"""How many share partitions the persister is asked about at a time."""
_BY_ITSELF: Final = CoordinatorContext(api_version=0)


class CoordinatedGroups(Protocol):
    """The groups that this node coordinates: a `GroupCoordinator`."""

    async def submit(self, key: str, request: GroupRequest, context: CoordinatorContext) -> Any:
        """Return the response. Raises ApiError."""
        ...

    def tell_group(self, group_id: str, request: GroupRequest, context: CoordinatorContext) -> None:
        """Submit a request whose answer nobody waits to hear."""
        ...

    def share_partitions_to_initialize(self, group_id: str) -> Mapping[bytes, frozenset[int]]:
        """Return the partitions, by topic id, that a share group waits for to be initialized."""
        ...


@dataclass(slots=True)
class _Turns:
    """The turns of one group. users: who is in its turn, or waits for it: each within its scope."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    users: set[trio.CancelScope] = field(default_factory=set)


@dataclass(slots=True)
class _Wanted:
    """The partitions that a group wants initialized when its turn comes. partitions: by topic id."""

    state_epoch: int
    partitions: dict[bytes, frozenset[int]]


class ShareStates:
    """The states of the share groups that this node coordinates.

    persister: None until the node has one; everybody is told to come again then.
    """

    def __init__(self, groups: CoordinatedGroups) -> None:
        self.persister: Persister | None = None
        self._groups = groups
        self._turns: dict[str, _Turns] = {}
        self._wanted: dict[str, _Wanted] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Initialize what groups want, until the surrounding scope is cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    for group_id in self._wanted:
                        nursery.start_soon(self._initialize, group_id)
                    await trio.sleep_forever()
                finally:
                    self._nursery = None
        finally:
            self._wanted.clear()

    @asynccontextmanager
    async def _turn(self, group_id: str) -> AsyncIterator[None]:
        """Raises ApiError where it is given up."""
        turns = self._turns.setdefault(group_id, _Turns())
        scope = trio.CancelScope()
        turns.users.add(scope)
        try:
            with scope:
                async with turns.lock:
                    yield
        finally:
            turns.users.remove(scope)
            if not turns.users:
                del self._turns[group_id]
        if scope.cancelled_caught:
            raise ApiError(ErrorCode.NOT_COORDINATOR)

    def give_up(self, is_gone: Callable[[str], bool]) -> None:
        """Give up all that is done for groups that are coordinated here no longer."""
        for group_id, turns in self._turns.items():
            if is_gone(group_id):
                for scope in turns.users:
                    scope.cancel()

    # Initialization

    def begin(self, initialization: ShareInitialization) -> None:
        """Begin with an initialization when the group's turn has come."""
        group_id = initialization.group_id
        waiting = self._wanted.get(group_id)
        if waiting is None:
            self._wanted[group_id] = _Wanted(initialization.state_epoch, dict(initialization.topics))
            if self._nursery is not None:
                self._nursery.start_soon(self._initialize, group_id)
            return
        waiting.state_epoch = initialization.state_epoch
        for topic_id, partitions in initialization.topics.items():
            waiting.partitions[topic_id] = waiting.partitions.get(topic_id, frozenset()) | partitions

    async def _initialize(self, group_id: str) -> None:
        try:
            await self._initialize_wanted(group_id)
        except ApiError:  # given up; whoever coordinates the group next asks again
            self._wanted.pop(group_id, None)

    async def _initialize_wanted(self, group_id: str) -> None:
        """Raises ApiError where it is given up."""
        failed: dict[tuple[bytes, int], Outcome] = {}
        async with self._turn(group_id):
            wanted = self._wanted.pop(group_id, None)
            if wanted is None:  # given up before this began
                return
            known = self._groups.share_partitions_to_initialize(group_id)
            partitions = {
                topic_id: each & known[topic_id] for topic_id, each in wanted.partitions.items() if topic_id in known
            }
            starts = (
                (topic_id, index, UNINITIALIZED_START_OFFSET) for topic_id, each in partitions.items() for index in each
            )
            outcomes = await self._initialize_each(group_id, wanted.state_epoch, starts)
            failed = {(each.key.topic_id, each.key.partition): each for each in outcomes if each.error_code}
            for is_done in (True, False):
                topics = _by_topic(each.key for each in outcomes if bool(each.error_code) is not is_done)
                if topics:
                    request = EndShareInitialization(group_id=group_id, topics=topics, is_done=is_done)
                    self._groups.tell_group(group_id, request, _BY_ITSELF)
        if failed:
            first = next(iter(failed.values()))
            words = "group %s: the state of %d share partitions could not be created: %s"
            _log.warning(words, printable(group_id), len(failed), first.error_code.name)

    async def _initialize_each(
        self, group_id: str, state_epoch: int, starts: Iterable[tuple[bytes, int, int]]
    ) -> list[Outcome]:
        """Return the outcomes. starts: topic id, partition and start offset of each."""
        outcomes: list[Outcome] = []
        rest = iter(starts)
        while portion := [
            Initialization(SharePartitionKey(group_id, topic_id, index), state_epoch, offset)
            for topic_id, index, offset in islice(rest, PARTITIONS_AT_ONCE)
        ]:
            if self.persister is None:
                outcomes += [Outcome(each.key, ErrorCode.COORDINATOR_NOT_AVAILABLE) for each in portion]
            else:
                outcomes += await self.persister.initialize(portion)
            await trio.lowlevel.checkpoint()
        return outcomes

    # Requests of administrators

    async def alter(
        self, request: AlterShareOffsets, context: CoordinatorContext
    ) -> tuple[ShareAlteration, list[Outcome]]:
        """Return what the group's shard has found, and what became of each partition. Raises ApiError.

        An administrator is told when the group's record says so, too, and not only the share coordinator.
        """
        group_id = request.group_id
        async with self._turn(group_id):
            begun: ShareAlteration = await self._groups.submit(group_id, request, context)
            starts = (
                (topic_id, index, offset)
                for topic_id, offsets in begun.start_offsets.items()
                for index, offset in offsets.items()
            )
            outcomes = await self._initialize_each(group_id, begun.state_epoch, starts)
            topics = _by_topic(each.key for each in outcomes if not each.error_code)
            if topics:
                ended = EndShareInitialization(group_id=group_id, topics=topics, is_done=True)
                await self._groups.submit(group_id, ended, _BY_ITSELF)
        return begun, outcomes

    async def delete_offsets(
        self, group_id: str, topics: Sequence[str], context: CoordinatorContext
    ) -> tuple[ShareDeletion, Mapping[bytes, ErrorCode]]:
        """Return what the group's shard has found, and by topic id what became of it. Raises ApiError."""
        async with self._turn(group_id):
            request = BeginShareStateDeletion(group_id=group_id, topics=topics)
            begun: ShareDeletion = await self._groups.submit(group_id, request, context)
            errors = await self._delete(group_id, begun.topics)
            gone = [topic_id for topic_id, error_code in errors.items() if not error_code]
            if gone:
                ended = EndShareStateDeletion(group_id=group_id, topic_ids=gone)
                await self._groups.submit(group_id, ended, _BY_ITSELF)
        return begun, errors

    async def delete_group(self, group_id: str, context: CoordinatorContext) -> ErrorCode:
        """Delete a share group with all of its state. Raises ApiError."""
        async with self._turn(group_id):
            request = BeginShareStateDeletion(group_id=group_id, topics=None)
            begun: ShareDeletion = await self._groups.submit(group_id, request, context)
            if begun.error_code:
                return begun.error_code
            errors = await self._delete(group_id, begun.topics)
            for error_code in filter(None, errors.values()):
                return error_code
            deleted: ErrorCode = await self._groups.submit(group_id, DeleteGroup(group_id=group_id), context)
            return deleted

    async def _delete(self, group_id: str, topics: Mapping[bytes, Collection[int]]) -> dict[bytes, ErrorCode]:
        """Delete the state of the partitions, and return by topic id what was wrong."""
        errors = dict.fromkeys(topics, ErrorCode.NONE)
        rest = (SharePartitionKey(group_id, topic_id, index) for topic_id, each in topics.items() for index in each)
        while portion := list(islice(rest, PARTITIONS_AT_ONCE)):
            outcomes = [Outcome(key, ErrorCode.COORDINATOR_NOT_AVAILABLE) for key in portion]
            if self.persister is not None:
                outcomes = await self.persister.delete(portion)
            for outcome in outcomes:
                if outcome.error_code:
                    errors[outcome.key.topic_id] = outcome.error_code
            await trio.lowlevel.checkpoint()
        return errors

    async def read_summaries(self, keys: Iterable[SharePartitionKey]) -> list[PartitionState]:
        """Return the states without batches, in the order of the keys."""
        states: list[PartitionState] = []
        rest = iter(keys)
        while portion := list(islice(rest, PARTITIONS_AT_ONCE)):
            if self.persister is None:
                states += [PartitionState(key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE) for key in portion]
            else:
                states += await self.persister.read_summary([Reading(key, NO_LEADER_EPOCH) for key in portion])
            await trio.lowlevel.checkpoint()
        return states


def _by_topic(keys: Iterable[SharePartitionKey]) -> dict[bytes, frozenset[int]]:
    topics: dict[bytes, set[int]] = {}
    for key in keys:
        topics.setdefault(key.topic_id, set()).add(key.partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
