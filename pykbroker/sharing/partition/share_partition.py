"""A share partition: the records of one partition that a share group has in hand (KIP-932, 1191, 1206, 1222).

The model is Kafka's `SharePartition`. Records between `start_offset` and `end_offset` are in flight. In front of the
start everything is settled, behind the end nothing was handed out. Each record in flight is

- AVAILABLE: whoever comes next gets it;
- ACQUIRED by one member, until the member says what became of it or its time is over;
- ARCHIVING, while its dead letter is written: nobody gets the record any more, and it is not settled;
- ACKNOWLEDGED or ARCHIVED: settled for ever. ARCHIVED are records that were rejected or handed out too often, of
  transactions that were aborted, and offsets that have no record.

`acquire` hands records out. `acknowledge` and `release` begin a transition: the records have their new state and
nobody gets them, until `complete` says whether the persister has it. If it has not, they are what they were. `expire`
takes records back whose time is over; the persister is told, and nobody waits for it. `acquire` itself is not
persisted: after a change of leaders such records are handed out again, with the number of deliveries that was persisted
last.

Where the group has dead letters, what is rejected or was handed out too often becomes ARCHIVING in place of ARCHIVED,
in a transition whoever asked for it. A letter is due once that is persisted (`Change.letters`), and so never for a
record that another leader hands out again. `archived` settles it, be the letter written or given up. A leader that
comes later finds ARCHIVING, and writes the letter, perhaps once more (`unwritten_letters`).

What must hold: no record has two holders; what is settled or ARCHIVING, and persisted, is never handed out again; the
start moves over settled records alone, or to where the log begins; `delivery_complete_count` is the number of settled
offsets in flight.

Runs of offsets keep it small (`in_flight`): the work of a call grows with the runs that it concerns, and not with the
records in flight. As each record may be a run of its own, thousands of them, what goes through all of them is there in
steps, too, for turns on the event loop: between two steps others may do anything, and each looks anew at what is there
then. A call of `acquire` takes 500 pieces at most. Times are those of a monotonic clock, in milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from pykbroker.long_work import LongWork, whole
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.sharing.persister import PartitionState

from .in_flight import InFlightBatch, Run
from .values import (
    NOBODY,
    Acknowledgement,
    AcknowledgeType,
    Acquired,
    AcquireMode,
    Change,
    DeadLetterCause,
    DeadLetters,
    FetchedBatch,
    Limits,
    RecordState,
)

_AVAILABLE: Final = RecordState.AVAILABLE
_ACQUIRED: Final = RecordState.ACQUIRED
_ARCHIVING: Final = RecordState.ARCHIVING
_ARCHIVED: Final = RecordState.ARCHIVED
_SPENT: Final = DeadLetterCause.DELIVERY_COUNT_EXCEEDED

_STATE_OF_TYPE: Final = {
    AcknowledgeType.GAP: _ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: _AVAILABLE,
    AcknowledgeType.REJECT: _ARCHIVED,
}
_PERSISTED_STATES: Final = {int(state): state for state in RecordState if state is not _ACQUIRED}
_STEPS_OF_RUN: Final = 8
"""Of about a microsecond."""
_STEPS_OF_LOOK: Final = 1
_OFFSETS_OF_PIECE: Final = 64
"""Of one step; each of them may be a run."""
MOST_ACQUIRED: Final = 500
"""Pieces that one call of `acquire` hands out; Kafka has no such bound."""
_SPARE_DEADLINES: Final = 256
_LETTER_AGAIN_MS: Final = 1000
"""Behind a failed write, until a record is made ARCHIVING once more."""
_MOST_DELIVERIES: Final = (1 << 15) - 1
"""What the protocol and the persister have room for. No limit is as high, but a state that was written may be."""
_ISOLATED_FROM: Final = 3
"""With a limit of two deliveries nobody could tell the last one from the second."""


class _Acquisition(NamedTuple):
    """One call of `acquire`: for whom, how, and until when."""

    member: str
    is_record_limit: bool
    batch_size: int
    limits: Limits
    deadline_ms: int
    fetched: Sequence[FetchedBatch]


class SharePartition:
    """The state of one share partition, in one leader epoch and one state epoch of the group's."""

    def __init__(self, start_offset: int, state_epoch: int = 0) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.state_epoch = state_epoch
        self.delivery_complete_count = 0
        self.batches_begun = 0
        self.offsets_begun = 0
        """How many batches were added since it was loaded, and how many offsets they had together."""
        self._batches: list[InFlightBatch] = []
        self._firsts: list[int] = []
        """The first offset of each batch."""
        self._available_from: int | None = None
        """No record in flight is available below this offset; None where none is at all."""
        self._gap_from: int | None = None
        """The persisted batches have a gap here: records that were never handed out, or that were acquired when the
        last leader went. None once everything up to the end of those batches was looked at."""
        self._gap_end = -1
        self._deadlines: list[tuple[int, int, int]] = []
        """A heap of (time, first offset, last offset); what is stale in it is found when it is due."""
        self._most_deadlines = _SPARE_DEADLINES

    @classmethod
    def load(cls, state: PartitionState, start_offset: int) -> SharePartition:
        """Take over what was persisted. start_offset: the persisted one, or the one that the group begins with.

        Raises ApiError, UNKNOWN_SERVER_ERROR, for batches that make no sense.
        """
        return whole(cls.load_steps(state, start_offset))

    @classmethod
    def load_steps(cls, state: PartitionState, start_offset: int) -> LongWork[SharePartition]:
        """Take over as `load` does, in steps."""
        partition = cls(start_offset, state.state_epoch)
        next_offset, gap = start_offset, None
        for number, (first, last, state_id, delivery_count) in enumerate(state.batches):
            if number % _OFFSETS_OF_PIECE == 0:
                yield _OFFSETS_OF_PIECE
            delivery_state = _PERSISTED_STATES.get(state_id)
            if delivery_state is None or first < next_offset or last < first:
                raise ApiError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Failed to initialize the share partition: batch {first}-{last} in state {state_id}",
                )
            if gap is None and first > next_offset:
                gap = next_offset
            next_offset = last + 1
            partition._add(InFlightBatch(Run(first, last, delivery_state, delivery_count)))
        if partition._batches:
            partition.end_offset = next_offset - 1
            partition.delivery_complete_count = partition._settled(start_offset, partition.end_offset)
            partition._available_from = start_offset
            partition._gap_from, partition._gap_end = gap, partition.end_offset
            partition._move_start()
        return partition

    # What is there

    @property
    def in_flight(self) -> int:
        """Return how many offsets the records in flight reach over."""
        return self.end_offset - self.start_offset + 1 if self._batches else 0

    @property
    def batch_count(self) -> int:
        return len(self._batches)

    def runs(self) -> Iterator[Run]:
        """Iterate over the states of all records in flight."""
        for batch in self._batches:
            yield from batch.runs

    def next_deadline_ms(self) -> int | None:
        """Return when to call `expire`, at the earliest; None where nothing is acquired."""
        return self._deadlines[0][0] if self._deadlines else None

    def next_fetch_offset(self) -> int:
        """Return where to read next: the first record that may be handed out."""
        if not self._batches or self.start_offset > self._batches[-1].last:
            self._available_from = None
            return self.end_offset
        gap = self._open_gap()
        if gap is None and self._available_from is None:
            return self.end_offset + 1
        begin = 0 if gap is not None else max(self._number_of(self._available_from or 0), 0)
        for number in range(begin, len(self._batches)):
            batch = self._batches[number]
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(gap, batch.last + 1)
            for run in batch.runs:
                if run.is_available:
                    self._available_from = run.first
                    return run.first
        self._available_from = None
        return self.end_offset + 1

    def can_acquire(self, limits: Limits) -> bool:
        """Tell whether there may be something to hand out: a record in flight, or room for new ones."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.in_flight < limits.max_record_locks

    # Handing out

    def acquire(
        self,
        member: str,
        mode: AcquireMode,
        batch_size: int,
        max_records: int,
        fetch_offset: int,
        fetched: Sequence[FetchedBatch],
        limits: Limits,
        now_ms: int,
    ) -> list[Acquired]:
        """Give the member what is available of the batches that were read at `fetch_offset`, in order of offsets.

        Up to `max_records`, or in the batch-optimized mode to the end of the record batch in which they end. New
        records come in batches of about `batch_size`. Records of aborted transactions are settled, and not answered.
        """
        if max_records <= 0 or not fetched or fetched[-1].last_offset < self.start_offset:
            return []
        last, most = self._room(fetch_offset, max_records, fetched[-1].last_offset, limits)
        if most <= 0:
            return []
        base = fetched[0].base_offset
        self._archive_stale(fetch_offset, base)
        self._close_gap_before(fetch_offset, base)
        acquisition = _Acquisition(
            member,
            mode is AcquireMode.RECORD_LIMIT,
            max(batch_size, 1),
            limits,
            now_ms + limits.record_lock_duration_ms,
            fetched,
        )
        acquired = self._acquire(acquisition, base, last, most)
        if acquired and any(batch.is_aborted for batch in fetched):
            return self._without_aborted(acquired, fetched)
        return acquired

    def _room(self, fetch_offset: int, max_records: int, last: int, limits: Limits) -> tuple[int, int]:
        """Return up to which offset, and how many records, may be acquired. What is in flight may be in any case."""
        most = min(max_records, limits.max_record_locks - self.in_flight)
        if most > 0 or fetch_offset > self.end_offset:
            return last, most
        return min(last, self.end_offset), min(max_records, self.end_offset - fetch_offset + 1)

    def _acquire(self, acquisition: _Acquisition, base: int, last: int, most: int) -> list[Acquired]:
        floor = self._number_of(base)
        first_read = base
        if floor >= 0 and self._batches[floor].last >= base:
            base = self._batches[floor].first
        else:
            base = max(base, self.start_offset)
        begin = bisect_left(self._firsts, min(first_read, base))
        found = self._batches[begin : bisect_right(self._firsts, last)]
        if not found:
            return self._acquire_new(acquisition, base, last, most)
        acquired: list[Acquired] = []
        count, expected = 0, base
        for batch in found:
            if count >= most:
                break
            if self._open_gap() is not None:
                if expected < batch.first:
                    new = self._acquire_new(acquisition, expected, batch.first - 1, most - count)
                    acquired += new
                    count += _count(new)
                expected = batch.last + 1
                if count >= most:
                    break
            if not batch.is_split and not batch.whole.is_available:
                continue
            if len(acquired) >= MOST_ACQUIRED:
                most = 0
                break
            is_throttled = _is_throttled(batch, first_read, last, acquisition.limits)
            if is_throttled and count:
                most = 0  # they come alone, with the next fetch
                break
            is_whole = batch.lies_within(first_read, last) and not batch.is_split
            if is_whole and not is_throttled and not (acquisition.is_record_limit and _size(batch) > most - count):
                if batch.whole.is_available:
                    acquired.append(self._acquire_run(acquisition, batch.whole))
                    count += _size(batch)
                continue
            if not batch.is_split:
                if not batch.whole.is_available:
                    continue
                batch.is_split = True
            pieces = MOST_ACQUIRED - len(acquired)
            of_batch = self._acquire_part(acquisition, batch, first_read, last, most - count, pieces)
            acquired += of_batch
            count += _count(of_batch)
            if (is_throttled and of_batch) or len(of_batch) >= pieces:
                most = 0
                break
        if count < most and found[-1].last < last:
            acquired += self._acquire_new(acquisition, found[-1].last + 1, last, most - count)
        if acquired:
            self._looked_at_gap_until(acquired[-1].last_offset + 1)
        return acquired

    def _acquire_new(self, acquisition: _Acquisition, first: int, last: int, most: int) -> list[Acquired]:
        """Hand out records that are not in flight, from `first` up to `last`."""
        if not self._batches:
            first = max(first, self.end_offset)
        if first > last:
            return []
        end = last
        if most < last - first + 1:
            end = _end_of_batch_with(acquisition.fetched, first + most - 1)
            if self._open_gap() is not None:
                end = min(end, last)
        if acquisition.is_record_limit:
            acquired = [self._begin_batch(acquisition, first, end, min(end, first + most - 1))]
        else:
            cuts = _cuts(acquisition.fetched, first, end, acquisition.batch_size)
            acquired = [self._begin_batch(acquisition, begin, until, until) for begin, until in cuts]
        if self._firsts[0] == first:
            self._set_start(first)
        self.end_offset = max(self.end_offset, end)
        self._looked_at_gap_until(acquired[-1].last_offset + 1)
        return acquired

    def _begin_batch(self, acquisition: _Acquisition, first: int, last: int, acquired_until: int) -> Acquired:
        """Begin a batch, whose records behind `acquired_until` are available still."""
        run = Run(first, acquired_until, _ACQUIRED, 1, acquisition.member, acquisition.deadline_ms)
        batch = InFlightBatch(run)
        if acquired_until < last:
            batch.runs.append(Run(acquired_until + 1, last, _AVAILABLE, 0))
            batch.last, batch.is_split = last, True
            self._note_available(acquired_until + 1)
        self._add(batch)
        self._note_deadline(acquisition.deadline_ms, first, acquired_until)
        return Acquired(first, acquired_until, 1)

    def _acquire_run(self, acquisition: _Acquisition, run: Run) -> Acquired:
        run.state, run.member, run.deadline_ms = _ACQUIRED, acquisition.member, acquisition.deadline_ms
        run.delivery_count = min(run.delivery_count + 1, _MOST_DELIVERIES)
        self._note_deadline(run.deadline_ms, run.first, run.last)
        return Acquired(run.first, run.last, run.delivery_count)

    def _acquire_part(
        self, acquisition: _Acquisition, batch: InFlightBatch, first: int, last: int, most: int, pieces: int
    ) -> list[Acquired]:
        """Hand out what is available within the offsets, in so many pieces at most.

        A record that has one delivery left comes alone, so that those with it are not lost with it; records that were
        delivered often come in portions of a half, a quarter… of their batch.
        """
        limits = acquisition.limits
        isolates = limits.delivery_count_limit >= _ISOLATED_FROM
        portion = 0
        count = 0
        chosen: list[tuple[int, int]] = []
        for run, begin, until in batch.within(first, last):
            if not run.is_available:
                continue
            if len(chosen) == pieces:
                break
            deliveries = run.delivery_count
            is_last_delivery = isolates and deliveries == limits.delivery_count_limit - 1
            if is_last_delivery and count:
                break
            if deliveries >= limits.throttled_deliveries and not portion:
                portion = max(1, _size(batch) >> (deliveries - limits.throttled_deliveries + 1))
            take = until - begin + 1
            if is_last_delivery:
                take = 1
            if acquisition.is_record_limit:
                take = min(take, most - count)
            if portion > count:
                take = min(take, portion - count)
            chosen.append((begin, begin + take - 1))
            count += take
            if is_last_delivery or (acquisition.is_record_limit and count == most) or (portion and count == portion):
                break
        acquired = [self._acquire_run(acquisition, run) for begin, until in chosen for run in batch.cut(begin, until)]
        if acquired:
            batch.join(acquired[0].first_offset, acquired[-1].last_offset)
        return _joined(acquired)

    def _without_aborted(self, acquired: Iterable[Acquired], fetched: Iterable[FetchedBatch]) -> list[Acquired]:
        aborted = [batch for batch in fetched if batch.is_aborted]
        for first, last, _ in aborted:
            self._archive(first, last, _ACQUIRED)
        self._move_start()
        kept: list[Acquired] = []
        number = 0
        for first, last, delivery_count in acquired:
            while number < len(aborted) and aborted[number].last_offset < first:
                number += 1
            at = number
            while at < len(aborted) and aborted[at].base_offset <= last:
                if aborted[at].base_offset > first:
                    kept.append(Acquired(first, aborted[at].base_offset - 1, delivery_count))
                first = aborted[at].last_offset + 1
                at += 1
            if first <= last:
                kept.append(Acquired(first, last, delivery_count))
        return kept

    def give_back(self, member: str, acquired: Iterable[Acquired]) -> None:
        """Take back what the member was given and will not get: it was not delivered."""
        for first, last, _ in acquired:
            for batch in self._between(first, last):
                if not batch.lies_within(first, last):
                    batch.is_split = True
                for run in batch.cut(first, last):
                    if run.state is _ACQUIRED and run.member == member:
                        run.state, run.member, run.deadline_ms = _AVAILABLE, NOBODY, 0
                        run.delivery_count -= 1
                        self._note_available(run.first)
                batch.join(first, last)

    # What members say

    def acknowledge(
        self, member: str, acknowledgements: Iterable[Acknowledgement], limits: Limits, now_ms: int
    ) -> Change:
        """Take all steps of `acknowledge_steps` at once."""
        return whole(self.acknowledge_steps(member, acknowledgements, limits, now_ms))

    def acknowledge_steps(
        self, member: str, acknowledgements: Iterable[Acknowledgement], limits: Limits, now_ms: int
    ) -> Generator[int, None, Change]:
        """Begin the transitions that a member asks for, and renew its locks; yield how much work was done.

        Return what to persist; false where that is nothing. Raises ApiError where one record is not the member's: all
        is as before then, but for locks that were renewed. It is, too, where the steps are closed before their end.
        """
        change = Change(member, limits.delivery_count_limit, has_dead_letters=limits.has_dead_letters)
        is_whole = False
        try:
            for acknowledgement in acknowledgements:
                if acknowledgement.last_offset >= self.start_offset:
                    yield from self._acknowledge(change, acknowledgement, limits, now_ms)
            is_whole = True
        finally:
            if not is_whole:
                self.complete(change, is_persisted=False, now_ms=now_ms)
        return change

    def _acknowledge(
        self, change: Change, acknowledgement: Acknowledgement, limits: Limits, now_ms: int
    ) -> Iterator[int]:
        first, last, types = acknowledgement
        for batch in self._acknowledged(first, last):
            if batch.last < self.start_offset:
                continue
            if not batch.is_split:
                _check_whole(batch.whole, change.member)
            if not batch.is_split and (
                not batch.lies_within(first, last) or len(types) > 1 or batch.holds_inside(self.start_offset)
            ):
                batch.is_split = True
            if not batch.is_split:
                self._change_runs(change, batch.runs, types[0], limits, now_ms)
                yield _STEPS_OF_RUN
                continue
            yield from self._acknowledge_part(change, batch, acknowledgement, limits, now_ms)

    def _acknowledge_part(
        self, change: Change, batch: InFlightBatch, acknowledgement: Acknowledgement, limits: Limits, now_ms: int
    ) -> Iterator[int]:
        """Look at each record when its turn comes: between two steps others may have done something."""
        first, last, types = acknowledgement
        begin, until = max(first, batch.first), min(last, batch.last)
        for kind, low, high in _same_types(first, types, begin, until):
            low = max(low, self.start_offset)
            if low > high:
                continue
            for run, _, _ in batch.within(low, high):
                _check_part(run, change.member)
            runs = batch.cut(low, high)
            self._change_runs(change, runs, kind, limits, now_ms)
            batch.join(low, high)
            yield _STEPS_OF_RUN * (1 + len(runs))

    def _change_runs(self, change: Change, runs: Iterable[Run], kind: int, limits: Limits, now_ms: int) -> None:
        if kind != AcknowledgeType.RENEW:
            state = _STATE_OF_TYPE[AcknowledgeType(kind)]
            cause = None
            if kind == AcknowledgeType.REJECT and limits.has_dead_letters:
                state, cause = _ARCHIVING, DeadLetterCause.CLIENT_REJECT
            for run in runs:
                self._begin_transition(change, run, state, cause)
            return
        if not limits.renew_enabled:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")
        for run in runs:
            run.deadline_ms = now_ms + limits.record_lock_duration_ms
            self._note_deadline(run.deadline_ms, run.first, run.last)

    def _acknowledged(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that have these offsets. Raises ApiError where not all offsets were handed out."""
        number = self._number_of(first)
        if number < 0 and first < self.start_offset <= last:
            number = self._number_of(self.start_offset)
        if number < 0:
            raise ApiError(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        found = self._batches[number : bisect_right(self._firsts, last)]
        end = found[-1].last
        if end < first or end < last:
            which = "first" if end < first else "last"
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
        return found

    def release(self, member: str, limits: Limits) -> Change:
        """Begin to make everything that the member has acquired available, as it leaves. Return what to persist."""
        return whole(self.release_steps(member, limits))

    def release_steps(self, member: str, limits: Limits) -> LongWork[Change]:
        """Release as `release` does, in steps."""
        change = Change(member, limits.delivery_count_limit, has_dead_letters=limits.has_dead_letters)
        if not self._batches:
            return change
        for batch, low, high in self._pieces(self._firsts[0], self._batches[-1].last):
            self._cut_at_start(batch)
            steps = _STEPS_OF_LOOK
            for run, _, _ in batch.within(low, high):
                steps += _STEPS_OF_LOOK
                if run.state is _ACQUIRED and run.member == member:
                    self._begin_transition(change, run, _ARCHIVED if run.last < self.start_offset else _AVAILABLE)
                    steps += _STEPS_OF_RUN
            if steps > _STEPS_OF_RUN:
                batch.join(low, high)
            yield steps
        return change

    # Transitions

    def _begin_transition(
        self, change: Change, run: Run, state: RecordState, cause: DeadLetterCause | None = None
    ) -> None:
        if state is _AVAILABLE and run.delivery_count >= change.delivery_count_limit:
            state, cause = (_ARCHIVING, _SPENT) if change.has_dead_letters else (_ARCHIVED, None)
        if cause is not None:
            change.add_letters(run.first, run.last, run.delivery_count, cause)
        self._assign(run, state)
        run.change = change
        change.add_range(run.first, run.last)
        change.add(run.first, run.last, state, run.delivery_count)

    def complete(self, change: Change, *, is_persisted: bool, now_ms: int) -> bool:
        """End the transition. Return whether there may be more to hand out now.

        Where it was not persisted the records are acquired again, or free if their time is over meanwhile. What is to
        get a dead letter then is nobody's, and due to `expire` a moment later. The start moves over what is settled in
        any case, be it that too many deliveries settled it just now: nobody else may come to move it.
        """
        return whole(self.complete_steps(change, is_persisted=is_persisted, now_ms=now_ms))

    def complete_steps(self, change: Change, *, is_persisted: bool, now_ms: int) -> LongWork[bool]:
        """End the transition as `complete` does, in steps."""
        freed = yield from self._end_transition(change, is_persisted=is_persisted, now_ms=now_ms)
        return self._move_start() or freed

    def _end_transition(self, change: Change, *, is_persisted: bool, now_ms: int) -> LongWork[bool]:
        freed = False
        for first, last in change.ranges:
            for batch, low, high in self._pieces(first, last):
                self._cut_at_start(batch)
                steps = _STEPS_OF_LOOK
                for run, _, _ in batch.within(low, high):
                    steps += _STEPS_OF_LOOK
                    if run.change is not change:
                        continue
                    steps += _STEPS_OF_RUN
                    run.change = None
                    if is_persisted:
                        run.deadline_ms = 0
                    elif now_ms < run.deadline_ms:
                        self._assign(run, _ACQUIRED)
                        run.member = change.member
                        # Its time may have come meanwhile, when it was nothing to be taken back.
                        self._note_deadline(run.deadline_ms, run.first, run.last)
                    elif run.last < self.start_offset or not self._is_spent(run, change.delivery_count_limit):
                        self._assign(run, _ARCHIVED if run.last < self.start_offset else _AVAILABLE)
                        run.deadline_ms = 0
                    elif change.has_dead_letters:
                        self._assign(run, _ACQUIRED)
                        run.deadline_ms = now_ms + _LETTER_AGAIN_MS
                        self._note_deadline(run.deadline_ms, run.first, run.last)
                    else:
                        self._assign(run, _ARCHIVED)
                        run.deadline_ms = 0
                    if run.state is _AVAILABLE:
                        self._note_available(run.first)
                        freed = True
                batch.join(low, high)
                yield steps
        return freed

    def expire(self, limits: Limits, now_ms: int) -> Change:
        """Take back what is acquired and whose time is over. Return what to persist; no member waits for that."""
        return whole(self.expire_steps(limits, now_ms))

    def expire_steps(self, limits: Limits, now_ms: int) -> LongWork[Change]:
        """Take back as `expire` does, in steps."""
        change = Change(NOBODY, limits.delivery_count_limit, has_dead_letters=limits.has_dead_letters)
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, first, last = heappop(self._deadlines)
            yield _STEPS_OF_LOOK
            for batch, low, high in self._pieces(first, last):
                self._cut_at_start(batch)
                steps = _STEPS_OF_LOOK
                for run, _, _ in batch.within(low, high):
                    steps += _STEPS_OF_LOOK
                    if _is_due(run, now_ms):
                        self._take_back(change, run)
                        steps += _STEPS_OF_RUN
                if steps > _STEPS_OF_RUN:
                    batch.join(low, high)
                yield steps
        return change

    def _take_back(self, change: Change, run: Run) -> None:
        is_passed, is_spent = run.last < self.start_offset, self._is_spent(run, change.delivery_count_limit)
        if is_spent and not is_passed and change.has_dead_letters:
            self._begin_transition(change, run, _AVAILABLE)
            return
        self._assign(run, _ARCHIVED if is_spent or is_passed else _AVAILABLE)
        run.deadline_ms = 0
        if run.state is _AVAILABLE:
            self._note_available(run.first)
        change.add(run.first, run.last, run.state, run.delivery_count)

    def _is_spent(self, run: Run, delivery_count_limit: int) -> bool:
        return run.delivery_count >= delivery_count_limit

    # Dead letters

    def unwritten_letters(self, delivery_count_limit: int) -> list[DeadLetters]:
        """Return the letters of all records that are ARCHIVING, as another leader left them.

        Why a record gets one was not persisted: it was rejected where its deliveries were not used up.
        """
        change = Change()
        for run in self.runs():
            if run.state is _ARCHIVING and run.change is None:
                is_spent = self._is_spent(run, delivery_count_limit)
                cause = _SPENT if is_spent else DeadLetterCause.CLIENT_REJECT
                change.add_letters(run.first, run.last, run.delivery_count, cause)
        return change.letters

    def archived(self, first: int, last: int) -> Change:
        """Settle records whose dead letters are written, or given up. Return what to persist; nobody waits for that."""
        change = Change()
        for batch in self._between(first, last):
            if not batch.lies_within(first, last):
                batch.is_split = True
            for run in batch.cut(first, last):
                if run.state is _ARCHIVING and run.change is None:
                    self._assign(run, _ARCHIVED)
                    change.add(run.first, run.last, _ARCHIVED, run.delivery_count)
            batch.join(first, last)
        return change

    def _cut_at_start(self, batch: InFlightBatch) -> None:
        """Cut the batch, so that none of its runs goes across the start offset."""
        if batch.holds_inside(self.start_offset):
            batch.is_split = True
            batch.boundary(self.start_offset)

    # Where the log begins, and what it has no more

    def log_begins_at(self, log_start_offset: int) -> bool:
        """Move the start to where the log begins. What is available before it is settled; what is acquired stays so
        until its time is over. Return whether anything has moved.
        """
        return whole(self.log_begins_steps(log_start_offset))

    def log_begins_steps(self, log_start_offset: int) -> LongWork[bool]:
        """Move the start as `log_begins_at` does, in steps: it moves itself when all is settled in front of it."""
        if log_start_offset <= self.start_offset:
            return False
        if not self._batches:
            self.start_offset = self.end_offset = log_start_offset
            return True
        for _, low, high in self._pieces(self._firsts[0], log_start_offset - 1):
            self._archive(low, high, _AVAILABLE)
            yield _STEPS_OF_LOOK * (high - low + 1)
        if not self._batches:
            self.start_offset = self.end_offset = max(self.start_offset, self.end_offset, log_start_offset)
            return True
        self._set_start(max(self.start_offset, log_start_offset))
        self.end_offset = max(self.end_offset, log_start_offset)
        self._move_start()
        return True

    def _archive_stale(self, fetch_offset: int, base: int) -> None:
        """Settle what is available between where was read and what was found: compaction has taken it."""
        if fetch_offset < base and self._batches:
            self._archive(fetch_offset, base - 1, _AVAILABLE)
            self._move_start()

    def _archive(self, first: int, last: int, state: RecordState) -> None:
        """Archive the records in this state within the offsets, also those in transition: they never go back."""
        for batch in self._between(first, last):
            if not any(run.state is state for run, _, _ in batch.within(first, last)):
                continue
            if not batch.lies_within(first, last):
                batch.is_split = True
            for run in batch.cut(first, last):
                if run.state is state:
                    self._assign(run, _ARCHIVED)
                    run.change, run.deadline_ms = None, 0
            batch.join(first, last)

    # The start

    def _move_start(self) -> bool:
        """Move the start over what is settled. Return whether it has moved."""
        end, number = self._settled_until()
        if end is None:
            return False
        before = self.start_offset
        if end == self._batches[-1].last:
            self._batches.clear()
            self._firsts.clear()
            self._deadlines.clear()
            self._available_from = self._gap_from = None
            self.start_offset = self.end_offset = max(end + 1, before)
            self.delivery_complete_count = 0
            return True
        batch = self._batches[number]
        if end == batch.last:
            start = max(self._firsts[number + 1], before)
            gap = self._open_gap()
            if gap is not None:
                start = max(min(gap, start), before)
            number += 1
        else:
            start = max(end + 1, before)
        self._set_start(start)
        del self._batches[:number], self._firsts[:number]
        self._batches[0].forget_until(self.start_offset)
        return number > 0 or self.start_offset > before

    def _settled_until(self) -> tuple[int | None, int]:
        """Return the last of the settled offsets in front, None where there is none, and the number of its batch."""
        end, of_batch = None, -1
        gap = self._open_gap()
        for number, batch in enumerate(self._batches):
            if gap is not None and batch.last >= gap:
                break
            for run in batch.runs:
                if run.change is not None or not run.is_terminal:
                    return end, of_batch
                end, of_batch = run.last, number
        return end, of_batch

    def _set_start(self, offset: int) -> None:
        """Move the start, over offsets that count no more."""
        if offset > self.start_offset:
            self.delivery_complete_count -= self._settled(self.start_offset, offset - 1)
            if self._gap_from is not None and self._gap_from < offset:
                self._looked_at_gap_until(offset)
        self.start_offset = offset

    def _settled(self, first: int, last: int) -> int:
        return sum(
            until - begin + 1
            for batch in self._between(first, last)
            for run, begin, until in batch.within(first, last)
            if run.is_terminal
        )

    def _assign(self, run: Run, state: RecordState) -> None:
        """Give a run another state; it is nobody's then. Settled offsets in flight are counted."""
        was_terminal = run.is_terminal
        run.state, run.member = state, NOBODY
        if run.is_terminal != was_terminal and run.last >= self.start_offset:
            size = run.last - max(run.first, self.start_offset) + 1
            self.delivery_complete_count += -size if was_terminal else size

    # The gap in what was persisted

    def _open_gap(self) -> int | None:
        """Return where the gap begins, as long as nothing behind the persisted batches was handed out."""
        return self._gap_from if self._gap_end == self.end_offset else None

    def _looked_at_gap_until(self, offset: int) -> None:
        if self._gap_from is not None:
            is_open = self._gap_end == self.end_offset and offset <= self._gap_end
            self._gap_from = offset if is_open else None

    def _close_gap_before(self, fetch_offset: int, base: int) -> None:
        """The log has nothing where the gap begins: compaction has taken it."""
        if self._open_gap() == fetch_offset and fetch_offset < base:
            self._looked_at_gap_until(base)

    # Batches, by their first offsets

    def _number_of(self, offset: int) -> int:
        """Return the number of the last batch that begins at the offset or before; -1 where none does."""
        return bisect_right(self._firsts, offset) - 1

    def _between(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that have offsets of this range."""
        begin = max(self._number_of(first), 0)
        found = self._batches[begin : bisect_right(self._firsts, last)]
        return found[1:] if found and found[0].last < first else found

    def _pieces(self, first: int, last: int) -> Iterator[tuple[InFlightBatch, int, int]]:
        """Yield the batches that have offsets of this range, a part of few of these offsets at a time.

        Each is found when it is asked for: whatever becomes of batches between two of them, none is left out, and a run
        that reaches over the end of a part is seen in the next one again.
        """
        while first <= last:
            number = max(self._number_of(first), 0)
            if number < len(self._batches) and self._batches[number].last < first:
                number += 1
            if number >= len(self._batches) or self._batches[number].first > last:
                return
            batch = self._batches[number]
            low = max(first, batch.first)
            high = min(last, batch.last, low + _OFFSETS_OF_PIECE - 1)
            yield batch, low, high
            first = high + 1

    def _add(self, batch: InFlightBatch) -> None:
        self.batches_begun += 1
        self.offsets_begun += _size(batch)
        number = bisect_left(self._firsts, batch.first)
        self._firsts.insert(number, batch.first)
        self._batches.insert(number, batch)

    def _note_available(self, offset: int) -> None:
        if self._available_from is None or offset < self._available_from:
            self._available_from = offset

    def _note_deadline(self, at_ms: int, first: int, last: int) -> None:
        heappush(self._deadlines, (at_ms, first, last))
        if len(self._deadlines) > self._most_deadlines:
            # Records in transition may go back to what they were.
            held = (run for run in self.runs() if run.deadline_ms)
            self._deadlines = [(run.deadline_ms, run.first, run.last) for run in held]
            heapify(self._deadlines)
            self._most_deadlines = 2 * len(self._deadlines) + _SPARE_DEADLINES


def _check_whole(run: Run, member: str) -> None:
    """Raises ApiError, INVALID_RECORD_STATE, where the member has not acquired the batch."""
    if not run.member:
        text = "The batch cannot be acknowledged. The batch is not in the acquired state."
    elif run.member != member:
        text = "Member is not the owner of batch record"
    else:
        return
    raise ApiError(ErrorCode.INVALID_RECORD_STATE, text)


def _check_part(run: Run, member: str) -> None:
    """Raises ApiError, INVALID_RECORD_STATE, where the member has not acquired the records."""
    if run.state is not _ACQUIRED:
        text = "The offset cannot be acknowledged. The offset is not acquired."
    elif run.member != member:
        text = "Member is not the owner of offset"
    else:
        return
    raise ApiError(ErrorCode.INVALID_RECORD_STATE, text)


def _same_types(first: int, types: Sequence[int], begin: int, until: int) -> Iterator[tuple[int, int, int]]:
    """(type, first offset, last offset) of neighbours between `begin` and `until`. first: the offset of the types."""
    if len(types) == 1:
        yield types[0], begin, until
        return
    low = begin
    for offset in range(begin + 1, until + 1):
        if types[offset - first] != types[low - first]:
            yield types[low - first], low, offset - 1
            low = offset
    yield types[low - first], low, until


def _is_throttled(batch: InFlightBatch, first: int, last: int, limits: Limits) -> bool:
    """Tell whether something available there was delivered so often that it comes in smaller portions."""
    return any(
        run.is_available and run.delivery_count >= limits.throttled_deliveries
        for run, _, _ in batch.within(first, last)
    )


def _is_due(run: Run, now_ms: int) -> bool:
    return run.state is _ACQUIRED and run.deadline_ms <= now_ms


def _size(batch: InFlightBatch) -> int:
    return batch.last - batch.first + 1


def _count(acquired: Iterable[Acquired]) -> int:
    return sum(last - first + 1 for first, last, _ in acquired)


def _joined(acquired: Iterable[Acquired]) -> list[Acquired]:
    joined: list[Acquired] = []
    for each in acquired:
        before = joined[-1] if joined else None
        if before and before.last_offset + 1 == each.first_offset and before.delivery_count == each.delivery_count:
            joined[-1] = before._replace(last_offset=each.last_offset)
        else:
            joined.append(each)
    return joined


def _end_of_batch_with(fetched: Iterable[FetchedBatch], offset: int) -> int:
    """Return the last offset of the record batch that holds this one; the offset itself where none does."""
    for base, last, _ in fetched:
        if base > offset:
            break
        if offset <= last:
            return last
    return offset


def _cuts(fetched: Iterable[FetchedBatch], first: int, last: int, batch_size: int) -> Iterator[tuple[int, int]]:
    """Cut offsets where record batches begin, into pieces of at least `batch_size`, but for the last one."""
    if last - first + 1 > batch_size:
        for base, _, _ in fetched:
            if base > last:
                break
            if base - first >= batch_size:
                yield first, base - 1
                first = base
    yield first, last
