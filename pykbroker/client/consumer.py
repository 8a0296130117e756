"""A consumer of partitions that the caller assigns: positions, fetches, resets. Groups are `group_consumer`.

A `poll` asks every leader once and waits for all of them, so a quiet leader may hold back the records of a busy one for
`max_wait_ms`. Fetches are complete ones, without sessions (KIP-227): the broker remembers nothing of this client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import PartitionData
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import RETRY_BACKOFF_MS, Cluster
from .errors import BadInput, ClientError, KafkaError, code_of
from .fetched import AbortedTransactions, ConsumedRecord, read_batches, records_of
from .fetching import fetch_from
from .metadata import Node
from .offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED, READ_UNCOMMITTED, list_offsets

MAX_WAIT_MS = 500
MAX_BYTES = 50 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
FAILING_TIMEOUT_MS = 30_000
"""How long a partition may answer with retriable errors before the consumer gives up."""


class Consumer:
    """`positions` are the offsets of the records that `poll` gives next."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        isolation_level: int = READ_UNCOMMITTED,
        reset_to: int | None = LATEST_TIMESTAMP,
        resets_to_nearest: bool = False,
        max_wait_ms: int = MAX_WAIT_MS,
        max_bytes: int = MAX_BYTES,
        partition_max_bytes: int = PARTITION_MAX_BYTES,
    ) -> None:
        """An offset that is out of range becomes that of `reset_to`, a timestamp of ListOffsets; None fails.

        resets_to_nearest: to the nearest offset that there is instead, so that nothing is read twice or left out.
        """
        self.positions: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._cluster = cluster
        self._isolation_level = isolation_level
        self._reset_to = reset_to
        self._resets_to_nearest = resets_to_nearest
        self._max_wait_ms = max_wait_ms
        self._max_bytes = max_bytes
        self._partition_max_bytes = partition_max_bytes
        self._ready: deque[ConsumedRecord] = deque()
        self._fetched: dict[TopicPartition, int] = {}
        self._failing_since: dict[TopicPartition, float] = {}

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, from these offsets, and no others."""
        self.positions = dict(offsets)
        self._fetched = dict(offsets)
        self._ready.clear()
        self._failing_since.clear()

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch these no more. Records that were fetched already are still given, unless the caller drops them."""
        for of in partitions:
            self.positions.pop(of, None)
            self._fetched.pop(of, None)
            self._failing_since.pop(of, None)

    async def assign_at(self, timestamps: Mapping[TopicPartition, int]) -> None:
        """Assign partitions from the first records at or after each timestamp, or the end where there are none."""
        self.assign(await self._offsets_at(timestamps))

    async def poll(self, max_records: int | None = None) -> list[ConsumedRecord]:
        """Records in the order of each partition; none after at most `max_wait_ms`. Raises ClientError."""
        if not self._fetched:
            await trio.sleep(self._max_wait_ms / 1000)
        elif not self._ready:
            await self._fetch()
        if max_records is None or max_records >= len(self._ready):
            records = list(self._ready)
            self._ready.clear()
            # Past markers, aborted records and holes as well.
            self.positions = dict(self._fetched)
            return records
        records = [self._ready.popleft() for _ in range(max_records)]
        read_up_to = {(record.topic, record.partition): record.offset for record in records}
        self.positions.update({TopicPartition(*of): offset + 1 for of, offset in read_up_to.items()})
        return records

    async def _offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = await list_offsets(self._cluster, timestamps, isolation_level=self._isolation_level)
        younger = {of: LATEST_TIMESTAMP for of, answer in found.items() if answer.offset < 0}
        ends = await list_offsets(self._cluster, younger, isolation_level=self._isolation_level) if younger else {}
        return {of: ends[of].offset if of in ends else answer.offset for of, answer in found.items()}

    # ---- one round of fetches

    async def _fetch(self) -> None:
        by_leader: dict[Node, list[TopicPartition]] = {}
        failures: dict[TopicPartition, ClientError] = {}
        for of in self._fetched:
            try:
                by_leader.setdefault(await self._cluster.leader(of), []).append(of)
            except ClientError as error:
                failures[of] = error
        async with trio.open_nursery() as nursery:
            for node, partitions in by_leader.items():
                nursery.start_soon(self._fetch_from, node, partitions, failures)
        if failures:
            await self._recover(failures)

    async def _fetch_from(
        self, node: Node, partitions: list[TopicPartition], failures: dict[TopicPartition, ClientError]
    ) -> None:
        """Failures are put aside, so that one leader's do not lose what another one sent."""
        try:
            answers = await self._ask(node, partitions)
        except ClientError as error:
            failures.update(dict.fromkeys(partitions, error))
            return
        for of, answer in answers.items():
            error_code = code_of(answer.error_code)
            try:
                if error_code is not ErrorCode.NONE:
                    raise KafkaError(error_code, f"Partition {of}: {error_code.description}")
                self._take(of, answer)
            except ClientError as error:
                failures[of] = error
            else:
                self._failing_since.pop(of, None)

    async def _ask(self, node: Node, partitions: list[TopicPartition]) -> dict[TopicPartition, PartitionData]:
        found = await fetch_from(
            self._cluster,
            node,
            {of: self._fetched[of] for of in partitions},
            isolation_level=self._isolation_level,
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=self._max_bytes,
            partition_max_bytes=self._partition_max_bytes,
        )
        return {of: data for of, data in found.items() if of in self._fetched}

    def _take(self, of: TopicPartition, answer: PartitionData) -> None:
        self.high_watermarks[of] = answer.high_watermark
        hidden = answer.aborted_transactions or [] if self._isolation_level == READ_COMMITTED else []
        aborted = AbortedTransactions((row.first_offset, row.producer_id) for row in hidden)
        position = self._fetched[of]
        records = answer.records or b""
        assert isinstance(records, (bytes, memoryview)), "what was decoded is in memory"
        try:
            for batch, is_hidden in read_batches(records, aborted):
                if not is_hidden:
                    self._ready.extend(records_of(of, batch, position))
                position = max(position, batch.header.next_offset)
        except InvalidRecords as error:
            raise BadInput(f"Partition {of} has a batch that cannot be read: {error}") from None
        finally:
            self._fetched[of] = position

    async def _recover(self, failures: Mapping[TopicPartition, ClientError]) -> None:
        """New metadata or new offsets for what failed. Raises what no retry can help."""
        now = trio.current_time()
        out_of_range = []
        for of, error in failures.items():
            if isinstance(error, KafkaError) and error.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                out_of_range.append(of)
            elif not error.retriable or now - self._failing_since.setdefault(of, now) > FAILING_TIMEOUT_MS / 1000:
                raise error
        if out_of_range:
            await self._reset(out_of_range)
        if len(out_of_range) < len(failures):
            await trio.sleep(RETRY_BACKOFF_MS / 1000)
            await self._cluster.refresh({of.topic for of in failures})

    async def _reset(self, partitions: list[TopicPartition]) -> None:
        if self._resets_to_nearest:
            offsets = await self._nearest(partitions)
        else:
            offsets = await self._offsets_to_reset_to(partitions)
        self._fetched.update(offsets)
        self.positions.update(offsets)

    async def _nearest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        starts = await self._offsets_at(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))
        ends = await self._offsets_at(dict.fromkeys(partitions, LATEST_TIMESTAMP))
        return {of: max(min(self._fetched[of], ends[of]), starts[of]) for of in partitions}

    async def _offsets_to_reset_to(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if self._reset_to is None:
            of = partitions[0]
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"Partition {of} has no offset {self._fetched[of]}")
        return await self._offsets_at(dict.fromkeys(partitions, self._reset_to))
