"""What the tasks of an audit count, beside what Python counts in the same records."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from pykbroker.spark.auditing import counting, periods, tables
from pykbroker.spark.auditing.counting import COLUMNS, Counting, Counts, merged
from pykbroker.spark.auditing.runs import reports
from pykbroker.spark.auditing.tables import Kind, Packed, Table, batches_of, empty, tables_in

HOUR_US = 3_600_000_000


class Record(NamedTuple):
    partition: int
    offset: int
    time: int
    size: int
    nulls: int
    checksum: int
    content_checksum: int
    key: int


def records_of(rng: random.Random, count: int, partitions: int = 3, keys: int = 5) -> list[Record]:
    """In the order of partitions and offsets, none of these twice."""
    found = []
    hashes = [rng.getrandbits(64) - 2**63 for _ in range(keys)]
    for partition in range(partitions):
        offset, time = rng.randrange(40), 1_700_000_000_000_000
        for _ in range(count // partitions):
            offset += rng.choice([1, 1, 1, 1, 2, 5, 40])
            time += rng.choice([-2 * HOUR_US, -1000, 0, 1000, 10 * HOUR_US])
            size = rng.choice([0, 10, 10, rng.randrange(1000)])
            checksums = rng.getrandbits(64) - 2**63, rng.getrandbits(64) - 2**63
            found.append(Record(partition, offset, time, size, rng.randrange(4), *checksums, rng.choice(hashes)))
    return found


def tables_of(job: Counting, records: list[Record], batch: int) -> list[Packed]:
    """Of one task, on their way to another."""
    counts = Counts(job)
    found: list[Packed] = []
    for start in range(0, len(records), batch):
        values = np.array(records[start : start + batch], np.int64).T
        found += counts.add(dict(zip((*COLUMNS, "key"), values, strict=True)))
    found += counts.rest()
    return list(tables_in(batches_of(found)))


def results(job: Counting, *of_tasks: list[Packed]) -> dict[Kind, Table]:
    """Of all tasks, those of each bucket of keys by a task of its own."""
    by_bucket = defaultdict(list)
    for each in [packed for of_task in of_tasks for packed in of_task]:
        by_bucket[each.bucket].append(each)
    found: dict[Kind, list[Table]] = {kind: [empty(kind)] for kind in Kind}
    for each in by_bucket.values():
        for kind, _, table in merged(job, each):
            found[kind].append(table)
    return {kind: np.concatenate(parts, axis=1) for kind, parts in found.items()}


def assert_counted(found: dict[Kind, Table], records: list[Record], listed: int) -> None:
    by_partition = defaultdict(list)
    for record in records:
        by_partition[record.partition].append(record)
    rows = {each.partition: each for each in reports(found[Kind.RUNS])}
    assert set(rows) == set(by_partition)
    gaps = []
    for partition, mine in by_partition.items():
        row, steps = rows[partition], [one.time - next.time for one, next in pairwise(mine)]
        assert (row.records, row.size_bytes) == (len(mine), sum(each.size for each in mine))
        assert (row.first_offset, row.last_offset) == (mine[0].offset, mine[-1].offset)
        assert row.missing_offsets == mine[-1].offset - mine[0].offset + 1 - len(mine)
        assert row.null_keys == sum(each.nulls & 1 for each in mine)
        assert row.null_values == sum(each.nulls >> 1 for each in mine)
        assert row.first_timestamp_ms == min(each.time for each in mine) // 1000
        assert row.last_timestamp_ms == max(each.time for each in mine) // 1000
        assert (row.backwards, row.largest_step_back_ms) == (sum(step > 0 for step in steps), max([0, *steps]) // 1000)
        assert int(row.checksum, 16) == sum(each.checksum for each in mine) % 2**64
        assert int(row.content_checksum, 16) == sum(each.content_checksum for each in mine) % 2**64
        gaps += [
            (partition, one.offset + 1, next.offset - 1) for one, next in pairwise(mine) if next.offset > one.offset + 1
        ]
    gaps.sort(key=lambda gap: (gap[1] - gap[2], gap[0], gap[1]))
    assert list(map(tuple, found[Kind.GAPS].T.tolist())) == gaps[:listed]
    assert_lists(found, records, listed)


def assert_lists(found: dict[Kind, Table], records: list[Record], listed: int) -> None:
    by_size = sorted(records, key=lambda each: (-each.size, each.partition, each.offset))[:listed]
    assert found[Kind.LARGEST].T.tolist() == [[each.partition, each.offset, each.size] for each in by_size]
    hours = Counter((each.partition, each.time // HOUR_US) for each in records)
    assert {(row[2], row[1]): row[3] for row in found[Kind.PERIODS].T.tolist()} == hours
    keys = defaultdict(list)
    for each in records:
        if not each.nulls & 1:
            keys[each.key].append(each)
    rows = []
    for key, mine in keys.items():
        lowest = min(each.partition for each in mine)
        last = max(each.offset for each in mine if each.partition == lowest)
        partitions = len({each.partition for each in mine})
        rows.append([key, lowest, last, len(mine), sum(each.size for each in mine), partitions])
    rows.sort(key=lambda row: (-row[3], row[0]))
    scattered = [row for row in rows if row[5] > 1]
    totals = found[Kind.KEY_TOTALS].sum(axis=1).tolist()
    assert totals == [len(rows), len(scattered)]
    for kind, expected in ((Kind.HEAVIEST_KEYS, rows), (Kind.SCATTERED_KEYS, scattered)):
        # Each bucket lists its own.
        listed_keys = sorted(found[kind].T.tolist(), key=lambda row: (-row[3], row[0]))
        assert listed_keys[:listed] == expected[:listed]


@pytest.mark.parametrize("seed", range(20))
def test_tasks_count_together_what_is_there(seed: int) -> None:
    """However the records are cut into tasks and batches, and whichever comes first."""
    rng = random.Random(seed)
    records = records_of(rng, rng.choice([3, 30, 3000]), keys=rng.choice([2, 2000]))
    job = Counting(listed=rng.choice([1, 7, 50]), buckets=rng.choice([1, 4]))
    cuts = sorted(rng.sample(range(1, len(records)), rng.randrange(min(5, len(records)))))
    tasks = [
        tables_of(job, records[start:end], rng.choice([1, 3, 1000]))
        for start, end in pairwise([0, *cuts, len(records)])
    ]
    rng.shuffle(tasks)
    found = results(job, *tasks)
    assert not found[Kind.UNORDERED].shape[1]
    assert_counted(found, records, job.listed)


def test_what_is_too_much_to_keep_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tables, counting):
        monkeypatch.setattr(module, "MOST_ROWS", 64)
    monkeypatch.setattr(tables, "_MOST_PACKED", 10)
    rng = random.Random(1)
    records = records_of(rng, 3000, keys=2500)
    job = Counting(listed=5, buckets=3)
    tables_on_their_way = tables_of(job, records, 50)
    assert max(each.table.shape[1] for each in tables_on_their_way) <= 10
    assert sum(each.kind is Kind.KEYS for each in tables_on_their_way) > 100
    assert_counted(results(job, tables_on_their_way), records, job.listed)


@pytest.mark.parametrize("most", [counting.MOST_RUNS, 100])
def test_partitions_out_of_order_are_named(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Only these are read once more; what no order changes is counted all the same."""
    monkeypatch.setattr(counting, "MOST_RUNS", most)
    rng = random.Random(2)
    records = records_of(rng, 1500, partitions=3)
    shuffled = [each for each in records if each.partition == 1]
    rng.shuffle(shuffled)
    twice = next(each for each in records if each.partition == 2)
    job = Counting(listed=5, buckets=1)
    in_order = [each for each in records if each.partition != 1]
    found = results(job, tables_of(job, shuffled, 100), tables_of(job, in_order, 100), tables_of(job, [twice], 1))
    assert found[Kind.UNORDERED][0].tolist() == [1, 2]
    assert [each.partition for each in reports(found[Kind.RUNS])] == [0]
    assert set(found[Kind.GAPS][0].tolist()) == {0}
    assert_lists(found, [*records, twice], job.listed)


def test_periods_are_as_long_as_they_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all tasks the longest; a thousand years are not short enough for whatever a producer may send."""
    monkeypatch.setattr(periods, "MOST_PERIODS", 20)
    some, others = periods.Periods(), periods.Periods()
    times = 1_700_000_000_000_000 + np.arange(300) * HOUR_US
    some.add_records(np.zeros(300, np.int64), times, np.full(300, 2))
    others.add_records(np.zeros(5, np.int64), times[:5], np.full(5, 2))
    assert (some.hours, others.hours) == (24, 1)
    others.add_table(some.table)
    found = periods.reports(others.table)
    assert others.hours == 24
    assert (sum(each.records for each in found), sum(each.size_bytes for each in found)) == (305, 610)
    days = Counter(int(time) // (24 * HOUR_US) for time in [*times, *times[:5]])
    assert {each.start_ms // 86_400_000: each.records for each in found} == days
    some.add_records(np.arange(1000) % 50, np.arange(1000) * 9_000_000 * HOUR_US // 1000, np.full(1000, 1))
    assert some.hours == periods.HOURS[-1]
    assert sum(each.records for each in periods.reports(some.table)) == 1300


def test_the_longest_period_is_long_enough_for_any_timestamps() -> None:
    assert all(longer % shorter == 0 for shorter, longer in pairwise(periods.HOURS))
    longest_us = periods.HOURS[-1] * HOUR_US
    assert longest_us < 1 << 63
    assert {time // longest_us for time in (-(1 << 63), -1, 0, (1 << 63) - 1)} == {-2, -1, 0, 1}
