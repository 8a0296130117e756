"""The index of aborted transactions: what is in the file, and that nobody sees their records whatever becomes of it."""

import errno
from functools import partial
from random import Random

import pytest
from construct import GreedyRange

from pykbroker.protocol.descriptions.index_files import ABORTED_TRANSACTION
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import NoRoom
from pykbroker.storage.files.faulty_disk import Fault, FaultyDisk
from pykbroker.storage.log.log import Log
from tests.storage.batches import NOW_MS, batch, config, open_log
from tests.storage.cleaning import clean
from tests.storage.recording_disk import RecordingDisk, Resize, Sync, SyncNames, Write
from tests.storage.transactions import ABORT, COMMIT, Transactions, read_committed

PATH = "/data/t-0"
SMALL = config(index_interval_bytes=300)
COMPACT = config(index_interval_bytes=300, cleanup_policy="compact")


def index_path(base_offset: int, suffix: str = "") -> str:
    return f"{PATH}/{base_offset:020d}.txnindex{suffix}"


def entries(disk: SimulatedDisk, base_offset: int) -> list[tuple[int, ...]]:
    """As the second description of the format reads them."""
    parsed = GreedyRange(ABORTED_TRANSACTION).parse(disk.read_file(index_path(base_offset)))
    assert len(parsed) * ABORTED_TRANSACTION.sizeof() == len(disk.read_file(index_path(base_offset)))
    assert all(each.version == 0 for each in parsed)
    return [(each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset) for each in parsed]


def index_files(disk: SimulatedDisk) -> dict[str, bytes]:
    return {name: disk.read_file(f"{PATH}/{name}") for name in disk.list_directory(PATH) if "txnindex" in name}


def history(log: Log, seed: int = 1, steps: int = 150) -> Transactions:
    transactions = Transactions(log)
    transactions.go_on_at_random(Random(seed), steps)
    assert transactions.aborted
    assert transactions.visible
    assert len(log.segments) > 2
    return transactions


def check(transactions: Transactions, log: Log) -> None:
    """From many places on, in small and large portions."""
    for start in range(0, log.log_end_offset, 7):
        expected = [offset for offset in transactions.visible if offset >= start]
        assert read_committed(log, transactions.stable_offset, start=start) == expected
    assert read_committed(log, transactions.stable_offset, max_bytes=1 << 20) == transactions.visible


def test_the_file_appears_with_the_first_aborted_transaction_that_has_records(disk: SimulatedDisk) -> None:
    transactions = Transactions(open_log(disk, PATH))
    transactions.write(1)
    transactions.end(1, COMMIT)
    transactions.end(2, ABORT)
    assert not disk.exists(index_path(0))
    transactions.write(2)
    transactions.write(3)
    transactions.end(2, ABORT)
    transactions.end(3, ABORT)
    assert entries(disk, 0) == [(2, 3, 5, 4), (3, 4, 6, 7)]


def test_the_entry_is_in_the_segment_of_the_marker(disk: SimulatedDisk) -> None:
    transactions = Transactions(open_log(disk, PATH))
    transactions.write(1)
    transactions.log.roll(NOW_MS)
    transactions.end(1, ABORT)
    assert list(index_files(disk)) == [f"{1:020d}.txnindex"]
    assert entries(disk, 1) == [(1, 0, 1, 2)]
    assert read_committed(transactions.log, 2) == []


@pytest.mark.parametrize(("upper_bound", "producers"), [(1, [1]), (2, [1, 2]), (3, [1, 2])])
def test_a_reader_is_told_of_every_transaction_that_begins_below_its_upper_bound(
    disk: SimulatedDisk, upper_bound: int, producers: list[int]
) -> None:
    """The first marker says that a transaction was open from offset 1 on: what is read up to there may be its."""
    transactions = Transactions(open_log(disk, PATH))
    transactions.write(1)
    transactions.write(2)
    transactions.end(1, ABORT)
    transactions.end(2, ABORT)
    assert entries(disk, 0) == [(1, 0, 2, 1), (2, 1, 3, 4)]
    found = transactions.log.aborted_transactions(0, upper_bound)
    assert [each.producer_id for each in found] == producers


def test_a_truncation_forgets_the_transactions_that_ended_behind_it(disk: SimulatedDisk) -> None:
    """What is appended next has their offsets: entries of before would hide it."""
    transactions = Transactions(open_log(disk, PATH))
    transactions.write(1)
    transactions.end(1, ABORT)
    transactions.write(2)
    transactions.end(2, ABORT)
    transactions.log.truncate_to(2)
    assert entries(disk, 0) == [(1, 0, 1, 2)]
    assert [each.producer_id for each in transactions.log.aborted_transactions(0, 10)] == [1]
    transactions.log.truncate_to(1)
    assert not disk.exists(index_path(0))


@pytest.mark.parametrize("seed", range(5))
def test_readers_see_what_was_committed_and_nothing_else(disk: SimulatedDisk, seed: int) -> None:
    transactions = history(open_log(disk, PATH, SMALL), seed)
    check(transactions, transactions.log)


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_a_restart_changes_nothing(disk: SimulatedDisk, clean_shutdown: bool) -> None:
    transactions = history(open_log(disk, PATH, SMALL))
    files = index_files(disk)
    transactions.log.close()
    again = open_log(disk, PATH, SMALL, clean_shutdown=clean_shutdown)
    assert index_files(disk) == files
    check(transactions, again)
    assert again.first_unstable_offset == transactions.stable_offset


def test_a_power_cut_leaves_what_was_flushed(disk: SimulatedDisk) -> None:
    """The index of a segment that is not looked at any more must be as durable as the segment."""
    transactions = history(open_log(disk, PATH, SMALL))
    transactions.log.roll(NOW_MS)
    transactions.log.flush()
    files = index_files(disk)
    disk.crash()
    again = open_log(disk, PATH, SMALL, recovery_point=transactions.log.recovery_point)
    assert index_files(disk) == files
    check(transactions, again)


def test_a_start_behind_a_kill_leaves_an_index_as_it_is_that_tells_what_the_log_tells() -> None:
    """Of thousands of logs most were flushed and not written to since: nothing of them is to be made durable."""
    disk = RecordingDisk()
    disk.make_directory(PATH)
    transactions = history(open_log(disk, PATH, SMALL))
    log = transactions.log
    log.flush()
    log.abandon()
    indexes = {name: disk.find(f"{PATH}/{name}") for name in disk.list_directory(PATH) if name.endswith("txnindex")}
    begun = len(disk.journal)
    again = open_log(disk, PATH, SMALL, recovery_point=log.recovery_point)
    done = disk.journal[begun:]
    assert not [each for each in done if isinstance(each, Sync | SyncNames)]
    assert not [each for each in done if isinstance(each, Write | Resize) and each.inode in indexes.values()]
    assert {name: disk.find(f"{PATH}/{name}") for name in indexes} == indexes
    check(transactions, again)


def test_a_transaction_that_an_index_lacks_costs_none_of_the_others(disk: SimulatedDisk) -> None:
    """What is right in front of it is taken over, and all of it is durable."""
    transactions = history(open_log(disk, PATH, config(segment_bytes=1 << 20)), steps=60)
    log = transactions.log
    log.flush()
    files = index_files(disk)
    name, data = max(files.items(), key=lambda each: len(each[1]))
    assert len(data) >= 3 * 34
    for missing in range(len(data) // 34):
        disk.replace_file(f"{PATH}/{name}", data[: missing * 34] + data[(missing + 1) * 34 :])
        again = open_log(disk, PATH)
        assert index_files(disk) == files
        check(transactions, again)
        again.abandon()
        disk.crash()
        assert index_files(disk) == files


def test_a_follower_writes_the_same_files(disk: SimulatedDisk) -> None:
    transactions = history(open_log(disk, PATH, SMALL))
    copy = open_log(disk, "/data/copy-0", SMALL)
    for segment in transactions.log.segments:
        data = segment.file.read_at(0, segment.size)
        if data:
            copy.append_as_follower(data)
            copy.roll(NOW_MS)
    for name, data in index_files(disk).items():
        assert disk.read_file(f"/data/copy-0/{name}") == data
    check(transactions, copy)


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_an_index_with_any_damage_is_built_anew(disk: SimulatedDisk, clean_shutdown: bool) -> None:
    transactions = history(open_log(disk, PATH, SMALL), steps=60)
    files = index_files(disk)
    transactions.log.close()
    for name, data in files.items():
        for damaged in (b"", data[:-1], data + b"\0", data[34:] + data[:34], b"x" * len(data), bytes(len(data))):
            if damaged == data:
                continue
            disk.replace_file(f"{PATH}/{name}", damaged)
            again = open_log(disk, PATH, SMALL, clean_shutdown=clean_shutdown)
            assert index_files(disk) == files
            again.close()


def test_a_flipped_bit_anywhere_in_an_index_shows_no_aborted_record(disk: SimulatedDisk) -> None:
    transactions = history(open_log(disk, PATH, SMALL), steps=60)
    files = index_files(disk)
    transactions.log.close()
    name, data = next(iter(files.items()))
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x04
        disk.replace_file(f"{PATH}/{name}", bytes(damaged))
        again = open_log(disk, PATH, SMALL, clean_shutdown=True)
        assert read_committed(again, transactions.stable_offset) == transactions.visible, position
        again.close()


def test_with_the_other_indexes_the_transaction_index_is_built_anew_too(disk: SimulatedDisk) -> None:
    transactions = history(open_log(disk, PATH, SMALL))
    files = index_files(disk)
    transactions.log.close()
    for name in disk.list_directory(PATH):
        if name.endswith("index"):
            disk.remove(f"{PATH}/{name}")
    again = open_log(disk, PATH, SMALL, clean_shutdown=False, recovery_point=transactions.log.segments[-1].base_offset)
    assert index_files(disk) == files
    check(transactions, again)


@pytest.mark.parametrize("seed", range(3))
def test_truncation_takes_what_ended_behind(disk: SimulatedDisk, seed: int) -> None:
    log = open_log(disk, PATH, SMALL)
    transactions = Transactions(log)
    states = []
    rng = Random(seed)
    for _ in range(60):
        transactions.go_on_at_random(rng, 1)
        states.append((log.log_end_offset, transactions.visible, transactions.stable_offset))
    for end, visible, stable_offset in reversed(states):
        log.truncate_to(end)
        assert read_committed(log, stable_offset) == visible
        assert all(size % 34 == 0 and size for size in map(len, index_files(disk).values()))


def test_retention_takes_the_index_with_its_segment(disk: SimulatedDisk) -> None:
    log = open_log(disk, PATH, config(retention_ms=1000, index_interval_bytes=300))
    transactions = Transactions(log)
    transactions.write(1)
    transactions.end(1, ABORT)
    log.roll(NOW_MS)
    paths = log.delete_old_segments(log.log_end_offset, NOW_MS + 5000)
    assert index_path(0, ".deleted") in paths
    for path in paths:
        disk.remove(path)
    assert not index_files(disk)


def test_cleaning_keeps_the_entry_until_nothing_is_left_of_the_transaction(disk: SimulatedDisk) -> None:
    """Records go in the first round, the marker a round later and with it what pointed to it."""
    log = open_log(disk, PATH, COMPACT)
    transactions = Transactions(log)
    transactions.write(1)
    transactions.write(2)
    transactions.end(1, ABORT)
    transactions.end(2, COMMIT)
    transactions.write(1)
    transactions.end(1, COMMIT)
    log.roll(NOW_MS)
    before = entries(disk, 0)
    end = clean(disk, log)
    assert entries(disk, 0) == before
    assert read_committed(log, log.log_end_offset) == [4]
    log.append_as_leader(batch(), 0, NOW_MS)
    log.roll(NOW_MS)
    clean(disk, log, end)
    assert not [name for name in index_files(disk) if name.startswith(f"{0:020d}")]
    assert read_committed(log, log.log_end_offset) == [log.log_end_offset - 1]


@pytest.mark.parametrize("seed", range(3))
def test_cleaned_logs_show_no_aborted_records_and_reopen(disk: SimulatedDisk, seed: int) -> None:
    log = open_log(disk, PATH, COMPACT)
    transactions = Transactions(log)
    rng = Random(seed)
    end = 0
    for round_ in range(3):
        transactions.go_on_at_random(rng, 60)
        transactions.end(next(iter(transactions.open), 1), COMMIT)
        while transactions.open:
            transactions.end(next(iter(transactions.open)), ABORT)
        log.roll(NOW_MS)
        end = clean(disk, log, end, stable=transactions.stable_offset, now_ms=NOW_MS + round_)
        seen = read_committed(log, transactions.stable_offset)
        assert set(seen) <= set(transactions.visible)
        assert transactions.visible[-1] in seen, "all have one key"
    files = index_files(disk)
    log.close()
    for clean_shutdown in (True, False):
        again = open_log(disk, PATH, COMPACT, clean_shutdown=clean_shutdown, recovery_point=log.recovery_point)
        assert index_files(disk) == files
        assert read_committed(again, transactions.stable_offset) == seen
        again.close()


def test_an_entry_that_finds_no_room_waits_and_nothing_is_appended_before_it(disk: SimulatedDisk) -> None:
    faulty = FaultyDisk(disk, Random(1))
    log = open_log(faulty, PATH)
    transactions = Transactions(log)
    transactions.write(1)
    faulty.faults = [Fault(errno.ENOSPC, frozenset(("create", "append")), path=".txnindex", times=None)]
    transactions.end(1, ABORT)
    end_offset = log.log_end_offset
    assert read_committed(log, end_offset) == []
    for refused in (partial(log.append_as_leader, batch(1), 0, NOW_MS), log.flush, partial(log.roll, NOW_MS)):
        with pytest.raises(NoRoom):
            refused()
    assert (log.log_end_offset, log.recovery_point) == (end_offset, 0)
    faulty.faults = []
    log.append_as_leader(batch(1), 0, NOW_MS)
    log.flush()
    assert log.recovery_point == log.log_end_offset
    assert [each[0] for each in entries(disk, 0)] == [1]
    assert read_committed(log, log.log_end_offset) == [end_offset]
