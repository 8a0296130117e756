"""A share partition against a dictionary of its offsets, with a persister that keeps what it has acknowledged.

Members acquire, acknowledge and leave, time goes by, writes succeed, fail and stay open, the log's begin moves, and the
leader dies at any moment. What must hold is said by the model, which has an entry for each offset and no runs.

Where the group has dead letters they are written, or given up, in any order and at any time. Each record that was
rejected, or delivered too often, has one in the end; none that was accepted has.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.sharing.partition.share_partition import SharePartition
from pykbroker.sharing.partition.values import (
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
from pykbroker.sharing.persister import PartitionState, SharePartitionKey, StateBatch

MEMBERS = ("anna", "bert", "carl")
LIMITS = Limits(record_lock_duration_ms=100, max_record_locks=30, delivery_count_limit=4)
KEY = SharePartitionKey("group", bytes(16), 0)
SETTLED = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


@dataclass
class Entry:
    """One offset, as the model has it. wanted: what it becomes once it is persisted; None outside of a transition."""

    state: RecordState = RecordState.AVAILABLE
    delivery_count: int = 0
    member: str = ""
    deadline_ms: int = 0
    wanted: RecordState | None = None


class Persisted:
    """What a share coordinator keeps: each offset's state and count, from a start on."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.offsets: dict[int, tuple[int, int]] = {}
        self.has_gone: set[int] = set()
        self.delivery_complete_count = 0

    def write(self, start_offset: int, delivery_complete_count: int, batches: list[StateBatch]) -> None:
        for first, last, state, count in batches:
            self.offsets.update(dict.fromkeys(range(first, last + 1), (state, count)))
        self.start_offset = max(start_offset, self.start_offset)
        self.delivery_complete_count = delivery_complete_count
        for offset in [each for each in self.offsets if each < self.start_offset]:
            if self.offsets[offset][0] == RecordState.ARCHIVING:
                self.has_gone.add(offset)
            del self.offsets[offset]

    def read(self) -> PartitionState:
        batches = tuple(StateBatch(each, each, *self.offsets[each]) for each in sorted(self.offsets))
        return PartitionState(KEY, 1, 1, self.start_offset, self.delivery_complete_count, batches)


@dataclass
class Letters:
    """The dead letters. due: of the leader that there is. owed: offsets whose record was persisted as ARCHIVING."""

    due: list[DeadLetters] = field(default_factory=list)
    owed: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    accepted: set[int] = field(default_factory=set)

    def offsets_due(self) -> set[int]:
        return {at for first, last, *_ in self.due for at in range(first, last + 1)}


class SharePartitionMachine(RuleBasedStateMachine):
    @initialize(has_dead_letters=st.booleans())
    def begin(self, has_dead_letters: bool) -> None:
        self.limits = LIMITS._replace(has_dead_letters=has_dead_letters)
        self.letters = Letters()
        self.now_ms = 0
        self.log: list[FetchedBatch] = []
        self.log_start = 0
        self.persisted = Persisted()
        self.settled_for_ever: set[int] = set()
        self.load()

    def load(self) -> None:
        state = self.persisted.read()
        self.partition = SharePartition.load(state, state.start_offset)
        self.model: dict[int, Entry] = {}
        for first, last, state_id, count in state.batches:
            for offset in range(first, last + 1):
                self.model[offset] = Entry(RecordState(state_id), count)
        self.open: list[tuple[Change, bool]] = []
        self.letters.due = self.partition.unwritten_letters(LIMITS.delivery_count_limit)

    @property
    def end(self) -> int:
        return self.log[-1].last_offset + 1 if self.log else 0

    @rule(size=st.integers(1, 7), is_aborted=st.booleans(), hole=st.sampled_from([0, 0, 0, 2]))
    def append(self, size: int, is_aborted: bool, hole: int) -> None:
        base = self.end + hole
        self.log.append(FetchedBatch(base, base + size - 1, is_aborted))

    @rule(
        member=st.sampled_from(MEMBERS),
        mode=st.sampled_from(AcquireMode),
        batch_size=st.integers(1, 10),
        max_records=st.integers(1, 12),
        batches=st.integers(1, 5),
    )
    def acquire(self, member: str, mode: AcquireMode, batch_size: int, max_records: int, batches: int) -> None:
        if not self.partition.can_acquire(self.limits):
            return
        offset = self.partition.next_fetch_offset()
        if offset < self.log_start:
            assert self.partition.log_begins_at(self.log_start)
            self.follow_log_start()
            return
        fetched = [each for each in self.log if each.last_offset >= offset][:batches]
        acquired = self.partition.acquire(
            member, mode, batch_size, max_records, offset, fetched, self.limits, self.now_ms
        )
        taken = 0
        for first, last, delivery_count in acquired:
            assert first <= last
            for at in range(first, last + 1):
                entry = self.model.setdefault(at, Entry())
                assert entry.state is RecordState.AVAILABLE, f"{at} is {entry}"
                assert entry.wanted is None
                assert at not in self.settled_for_ever
                assert at >= self.log_start
                assert not any(each.is_aborted and each.base_offset <= at <= each.last_offset for each in self.log)
                entry.state, entry.member = RecordState.ACQUIRED, member
                entry.deadline_ms = self.now_ms + LIMITS.record_lock_duration_ms
                entry.delivery_count += 1
                assert entry.delivery_count == delivery_count <= LIMITS.delivery_count_limit
                taken += 1
        assert [each.first_offset for each in acquired] == sorted(each.first_offset for each in acquired)
        if mode is AcquireMode.RECORD_LIMIT:
            assert taken <= max_records
        self.follow_archived()

    def follow_archived(self) -> None:
        """Take over what the partition settles by itself: aborted records, holes, and what compaction took."""
        for run in self.partition.runs():
            for at in range(run.first, run.last + 1):
                entry = self.model.setdefault(at, Entry(delivery_count=run.delivery_count))
                if run.state is RecordState.ARCHIVED and entry.state is RecordState.AVAILABLE:
                    assert self.is_no_record(at) or at < self.log_start
                    entry.state = RecordState.ARCHIVED
                    entry.delivery_count = run.delivery_count
        for at, entry in self.model.items():
            is_passed = entry.state is RecordState.AVAILABLE and at < self.partition.start_offset
            if is_passed and self.is_no_record(at):
                entry.state = RecordState.ARCHIVED

    def is_no_record(self, at: int) -> bool:
        """Tell whether the group is not to see the offset."""
        return all(each.is_aborted or not each.base_offset <= at <= each.last_offset for each in self.log)

    @rule(
        member=st.sampled_from(MEMBERS),
        start=st.integers(0, 12),
        types=st.lists(st.sampled_from(AcknowledgeType), min_size=1, max_size=6),
        length=st.integers(1, 12),
        outcome=st.sampled_from(["kept", "lost", "open"]),
    )
    def acknowledge(self, member: str, start: int, types: list[AcknowledgeType], length: int, outcome: str) -> None:
        held = sorted(at for at, entry in self.model.items() if entry.member == member)
        first = held[start % len(held)] if held else start
        last = first + (len(types) if len(types) > 1 else length) - 1
        words = {at: types[0] if len(types) == 1 else types[at - first] for at in range(first, last + 1)}
        counted = [at for at in words if at >= self.partition.start_offset]
        is_held = all(
            at in self.model and self.model[at].state is RecordState.ACQUIRED and self.model[at].member == member
            for at in counted
        )
        acknowledgement = Acknowledgement(first, last, types)
        if not is_held:
            # What is in flight has holes; nobody is asked about those.
            in_flight = {at for run in self.partition.runs() for at in range(run.first, run.last + 1)}
            if all(at not in in_flight or self.is_held_by(member, at) for at in counted):
                return
            with pytest.raises(ApiError) as refused:
                self.partition.acknowledge(member, [acknowledgement], self.limits, self.now_ms)
            assert refused.value.code in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
            self.follow_renewals(counted, member)
            return
        change = self.partition.acknowledge(member, [acknowledgement], self.limits, self.now_ms)
        for at in counted:
            entry, word = self.model[at], words[at]
            if word is AcknowledgeType.RENEW:
                entry.deadline_ms = self.now_ms + LIMITS.record_lock_duration_ms
                continue
            entry.wanted = {
                AcknowledgeType.GAP: RecordState.ARCHIVED,
                AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
                AcknowledgeType.REJECT: self.dead,
                AcknowledgeType.RELEASE: RecordState.AVAILABLE,
            }[word]
            self.begin_transition(entry, at)
        self.carry_on(change, outcome)

    def follow_renewals(self, offsets: list[int], member: str) -> None:
        """Locks may be renewed in front of what is refused."""
        renewed_ms = self.now_ms + LIMITS.record_lock_duration_ms
        for run in self.partition.runs():
            for at in range(run.first, run.last + 1):
                if at in offsets and self.is_held_by(member, at) and run.deadline_ms == renewed_ms:
                    self.model[at].deadline_ms = renewed_ms

    def is_held_by(self, member: str, at: int) -> bool:
        entry = self.model.get(at)
        return entry is not None and entry.state is RecordState.ACQUIRED and entry.member == member

    @property
    def dead(self) -> RecordState:
        """The state of what is rejected, or was delivered too often."""
        return RecordState.ARCHIVING if self.limits.has_dead_letters else RecordState.ARCHIVED

    def begin_transition(self, entry: Entry, at: int) -> None:
        if entry.wanted is RecordState.AVAILABLE and entry.delivery_count >= LIMITS.delivery_count_limit:
            entry.wanted = self.dead
        assert entry.wanted is not None
        entry.state = entry.wanted

    @rule(member=st.sampled_from(MEMBERS), outcome=st.sampled_from(["kept", "lost", "open"]))
    def leave(self, member: str, outcome: str) -> None:
        change = self.partition.release(member, self.limits)
        for at, entry in self.model.items():
            if entry.state is RecordState.ACQUIRED and entry.member == member:
                entry.wanted = RecordState.AVAILABLE if at >= self.partition.start_offset else RecordState.ARCHIVED
                self.begin_transition(entry, at)
        self.carry_on(change, outcome)

    def carry_on(self, change: Change, outcome: str) -> None:
        if change:
            self.open.append((change, outcome == "kept"))
            if outcome != "open":
                self.complete(len(self.open) - 1)

    @precondition(lambda self: self.open)
    @rule(number=st.integers(0, 100), is_kept=st.booleans())
    def answer(self, number: int, is_kept: bool) -> None:
        number %= len(self.open)
        self.open[number] = self.open[number][0], is_kept
        self.complete(number)

    def complete(self, number: int) -> None:
        change, is_kept = self.open.pop(number)
        if is_kept:
            self.persist(change)
        self.partition.complete(change, is_persisted=is_kept, now_ms=self.now_ms)
        for first, last in change.ranges:
            for at in range(first, last + 1):
                entry = self.model[at]
                if entry.wanted is None:
                    continue  # archived meanwhile
                entry.wanted = None
                if is_kept:
                    entry.member = ""
                elif self.now_ms < entry.deadline_ms:
                    entry.state = RecordState.ACQUIRED
                else:
                    spent = entry.delivery_count >= LIMITS.delivery_count_limit
                    entry.state, entry.member = self.dead if spent else RecordState.AVAILABLE, ""
                    if at < self.partition.start_offset:
                        entry.state = RecordState.ARCHIVED
                    elif entry.state is RecordState.ARCHIVING:
                        entry.state, entry.member = RecordState.ACQUIRED, change.member
                        entry.deadline_ms = self.now_ms + 1000

    def persist(self, change: Change) -> None:
        self.persisted.write(self.partition.start_offset, self.partition.delivery_complete_count, change.batches)
        for first, last, state, _ in change.batches:
            if RecordState(state) in SETTLED or state == RecordState.ARCHIVING:
                self.settled_for_ever.update(range(first, last + 1))
            if state == RecordState.ACKNOWLEDGED:
                self.letters.accepted.update(range(first, last + 1))
            if state == RecordState.ARCHIVING:
                self.letters.owed.update(range(first, last + 1))
        self.letters.due += change.letters

    @rule(ms=st.sampled_from([1, 50, 100, 1100]), outcome=st.sampled_from(["kept", "lost", "open"]))
    def pass_time(self, ms: int, outcome: str) -> None:
        self.now_ms += ms
        change = self.partition.expire(self.limits, self.now_ms)
        start = self.partition.start_offset
        for at, entry in self.model.items():
            if entry.state is RecordState.ACQUIRED and entry.deadline_ms <= self.now_ms:
                spent = entry.delivery_count >= LIMITS.delivery_count_limit
                entry.state, entry.member = self.dead if spent else RecordState.AVAILABLE, ""
                if at < start:
                    entry.state = RecordState.ARCHIVED
                elif entry.state is RecordState.ARCHIVING:
                    entry.wanted = RecordState.ARCHIVING
        assert (RecordState.ARCHIVING in {batch.delivery_state for batch in change.batches}) == bool(change.letters)
        self.carry_on(change, outcome)

    @precondition(lambda self: self.letters.due)
    @rule(number=st.integers(0, 100), size=st.integers(1, 5), is_written=st.booleans(), is_kept=st.booleans())
    def end_letters(self, number: int, size: int, is_written: bool, is_kept: bool) -> None:
        """Letters are written, some of a few, or given up. What becomes of the writing of ARCHIVED changes nothing."""
        letters = self.letters.due.pop(number % len(self.letters.due))
        last = min(letters.first_offset + size - 1, letters.last_offset)
        if last < letters.last_offset:
            self.letters.due.append(letters._replace(first_offset=last + 1))
        ended = range(letters.first_offset, last + 1)
        (self.letters.written if is_written else self.letters.given_up).update(ended)
        for at in ended:
            entry = self.model[at]
            assert (entry.state, entry.delivery_count) == (RecordState.ARCHIVING, letters.delivery_count)
            is_spent = entry.delivery_count >= LIMITS.delivery_count_limit
            assert is_spent or letters.cause is DeadLetterCause.CLIENT_REJECT
            entry.state = RecordState.ARCHIVED
        change = self.partition.archived(letters.first_offset, last)
        assert not change.ranges
        if is_kept:
            self.persist(change)
        self.partition.complete(change, is_persisted=is_kept, now_ms=self.now_ms)

    @rule(records=st.integers(1, 8))
    def delete_records(self, records: int) -> None:
        self.log_start = min(self.log_start + records, self.end)

    @rule()
    def notice_log_start(self) -> None:
        self.partition.log_begins_at(self.log_start)
        self.follow_log_start()

    def follow_log_start(self) -> None:
        for at, entry in self.model.items():
            if at < self.log_start and entry.state is RecordState.AVAILABLE:
                entry.state, entry.wanted = RecordState.ARCHIVED, None

    @rule(member=st.sampled_from(MEMBERS))
    def give_back(self, member: str) -> None:
        """An answer is withheld: what was acquired last, and is whole, goes back."""
        held = sorted(at for at, entry in self.model.items() if self.is_held_by(member, at))[-3:]
        held = [at for at in held if at >= self.partition.start_offset]
        self.partition.give_back(member, [Acquired(at, at, 1) for at in held])
        for at in held:
            entry = self.model[at]
            entry.state, entry.member = RecordState.AVAILABLE, ""
            entry.delivery_count -= 1

    @rule()
    def crash(self) -> None:
        """The leader dies, and another one reads what was persisted."""
        self.load()

    @invariant()
    def states_are_those_of_the_model(self) -> None:
        before = -1
        for run in self.partition.runs():
            assert before < run.first <= run.last
            before = run.last
            for at in range(run.first, run.last + 1):
                entry = self.model[at]
                assert entry.state is run.state, f"{at}: {entry}, not {run}"
                assert (entry.wanted is not None) == (run.change is not None), f"{at}: {entry}, not {run}"
                assert entry.delivery_count == run.delivery_count, f"{at}: {entry}, not {run}"
                if run.state is RecordState.ACQUIRED:
                    assert (entry.member, entry.deadline_ms) == (run.member, run.deadline_ms)

    @invariant()
    def nothing_is_lost(self) -> None:
        """The start has passed nothing that is to be handed out still."""
        in_flight = {at for run in self.partition.runs() for at in range(run.first, run.last + 1)}
        for at, entry in self.model.items():
            if at not in in_flight and at < self.partition.start_offset and at >= self.log_start:
                assert entry.state in SETTLED, f"{at}: {entry}"
        offset = self.partition.next_fetch_offset()
        waiting = [
            at for at, entry in self.model.items() if entry.state is RecordState.AVAILABLE and entry.wanted is None
        ]
        waiting = [at for at in waiting if at >= self.partition.start_offset]
        assert not waiting or offset <= min(waiting), f"{offset} of {waiting}"

    @invariant()
    def no_letter_is_lost_and_none_is_written_of_what_was_accepted(self) -> None:
        assert not self.letters.written & self.letters.accepted
        due = self.letters.offsets_due()
        for at, entry in self.model.items():
            assert (entry.state is RecordState.ARCHIVING and entry.wanted is None) == (at in due), f"{at}: {entry}"
        assert self.letters.owed <= due | self.letters.written | self.letters.given_up
        assert self.persisted.has_gone <= self.letters.written | self.letters.given_up

    @invariant()
    def settled_records_are_counted(self) -> None:
        start = self.partition.start_offset
        runs = [run for run in self.partition.runs() if run.state in SETTLED and run.last >= start]
        count = sum(run.last - max(run.first, start) + 1 for run in runs)
        assert self.partition.delivery_complete_count == count

    def teardown(self) -> None:
        """In the end everything comes to its end: with one member that accepts, nothing stays in flight."""
        if not hasattr(self, "partition"):
            return
        while self.open:
            self.complete(len(self.open) - 1)
        self.partition.log_begins_at(self.log_start)
        for _ in range(400):
            self.now_ms += LIMITS.record_lock_duration_ms
            change = self.partition.expire(self.limits, self.now_ms)
            self.partition.complete(change, is_persisted=True, now_ms=self.now_ms)
            for first, last, *_ in self.letters.due + change.letters:
                settled = self.partition.archived(first, last)
                self.partition.complete(settled, is_persisted=False, now_ms=self.now_ms)
            self.letters.due.clear()
            offset = self.partition.next_fetch_offset()
            fetched = [each for each in self.log if each.last_offset >= offset]
            acquired = self.partition.acquire(
                "last", AcquireMode.BATCH_OPTIMIZED, 100, 100, offset, fetched, self.limits, self.now_ms
            )
            words = [Acknowledgement(first, last, [AcknowledgeType.ACCEPT]) for first, last, _ in acquired]
            change = self.partition.acknowledge("last", words, self.limits, self.now_ms)
            self.partition.complete(change, is_persisted=True, now_ms=self.now_ms)
            if not fetched:
                break
        assert self.partition.in_flight == 0
        assert self.partition.delivery_complete_count == 0
        if self.log:
            assert self.partition.start_offset >= self.end


SharePartitionMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestSharePartitionMachine = SharePartitionMachine.TestCase
