"""The controller is asked to change in-sync replicas, in one AlterPartition request at a time.

Kafka's counterpart is `AlterPartitionManager`, which sends all at once. Here a request names some thousand, so that
neither it nor its answer holds the event loop: a broker may come back into many more. What is proposed and what an
answer means is the business of `replication.isr`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from itertools import islice

import trio

from pykbroker.client.errors import code_of
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from pykbroker.replication.isr import CommittedIsr, IsrChange
from pykbroker.replication.partition import Partition

from ..runtime.signal import Signal

logger = logging.getLogger(__name__)

_RETRY_S = 0.05
_MOST_AT_ONCE = 1000
_NAMED = 3

Submit = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]
"""Asks the active controller, however long it takes to find it."""


class IsrChanges:
    """The changes that partitions of this node have proposed and that are not answered.

    Nothing goes out before `run`, which needs to know whom to ask.
    """

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._pending: dict[Partition, IsrChange] = {}
        self._work = Signal()
        self.shrinks = self.expands = 0
        """Changes of in-sync replicas that the controller has made for this node."""

    def propose(self, partition: Partition, change: IsrChange) -> None:
        """Take the place of an earlier change of the same partition, which the metadata have overtaken."""
        self._pending[partition] = change
        self._work.set()

    async def run(self, submit: Submit, broker_epoch: Callable[[], int]) -> None:
        """Send proposals until the task is cancelled. broker_epoch: of this broker's registration."""
        while True:
            await self._work.wait()
            while self._pending:
                sent = dict(islice(self._pending.items(), _MOST_AT_ONCE))
                response = await submit(self._request(sent, broker_epoch()))
                if not self._take(response, sent):
                    await trio.sleep(_RETRY_S)

    def _request(self, changes: dict[Partition, IsrChange], broker_epoch: int) -> AlterPartitionRequest:
        topics: dict[bytes, AlterPartitionRequestTopicData] = {}
        for partition, change in changes.items():
            topic = topics.setdefault(
                partition.topic_id, AlterPartitionRequestTopicData(topic_id=partition.topic_id, partitions=[])
            )
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=change.leader_epoch,
                    partition_epoch=change.partition_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=each, broker_epoch=broker_epoch if each == self._node_id else epoch)
                        for each, epoch in zip(change.isr, change.broker_epochs, strict=True)
                    ],
                )
            )
        return AlterPartitionRequest(broker_id=self._node_id, broker_epoch=broker_epoch, topics=list(topics.values()))

    def _take(self, response: AlterPartitionResponse, sent: dict[Partition, IsrChange]) -> bool:
        """False where something is to be asked for again, behind the others where it alone is refused."""
        if response.error_code:
            error = code_of(response.error_code).name
            logger.warning("the controller changes no in-sync replicas for this broker, and is asked again: %s", error)
            return False
        answers = {
            (bytes(topic.topic_id), each.partition_index): each
            for topic in response.topics
            for each in topic.partitions
        }
        is_done = True
        outcomes = _Outcomes()
        for partition, change in sent.items():
            answer = answers.get((partition.topic_id, partition.index))
            if answer is None or self._answer(partition, change, answer, outcomes):
                is_done = False
                if self._pending.get(partition) is change:
                    self._pending[partition] = self._pending.pop(partition)
            elif self._pending.get(partition) is change:
                del self._pending[partition]
        outcomes.tell()
        return is_done

    def _answer(
        self,
        partition: Partition,
        change: IsrChange,
        answer: AlterPartitionResponsePartitionData,
        outcomes: _Outcomes,
    ) -> bool:
        """Return whether the change is to be asked for again."""
        if answer.error_code:
            error_code = code_of(answer.error_code)
            again = partition.isr_change_answered(change, error_code)
            level = logging.WARNING if again else logging.INFO
            outcomes.note(partition, level, f"{list(change.isr)} refused: {error_code.name}")
            return again
        committed = CommittedIsr(answer.leader_id, answer.leader_epoch, tuple(answer.isr), answer.partition_epoch)
        self.shrinks += bool(change.removed)
        self.expands += bool(change.added)
        outcomes.note(partition, logging.INFO, f"are {answer.isr}, were {[*_before(change)]}")
        return partition.isr_change_answered(change, committed)


class _Outcomes:
    """The log has one line for all partitions with the same answer. A broker may come back into
    thousands of partitions.
    """

    def __init__(self) -> None:
        self._partitions: dict[tuple[int, str], list[Partition]] = {}

    def note(self, partition: Partition, level: int, what: str) -> None:
        self._partitions.setdefault((level, what), []).append(partition)

    def tell(self) -> None:
        for (level, what), partitions in self._partitions.items():
            named = ", ".join(f"{each.topic}-{each.index}" for each in partitions[:_NAMED])
            more = f" and {len(partitions) - _NAMED} others" if len(partitions) > _NAMED else ""
            logger.log(level, "%s%s: in-sync replicas %s", named, more, what)


def _before(change: IsrChange) -> tuple[int, ...]:
    return (*(each for each in change.isr if each not in change.added), *change.removed)
