"""A coordinator that tells what it has in memory asks first whether it still leads.

A step that writes is answered once its records are replicated: nobody can do that who leads no longer. A read writes
nothing. A coordinator that was cut off, frozen or silenced, and has not heard of its successor yet, would tell offsets
that are older than what its successor has confirmed to others. So behind such a read, and before its answer, one of two
has to say that nobody else led when the read was made:

- every replica that may be elected, all of the maximal ISR: none of them knows a later leader epoch. They are asked
  with OffsetForLeaderEpoch, which Apache Kafka's nodes answer alike. A successor is one of them, and knows of itself.
- the active controller: how far the metadata are committed there, and then this node's own metadata that far, in which
  the partition is led here still. So a replica that has died and is in sync by name keeps no read from being answered,
  nor does a quorum without a leader alone.

A replica that is alone in sync, where `min.insync.replicas` wants no more, has nobody to ask: nobody else can be
elected. What is asked for meanwhile shares the next question. This is the read of Raft that confirms its leader
("ReadIndex"); Apache Kafka's `GroupCoordinatorService` answers without it, and may go back behind what was committed.

Not handled here: a controller that was deposed and has not noticed. It resigns by itself within 1.5 times
`controller.quorum.fetch.timeout.ms`, before its successor can find a broker's session over. Where an in-sync replica
does not answer either, and the successor moves the lead within that time for another reason, a read may miss it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

import trio

from pykbroker.client.errors import ClientError, code_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.replication.partition import Partition

from ..network.inter_broker import BrokerRequests

_PATIENCE_S: Final = 0.2
"""For the replicas, before the controller is asked, too."""
_PURPOSE: Final = "leadership"
_FOLLOWS: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH})
"""What a replica answers that knows of the leader epoch that it is asked for, or of an earlier one alone."""
_DEPOSED: Final = ErrorCode.FENCED_LEADER_EPOCH


class CommittedMetadata(Protocol):
    """The metadata as the active controller has them committed: `quorum.committed_metadata`."""

    async def caught_up(self, timeout_ms: int) -> bool:
        """Have this node read all that is committed now, and tell whether it has in time."""
        ...


class Lead:
    """The lead of a partition that is led here, from when this is made on: before a read."""

    __slots__ = ("leader_epoch", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch

    @property
    def is_over(self) -> bool:
        return not self.partition.has_led_since(self.leader_epoch)

    @property
    def is_unchallenged(self) -> bool:
        """Tell whether nobody else can be elected, as long as it is not over."""
        partition = self.partition
        return partition.in_sync.maximal == (partition.local_id,) and not partition.is_under_min_isr


@dataclass(slots=True)
class _Questions:
    """The questions about one partition, one at a time. answered: the newest one that was; is_confirmed: how."""

    turn: trio.Lock = field(default_factory=trio.Lock)
    begun: int = 0
    answered: int = 0
    is_confirmed: bool = False
    users: int = 0


class Leadership:
    """The leadership of what this node leads, as others see it. timeout_ms: for one answer."""

    def __init__(self, brokers: BrokerRequests, metadata: CommittedMetadata, *, timeout_ms: int) -> None:
        self._brokers = brokers
        self._metadata = metadata
        self._timeout_ms = timeout_ms
        self._questions: dict[Partition, _Questions] = {}

    async def lost(self, leads: Iterable[Lead]) -> set[Partition]:
        """Return the partitions of which nobody may be told what was read here since their leads were made.

        Clients are answered NOT_COORDINATOR then, also where nobody has said anything in time: every client knows what
        to do about it, and Java's older ones give up at COORDINATOR_NOT_AVAILABLE.
        """
        lost: set[Partition] = set()

        async def ask(lead: Lead) -> None:
            if not await self._goes_on(lead):
                lost.add(lead.partition)

        doubtful = []
        for lead in leads:
            if lead.is_over:
                lost.add(lead.partition)
            elif not lead.is_unchallenged:
                doubtful.append(lead)
        if len(doubtful) == 1:
            await ask(doubtful[0])
        elif doubtful:
            async with trio.open_nursery() as nursery:
                for lead in doubtful:
                    nursery.start_soon(ask, lead)
        return lost

    async def _goes_on(self, lead: Lead) -> bool:
        """Ask, or hear what somebody else has asked meanwhile."""
        questions = self._questions.setdefault(lead.partition, _Questions())
        questions.users += 1
        needed = questions.begun + 1  # one that is under way may have been answered before the read
        is_confirmed = False
        try:
            with trio.move_on_after(self._timeout_ms / 1000):
                async with questions.turn:
                    if questions.answered < needed:
                        questions.begun += 1
                        questions.is_confirmed = await self._is_confirmed(lead)
                        questions.answered = questions.begun
                    is_confirmed = questions.is_confirmed
        finally:
            questions.users -= 1
            if not questions.users:
                del self._questions[lead.partition]
        return is_confirmed and not lead.is_over

    async def _is_confirmed(self, lead: Lead) -> bool:
        """Return what was found first, by the replicas or by the controller."""
        found = False
        replicas_do_not_tell = trio.Event()

        async def ask_replicas() -> None:
            nonlocal found
            outcome = await self._by_replicas(lead)
            if outcome is None:
                replicas_do_not_tell.set()
            else:
                found = outcome
                nursery.cancel_scope.cancel()

        async def ask_controller() -> None:
            nonlocal found
            with trio.move_on_after(_PATIENCE_S):
                await replicas_do_not_tell.wait()
            if await self._metadata.caught_up(self._timeout_ms):
                found = not lead.is_over
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_replicas)
            nursery.start_soon(ask_controller)
        return found

    async def _by_replicas(self, lead: Lead) -> bool | None:
        """Return what all replicas that may be elected say together; None where one of them does not tell."""
        partition = lead.partition
        if lead.is_over or partition.is_under_min_isr:  # an eligible leader replica is not in sync by name (KIP-966)
            return None
        answers: list[ErrorCode | None] = []

        async def ask(replica_id: int) -> None:
            answers.append(answer := await self._by_replica(lead, replica_id))
            if answer is _DEPOSED:
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for replica_id in partition.in_sync.maximal:
                if replica_id != partition.local_id:
                    nursery.start_soon(ask, replica_id)
        if _DEPOSED in answers:
            return False
        return True if all(answer in _FOLLOWS for answer in answers) else None

    async def _by_replica(self, lead: Lead, replica_id: int) -> ErrorCode | None:
        partition = lead.partition
        epoch = partition.leader_epoch  # a later one than the lead's, where this node goes on as the leader
        asked = OffsetForLeaderPartition(partition=partition.index, current_leader_epoch=epoch, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(
            replica_id=partition.local_id, topics=[OffsetForLeaderTopic(topic=partition.topic, partitions=[asked])]
        )
        began_s = trio.current_time()
        try:
            response = await self._brokers.request(
                replica_id, request, OffsetForLeaderEpochResponse, purpose=_PURPOSE, timeout_ms=self._timeout_ms
            )
        except ClientError:
            return None
        except trio.Cancelled:
            if trio.current_time() - began_s >= _PATIENCE_S:
                # Perhaps the other end is gone, and no packet tells: the next question has another connection.
                with trio.CancelScope(shield=True):
                    await self._brokers.close(replica_id, _PURPOSE)
            raise
        for topic in response.topics:
            for answer in topic.partitions:
                if (topic.topic, answer.partition) == (partition.topic, partition.index):
                    return code_of(answer.error_code)
        return None
