"""Looking for timestamps beside a log that is in use: what may change between two steps, and what the steps cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.checking import TURN_UNITS, CheckBudget
from pykbroker.protocol.records.compression import Compression
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.files.steps import JOB_FAILURES, Job, Steps, run_steps
from pykbroker.storage.log.log import Log, TimestampAndOffset
from pykbroker.storage.segments.segment import LOG_SUFFIX
from tests.storage.batches import NOW_MS, config, open_log
from tests.storage.test_log_evidence import flip

RECORDS = 50
BATCHES = 40
Found = TimestampAndOffset | None


def filled_log(disk: SimulatedDisk, **properties: object) -> Log:
    """Segments of some compressed batches, a millisecond between two records. The older ones are read from files."""
    settings = {"segment_bytes": 2000, "index_interval_bytes": 100, "retention_bytes": 4000, **properties}
    log = open_log(disk, "/data/t-0", config(**settings))
    fill(log, 0)
    return log


def fill(log: Log, first_ms: int, epoch: int = 0) -> None:
    for number in range(BATCHES):
        times = range(first_ms + number * RECORDS, first_ms + (number + 1) * RECORDS)
        records = [Record(None, b"%d" % time, (), NOW_MS + time) for time in times]
        log.append_as_leader(encode_batch(records, compression=Compression.GZIP), epoch, NOW_MS)


class Driven:
    """Goes on with steps; `meanwhile` is done once, around the job of this number."""

    def __init__(self, steps: Steps[Found], number: int, meanwhile: Callable[[], Any], *, is_before: bool) -> None:
        self.jobs = 0
        self._steps = steps
        self._number = number
        self._meanwhile = meanwhile
        self._is_before = is_before

    def run(self) -> Found:
        try:
            job = next(self._steps)
            while True:
                job = self._go_on(job)
        except StopIteration as done:
            found: Found = done.value
            return found

    def _go_on(self, job: Job | None) -> Job | None:
        assert job is not None
        self.jobs += 1
        is_time = self.jobs == self._number
        if is_time and self._is_before:
            self._meanwhile()
        try:
            result = job.run()
        except JOB_FAILURES as error:
            go_on: Callable[[], Job | None] = partial(self._steps.throw, error)
        else:
            go_on = partial(self._steps.send, result)
        if is_time and not self._is_before:
            self._meanwhile()
        return go_on()


def truncate_to_nothing(log: Log) -> None:
    log.truncate_to(0)


def replace_the_end(log: Log) -> None:
    """By other records, of other times and as large."""
    log.truncate_to(17 * RECORDS + 1)
    fill(log, 1_000_000, epoch=1)


def begin_to_truncate(log: Log) -> None:
    """Readers find nothing of it any more, and it is not durable yet."""
    truncation = log.begin_truncation(17 * RECORDS)
    assert truncation is not None
    truncation.prepare()
    assert truncation.cut()


def delete_old_segments(log: Log) -> None:
    for path in log.delete_old_segments(log.log_end_offset, NOW_MS):
        log._disk.remove(path)
    assert log.log_start_offset > 20 * RECORDS


def delete_records(log: Log) -> None:
    log.increment_log_start_offset(20 * RECORDS + 7)


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize(
    "change", [truncate_to_nothing, replace_the_end, begin_to_truncate, delete_old_segments, delete_records]
)
@pytest.mark.parametrize("wanted", [20 * RECORDS + 3, None])
def test_what_is_found_is_in_the_log_as_it_is_then(
    disk: SimulatedDisk, change: Callable[[Log], None], number: int, is_before: bool, wanted: int | None
) -> None:
    log = filled_log(disk)
    budget = CheckBudget()
    if wanted is None:
        steps = log.offset_of_max_timestamp_steps(budget)
    else:
        steps = log.offset_for_timestamp_steps(NOW_MS + wanted, budget)
    driven = Driven(steps, number, lambda: change(log), is_before=is_before)
    found = driven.run()
    if driven.jobs < number:
        return  # it was done in fewer
    if wanted is None:
        assert found == log.find_offset_of_max_timestamp()
    else:
        assert found == log.find_offset_for_timestamp(NOW_MS + wanted)


def test_a_log_that_is_closed_meanwhile_has_no_answer(disk: SimulatedDisk) -> None:
    log = filled_log(disk)
    steps = log.offset_for_timestamp_steps(NOW_MS + 20 * RECORDS, CheckBudget())
    assert Driven(steps, 2, log.abandon, is_before=False).run() is None


def test_damage_is_told(disk: SimulatedDisk) -> None:
    log = filled_log(disk)
    segment = log.segments[3]
    segment.close()
    flip(disk, segment.path(LOG_SUFFIX), 100)
    with pytest.raises(CorruptLog, match="damaged at position 0"):
        log.find_offset_for_timestamp(NOW_MS + segment.base_offset)


@pytest.mark.parametrize("is_between_batches", [True, False])
def test_an_index_that_lies_misleads_nobody(
    disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch, is_between_batches: bool
) -> None:
    log = filled_log(disk, segment_bytes=1 << 20)
    (segment,) = log.segments
    found = segment.find_batch(30 * RECORDS)
    assert found is not None
    lie = (2 * RECORDS - 1, found[0] + (not is_between_batches))
    monkeypatch.setattr(segment.offset_index, "entry_for", lambda offset, *, cached_only: lie)
    assert log.find_offset_for_timestamp(NOW_MS + 3 * RECORDS) == (NOW_MS + 3 * RECORDS, 3 * RECORDS, 0)


def test_many_batches_behind_an_index_entry_are_passed_a_thousand_at_a_time(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(index_interval_bytes=1 << 30, segment_bytes=1 << 30))
    for number in range(3500):
        log.append_as_leader(encode_batch([Record(None, b"v", (), NOW_MS + number)]), 0, NOW_MS)
    steps = log.offset_for_timestamp_steps(NOW_MS + 3400, CheckBudget())
    driven = Driven(steps, 0, int, is_before=False)
    assert driven.run() == (NOW_MS + 3400, 3400, 0)
    assert driven.jobs == 5, "four for the headers, and one for the batch"


def test_many_records_are_looked_at_in_turns(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    records = [Record(None, bytes(number % 2), (), NOW_MS + number) for number in range(20_000)]
    log.append_as_leader(encode_batch(records, compression=Compression.ZSTD), 0, NOW_MS)
    budget = CheckBudget(TURN_UNITS)
    turns = []

    def whole_turns(steps: Steps[Found]) -> Steps[Found]:
        step = next(steps)
        try:
            while True:
                while step is None:
                    turns.append(budget.left)
                    budget.left = TURN_UNITS
                    step = next(steps)
                step = steps.send((yield step))
        except StopIteration as done:
            found: Found = done.value
            return found

    found = run_steps(whole_turns(log.offset_for_timestamp_steps(NOW_MS + 19_999, budget)))
    assert found == (NOW_MS + 19_999, 19_999, 0)
    assert len(turns) >= 20_000 // TURN_UNITS
