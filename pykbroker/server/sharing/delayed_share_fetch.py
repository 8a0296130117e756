"""A ShareFetch hands records out, and waits until there are some; Kafka's `DelayedShareFetch`.

It waits for what changes its share partitions: more in a log, locks that end, states that are loaded, and the end of a
leadership, which is answered at once. When `max_wait_ms` are over, or the client waits for the answer to something else
on the same connection, it hands out what there is. What is read and acquired of one partition is one step, with nothing
in between, so that no two requests get the same records; Kafka has a lock for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.schema import RecordsRegion
from pykbroker.replication.reads import FetchIsolation, FetchPartitionData
from pykbroker.sharing.partition.byte_shares import byte_share
from pykbroker.sharing.partition.share_partition import SharePartition
from pykbroker.sharing.partition.values import Acquired, AcquireMode
from pykbroker.sharing.persister import SharePartitionKey
from pykbroker.storage.files.cached_reads import CachedFile, WouldWait
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.log.log_reads import LogSlice
from pykbroker.storage.segments.verification import NotVerified

from ..network.large_requests import Admission
from ..replicas.delayed_operation import DelayedOperation, WaitingClient
from ..replicas.fetch_waits import FetchWaits
from ..runtime.turns import Turn
from .led_share_partition import LedSharePartition, ShareState
from .share_partitions import SharePartitions
from .shared_reads import AbortedOffsets, SharedRead, read_headers, slice_of

_STEPS_OF_READ: Final = 60
_STEPS_PER_HEADER: Final = 2
_STEPS_OF_LOOK: Final = 3
_NONE: Final = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class ShareFetchParams:
    """A ShareFetch asks this of all its partitions. is_committed: the group reads committed records alone."""

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: AcquireMode
    is_committed: bool


@dataclass(slots=True)
class SharedRecords:
    """One partition's part of the answer. error: why there is none. records: batches that hold what was acquired, and
    more.
    """

    error: ApiError | None = None
    records: RecordsRegion | bytes = b""
    records_size: int = 0
    acquired: Sequence[Acquired] = ()


Answers: TypeAlias = dict[SharePartitionKey, SharedRecords]


class DelayedShareFetch:
    """One request. client: who waits. admission: of a large request."""

    def __init__(
        self,
        shares: SharePartitions,
        params: ShareFetchParams,
        turn: Turn,
        waits: FetchWaits,
        client: WaitingClient,
        admission: Admission | None,
    ) -> None:
        self._shares = shares
        self._params = params
        self._turn = turn
        self._waits = waits
        self._client = client
        self._admission = admission
        self._limits = shares.limits(params.group_id)
        self._isolation = FetchIsolation.TXN_COMMITTED if params.is_committed else FetchIsolation.HIGH_WATERMARK
        self._answers: Answers = {}
        self._records = 0
        self._bytes = 0

    async def answers(self, keys: Sequence[SharePartitionKey]) -> Answers:
        """Return what is handed out of these partitions, in their order, when it is due; and errors of others."""
        params = self._params
        if not keys or params.max_records <= 0 or params.max_bytes <= 0:
            return {}
        self._client_may_go_on()
        found = await self._shares.load(keys, self._turn)
        led = [each for each in found if isinstance(each, LedSharePartition)]
        refused = {key: each for key, each in zip(keys, found, strict=True) if isinstance(each, ApiError)}
        if led:
            await self._wait(led)
        for key, error in refused.items():
            self._answers[key] = SharedRecords(error)
        gave = sum(bool(each.acquired) for each in self._answers.values())
        self._shares.fetched(params.group_id, len(keys), gave)
        return self._answers

    def _client_may_go_on(self) -> None:
        """A large request is in hand no longer: what it holds counts as waiting."""
        if self._admission is not None:
            self._admission.leave()

    async def _wait(self, led: Sequence[LedSharePartition]) -> None:
        changes = ShareChanges(led, timeout_ms=max(self._params.max_wait_ms, 0), client=self._client)
        with self._waits.room(len(led)), changes:
            looked_at: Iterable[LedSharePartition] = led
            sizes: dict[LedSharePartition, int] = {}
            while True:
                is_last = changes.is_over
                await self._look(looked_at, led, sizes, changes, is_last=is_last)
                if self._answers or is_last:
                    break
                looked_at = await changes.next()
        for each in led:
            if each.key not in self._answers and each.state is ShareState.ACTIVE:
                self._answers[each.key] = SharedRecords()
            await self._turn.took()

    async def _look(
        self,
        at: Iterable[LedSharePartition],
        led: Sequence[LedSharePartition],
        sizes: dict[LedSharePartition, int],
        changes: ShareChanges,
        *,
        is_last: bool,
    ) -> None:
        """Hand out what has changed, or all where that is enough together. sizes: of what could be handed out."""
        if self._params.min_bytes <= 1:
            await self._hand_out(at, changes)
            return
        for each in at:
            sizes[each] = await self._readable_bytes(each, len(led))
        if is_last or sum(sizes.values()) >= self._params.min_bytes:
            await self._hand_out(led, changes)

    async def _readable_bytes(self, led: LedSharePartition, partitions: int) -> int:
        """Return how many bytes could be handed out, about; of what ends the wait anyway, all that are wanted."""
        await self._turn.took(_STEPS_OF_LOOK)
        if led.state is ShareState.ENDED:
            return self._params.min_bytes
        share = led.active
        if share is None or not share.can_acquire(self._limits):
            return 0
        most = max(self._params.max_bytes // partitions, 1)
        try:
            data = led.partition.read(share.next_fetch_offset(), most, self._isolation, min_one_batch=True)
        except (NotVerified, CorruptLog, FileError):
            return self._params.min_bytes  # to be seen by who hands out
        return self._params.min_bytes if data.error_code is not _NONE else data.records_size

    async def _hand_out(self, of: Iterable[LedSharePartition], changes: ShareChanges) -> None:
        ready: list[LedSharePartition] = []
        for each in of:
            if self._is_ready(each):
                ready.append(each)
            await self._turn.took(_STEPS_OF_LOOK)
        for number, led in enumerate(ready):
            if self._records >= self._params.max_records:
                return
            most_bytes = byte_share(self._params.max_bytes, len(ready), number)
            answer = await self._read(led, most_bytes, changes)
            if answer is not None:
                self._answers[led.key] = answer
                self._bytes += answer.records_size
                self._records += sum(last - first + 1 for first, last, _ in answer.acquired)

    def _is_ready(self, led: LedSharePartition) -> bool:
        if led.state is ShareState.ENDED:
            return True
        share = led.active
        return share is not None and share.can_acquire(self._limits)

    async def _read(self, led: LedSharePartition, most_bytes: int, changes: ShareChanges) -> SharedRecords | None:
        """Read and acquire; None where there is nothing to hand out."""
        looked = False
        while True:
            await self._turn.took(_STEPS_OF_READ if looked else _STEPS_OF_LOOK)
            if led.state is ShareState.ENDED:
                return SharedRecords(led.error)
            share = led.active
            if share is None or not share.can_acquire(self._limits) or (looked and changes.is_over):
                return None
            looked = True
            partition, offset = led.partition, share.next_fetch_offset()
            try:
                data = partition.read(offset, most_bytes, self._isolation, min_one_batch=not self._bytes)
                read = await self._headers(led, share, offset, data)
            except NotVerified as unverified:
                await self._shares.replicas.verify(partition, unverified.check)
                continue
            except _HasChanged:
                continue
            except CorruptLog as damage:
                self._shares.replicas.quarantine(partition, damage)
                return SharedRecords(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
            except FileError as failure:
                self._shares.replicas.failures.in_log(partition.log, failure)
                return SharedRecords(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
            if data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                if await self._turn.through(share.log_begins_steps(partition.log.log_start_offset)):
                    led.notify()  # others may have looked in between
                    continue
                return None  # the log ends earlier than before: it has to come to where the group is
            if data.error_code is not _NONE:
                return SharedRecords(ApiError(data.error_code))
            if read is None or not read.batches:
                return None
            acquired = self._acquire(led, share, offset, read)
            if acquired:
                assert isinstance(data.records, LogSlice)
                region = slice_of(data.records, read, acquired)
                return SharedRecords(None, region, region.size, acquired)
            if share.next_fetch_offset() == offset:
                return None
            await self._turn.took(_STEPS_PER_HEADER * len(read.batches))

    def _acquire(self, led: LedSharePartition, share: SharePartition, offset: int, read: SharedRead) -> list[Acquired]:
        params = self._params
        acquired = share.acquire(
            params.member_id,
            params.mode,
            params.batch_size,
            params.max_records - self._records,
            offset,
            read.batches,
            self._limits,
            self._shares.clock.monotonic_ms(),
        )
        if acquired:
            self._shares.schedule(led)
        return acquired

    async def _headers(
        self, led: LedSharePartition, share: SharePartition, offset: int, data: FetchPartitionData
    ) -> SharedRead | None:
        """Read the headers of what was read, without a pause unless they are on the disk only.

        Raises `FileError`, and `_HasChanged` where something has changed in a pause.
        """
        region = data.records
        if not isinstance(region, LogSlice) or not region.size:
            return None
        log = led.partition.log
        aborted = AbortedOffsets(log.aborted_transactions_of(offset, region) if self._params.is_committed else ())
        last = max(offset, share.end_offset) + self._limits.max_record_locks
        try:
            return read_headers(CachedFile(region.file), region, offset, last, aborted)
        except WouldWait:
            read = await self._shares.threads.run(read_headers, region.file, region, offset, last, aborted)
        if led.active is not share or share.next_fetch_offset() != offset:
            raise _HasChanged
        return read


class _HasChanged(Exception):
    """The state of the share partition is another one: others have got what was to be handed out, or it has ended."""


class ShareChanges(DelayedOperation):
    """The wait for changes of share partitions, which are watched within the block."""

    __slots__ = ("_changed", "_led")

    def __init__(self, led: Iterable[LedSharePartition], *, timeout_ms: int, client: WaitingClient) -> None:
        super().__init__(timeout_ms, client, client.asked_again)
        self._led = tuple(dict.fromkeys(led))
        self._changed: dict[LedSharePartition, None] = {}

    @property
    def is_over(self) -> bool:
        """Tell whether the time is over."""
        return trio.current_time() >= self._deadline

    def _watch(self) -> None:
        for led in self._led:
            led.watchers[self] = None

    def _unwatch(self) -> None:
        for led in self._led:
            led.watchers.pop(self, None)

    def share_changed(self, led: LedSharePartition) -> None:
        self._changed[led] = None
        self._wake()

    async def next(self) -> list[LedSharePartition]:
        """Return what has changed since the last call, in order of the changes; nothing once the time is over."""
        if not self._changed and not self.is_over:
            await self._wait()
        changed = list(self._changed)
        self._changed.clear()
        return changed
