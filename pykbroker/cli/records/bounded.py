"""A read with an end: each partition has one of its own, and the whole ends with the last of them.

An offset that was the end of a partition when the read began is asked for again while nothing comes: after an unclean
election the partition may be shorter, and nobody should wait for records that are gone. Markers of transactions, holes
that compaction left and aborted records count, because a consumer's position passes them.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio

from pykbroker.client.consumer import Consumer
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.protocol.topic_partition import TopicPartition

from .failing import ASK_AGAIN_AFTER_S, FailingPartitions


class BoundedRead:
    """Polls of a consumer, without the records at or behind `ends`. is_of_now: the partitions had ended there."""

    def __init__(
        self,
        consumer: Consumer,
        ends: Mapping[TopicPartition, int],
        *,
        failing: FailingPartitions,
        is_of_now: bool,
    ) -> None:
        self._failing = failing
        self._consumer = consumer
        self._ends = dict(ends)
        self._is_of_now = is_of_now
        self._starts = dict(consumer.positions)
        self._open = set(consumer.positions)
        self._next_question = trio.current_time() + ASK_AGAIN_AFTER_S
        self.offsets_in_all = sum(max(self._ends[of] - start, 0) for of, start in self._starts.items())
        self._forget_finished()

    @property
    def is_finished(self) -> bool:
        return not self._open

    @property
    def offsets_read(self) -> int:
        """The progress of the read, of `offsets_in_all`."""
        positions = self._consumer.positions
        return sum(
            max(min(positions.get(of, end) if of in self._open else end, end) - self._starts[of], 0)
            for of, end in self._ends.items()
        )

    async def poll(self, max_records: int) -> list[ConsumedRecord]:
        """Raises ClientError, and CommandFailed where a partition fails for too long."""
        records = await self._consumer.poll(max_records)
        if any(position > self._ends[of] for of, position in self._consumer.positions.items()):
            ends = self._ends
            records = [
                record for record in records if record.offset < ends[TopicPartition(record.topic, record.partition)]
            ]
        self._forget_finished()
        if not records and self._open and self._is_of_now and trio.current_time() >= self._next_question:
            await self._ask_again()
        return records

    def _forget_finished(self) -> None:
        finished = [of for of, position in self._consumer.positions.items() if position >= self._ends[of]]
        if finished:
            self._consumer.unassign(finished)
            self._open.difference_update(finished)

    async def _ask_again(self) -> None:
        positions = {of: offset for of, offset in self._consumer.positions.items() if of in self._open}
        found = await self._failing.look(positions)
        self._ends.update({of: min(self._ends[of], end) for of, end in found.items()})
        self._forget_finished()
        self._next_question = trio.current_time() + ASK_AGAIN_AFTER_S
