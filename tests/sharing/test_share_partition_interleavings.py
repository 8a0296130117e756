"""A share partition at work in steps, of which each may be followed by any step of anybody else.

What must hold: no record stays in a transition that nobody ends, none is acquired for ever, settled records are
counted, what is available is found, and the start moves over what is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from pykbroker.protocol.errors import ApiError
from pykbroker.sharing.partition import share_partition
from pykbroker.sharing.partition.in_flight import Run
from pykbroker.sharing.partition.share_partition import SharePartition
from pykbroker.sharing.partition.values import (
    Acknowledgement,
    Acquired,
    AcquireMode,
    Change,
    DeadLetters,
    FetchedBatch,
    Limits,
    RecordState,
)

SEEDS: Final = 150
MEMBERS: Final = ("anna", "bert", "carl")
RECORDS: Final = 200
TYPES: Final = (0, 1, 2, 3, 4)


class Work(NamedTuple):
    """Steps, and what is done with what they come to. may_be_cut: whether they may be closed before their end."""

    steps: Generator[int, None, Any]
    then: Callable[[Any], None]
    may_be_cut: bool = False


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_partition, "_OFFSETS_OF_PIECE", 2)
    monkeypatch.setattr(share_partition, "_SPARE_DEADLINES", 3)


class Play:
    """One share partition, and all that is under way there. to_persist: changes that nobody has written so far."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(seed)
        self.limits = Limits(
            record_lock_duration_ms=100,
            max_record_locks=chance.choice([10, 30, 60]),
            delivery_count_limit=chance.choice([2, 3, 5]),
            has_dead_letters=chance.random() < 0.5,
        )
        self.share = SharePartition(0)
        self.now_ms = 0
        self.log_start_offset = 0
        self.log = list(self._batches())
        self.works: list[Work] = []
        self.to_persist: list[Change] = []
        self.letters: list[DeadLetters] = []
        self.held: dict[str, list[Acquired]] = {member: [] for member in MEMBERS}

    def _batches(self) -> Iterator[FetchedBatch]:
        offset = 0
        while offset < RECORDS:
            last = offset + self.chance.randint(0, 6)
            yield FetchedBatch(offset, last, self.chance.random() < 0.1)
            offset = last + 1 + 2 * (self.chance.random() < 0.1)

    # What may be begun

    def acquire(self) -> None:
        offset = self.share.next_fetch_offset()
        there = [each for each in self.log if each.last_offset >= max(offset, self.log_start_offset)]
        read = there[: self.chance.randint(1, 5)]
        if not read or not self.share.can_acquire(self.limits):
            return
        member, mode = self.chance.choice(MEMBERS), self.chance.choice(list(AcquireMode))
        batch_size, most = self.chance.choice([1, 3, 100]), self.chance.choice([1, 4, 50])
        acquired = self.share.acquire(member, mode, batch_size, most, offset, read, self.limits, self.now_ms)
        if acquired and self.chance.random() < 0.1:
            self.share.give_back(member, acquired)
        self.held[member] += acquired

    def acknowledge(self) -> None:
        member = self.chance.choice(MEMBERS)
        held = self.held[member]
        words: list[Acknowledgement] = []
        for first, last, _ in sorted(self.chance.sample(held, min(len(held), self.chance.randint(1, 3)))):
            if not words or first > words[-1].last_offset:
                types = self.chance.choices(TYPES, k=self.chance.choice([1, last - first + 1]))
                words.append(Acknowledgement(first, last, types))
        if words:
            steps = self.share.acknowledge_steps(member, words, self.limits, self.now_ms)
            self.works.append(Work(steps, self.persist, may_be_cut=True))

    def release(self) -> None:
        self.works.append(Work(self.share.release_steps(self.chance.choice(MEMBERS), self.limits), self.persist))

    def expire(self) -> None:
        self.now_ms += self.chance.choice([1, 30, 100, 1000])
        self.works.append(Work(self.share.expire_steps(self.limits, self.now_ms), self.persist))

    def write(self) -> None:
        if not self.to_persist:
            return
        change, is_persisted = self.to_persist.pop(0), self.chance.random() < 0.7
        steps = self.share.complete_steps(change, is_persisted=is_persisted, now_ms=self.now_ms)
        self.works.append(Work(steps, lambda _: self.letters.extend(change.letters if is_persisted else ())))

    def write_letters(self) -> None:
        if self.letters:
            self.persist(self.share.archived(*self.letters.pop(0)[:2]))

    def delete_records(self) -> None:
        self.log_start_offset = min(max(self.log_start_offset, self.share.start_offset) + 10, RECORDS - 5)
        self.works.append(Work(self.share.log_begins_steps(self.log_start_offset), lambda _: None))

    def persist(self, change: Change) -> None:
        if change:
            self.to_persist.append(change)

    # How it goes on

    def go_on(self) -> None:
        """Take one step of something, or cut it off."""
        work = self.chance.choice(self.works)
        try:
            next(work.steps)
        except StopIteration as done:
            self.works.remove(work)
            work.then(done.value)
        except ApiError:
            self.works.remove(work)
        else:
            if work.may_be_cut and self.chance.random() < 0.02:
                work.steps.close()
                self.works.remove(work)

    def do_something(self) -> None:
        begins = (self.acquire, self.acknowledge, self.release, self.expire, self.write, self.write_letters)
        if self.works and self.chance.random() < 0.5:
            self.go_on()
        else:
            self.chance.choices((*begins, self.delete_records), [18, 12, 4, 5, 8, 3, 0.5])[0]()

    def come_to_rest(self) -> None:
        while self.works or self.to_persist:
            if self.works:
                self.go_on()
            else:
                self.write()

    def end_all_locks(self) -> None:
        for _ in range(6):
            self.now_ms += 10_000
            self.works.append(Work(self.share.expire_steps(self.limits, self.now_ms), self.persist))
            self.come_to_rest()
            while self.letters:
                self.write_letters()
                self.come_to_rest()


def counted(share: SharePartition) -> int:
    start = share.start_offset
    return sum(run.last - max(run.first, start) + 1 for run in share.runs() if run.is_terminal and run.last >= start)


def is_settled(run: Run) -> bool:
    return run.is_terminal and run.change is None


@pytest.mark.parametrize("seeds", [range(first, first + 50) for first in range(0, SEEDS, 50)])
def test_whatever_comes_between_two_steps_nothing_is_lost(seeds: range) -> None:
    for seed in seeds:
        play = Play(seed)
        share = play.share
        for _ in range(play.chance.randint(30, 250)):
            play.do_something()
            assert share.delivery_complete_count == counted(share), seed
        play.come_to_rest()
        runs = list(share.runs())
        assert all(run.change is None for run in runs), seed
        available = [run.first for run in runs if run.is_available and run.last >= share.start_offset]
        assert not available or share.next_fetch_offset() <= max(available[0], share.start_offset), seed
        assert not runs or not is_settled(runs[0]), seed
        play.end_all_locks()
        assert not any(run.state is RecordState.ACQUIRED for run in share.runs()), seed
        assert share.delivery_complete_count == counted(share), seed
