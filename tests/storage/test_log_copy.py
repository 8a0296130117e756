"""A copy of a log in another directory, while its source goes on."""

from collections.abc import Iterator
from random import Random

import pytest

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.directories.partition_metadata import write_topic_id
from pykbroker.storage.log.log import Log
from pykbroker.storage.log.log_copy import LogCopy
from tests.storage.batches import NOW_MS, batch, config, open_log, read_all
from tests.storage.cleaning import clean, keyed
from tests.storage.crash_states import Survivors
from tests.storage.recording_disk import RecordingDisk

AT = TopicPartition("t", 0)
SOURCE, COPY = "/one/t-0", "/two/t-0.x-future"


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/one")
    disk.make_directory("/two")
    disk.sync_directory("/")
    return disk


def append(log: Log, *values: bytes, epoch: int = 0, **producer: int) -> None:
    log.append_as_leader(keyed(*((b"k" + value, value) for value in values), **producer), epoch, NOW_MS)


def catch_up(copy: LogCopy, max_bytes: int = 1) -> None:
    while (data := copy.next_slice(max_bytes, now_ms=NOW_MS)) is not None:
        copy.append(data)


def assert_same(copy: LogCopy) -> None:
    copy.finish()
    source, log = copy.source, copy.log
    assert read_all(log) == read_all(source)
    assert (log.log_start_offset, log.log_end_offset) == (source.log_start_offset, source.log_end_offset)
    assert (log.earliest_epoch, log.latest_epoch) == (source.earliest_epoch, source.latest_epoch)
    assert log.producers.producers.keys() == source.producers.producers.keys()


def new_copy(disk: SimulatedDisk, source: Log) -> LogCopy:
    return LogCopy(source, open_log(disk, COPY, source.config))


def test_a_copy_follows_what_is_appended_meanwhile(disk: SimulatedDisk) -> None:
    source = open_log(disk, SOURCE, config(segment_bytes=300))
    append(source, b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)
    source.roll(NOW_MS)
    copy = new_copy(disk, source)
    catch_up(copy)
    append(source, b"c", epoch=1)
    assert copy.offset_lag == 1
    source.assign_epoch_start_offset(2, source.log_end_offset)
    catch_up(copy)
    assert_same(copy)


def test_epochs_without_records_are_copied_as_well(disk: SimulatedDisk) -> None:
    """KAFKA-20961: a leader that has moved must know each epoch in which a follower may have fetched last."""
    source = open_log(disk, SOURCE, config())
    source.assign_epoch_start_offset(0, 0)
    append(source, b"a", epoch=1)
    source.assign_epoch_start_offset(3, 1)
    copy = new_copy(disk, source)
    catch_up(copy)
    copy.finish()
    assert copy.log.epochs == source.epochs
    assert [copy.log.end_offset_for_epoch(epoch) for epoch in (1, 2, 3)] == [(1, 1), (1, 1), (3, 1)]


def test_a_copy_of_a_log_that_starts_within_a_batch(disk: SimulatedDisk) -> None:
    source = open_log(disk, SOURCE, config())
    append(source, b"a", b"b", b"c")
    append(source, b"d")
    source.increment_log_start_offset(2)
    copy = new_copy(disk, source)
    catch_up(copy)
    assert_same(copy)


def test_a_copy_that_was_overtaken_by_retention_begins_behind_it(disk: SimulatedDisk) -> None:
    source = open_log(disk, SOURCE, config())
    append(source, b"a")
    copy = new_copy(disk, source)
    catch_up(copy)
    append(source, b"b")
    append(source, b"c")
    source.increment_log_start_offset(2)
    catch_up(copy)
    assert_same(copy)


def test_a_copy_follows_a_truncation(disk: SimulatedDisk) -> None:
    source = open_log(disk, SOURCE, config())
    for epoch, value in enumerate((b"a", b"b", b"c")):
        append(source, value, epoch=epoch)
    copy = new_copy(disk, source)
    catch_up(copy)
    source.truncate_to(1)
    append(source, b"x", b"y", epoch=5)
    catch_up(copy)
    assert_same(copy)


def test_a_copy_of_a_compacted_log_keeps_its_holes(disk: SimulatedDisk) -> None:
    source = open_log(disk, SOURCE, config(cleanup_policy="compact"))
    for value in (b"1", b"2", b"3"):
        source.append_as_leader(keyed((b"k", value)), 0, NOW_MS)
        source.roll(NOW_MS)
    clean(disk, source, None, now_ms=NOW_MS)
    copy = new_copy(disk, source)
    catch_up(copy)
    assert [record.offset for record in read_all(copy.log)] == [2]
    assert_same(copy)


@pytest.mark.parametrize("before", [0, 1])
def test_a_hole_at_the_end_is_kept_as_well(disk: SimulatedDisk, before: int) -> None:
    source = open_log(disk, SOURCE, config())
    for _ in range(before):
        append(source, b"a")
    source.skip_to(7, now_ms=NOW_MS)
    copy = new_copy(disk, source)
    catch_up(copy)
    assert_same(copy)
    append(copy.log, b"next")
    assert [record.offset for record in read_all(copy.log)] == [*range(before), 7]


def test_a_copy_goes_on_under_another_name(disk: SimulatedDisk) -> None:
    source = open_log(disk, SOURCE, config(segment_bytes=200))
    append(source, b"a")
    copy = new_copy(disk, source)
    catch_up(copy)
    copy.finish()
    disk.rename(COPY, "/two/t-0")
    log = copy.log
    log.move_to("/two/t-0", source.recovery_point)
    for value in (b"b", b"c", b"d"):
        append(log, value)
        log.roll(NOW_MS)
    log.flush()
    records = read_all(log)
    disk.crash()
    again = open_log(disk, "/two/t-0", config())
    assert read_all(again) == records
    assert len(records) == 4


def test_what_was_chosen_before_a_truncation_is_not_copied_after_it(disk: SimulatedDisk) -> None:
    """The thread that copies comes late: other batches lie at the place."""
    source = open_log(disk, SOURCE, config())
    for value in (b"a", b"b", b"c"):
        append(source, value)
    copy = new_copy(disk, source)
    catch_up(copy)
    append(source, b"d")
    chosen = copy.next_slice(1, now_ms=NOW_MS)
    assert chosen is not None
    source.truncate_to(1)
    for value in (b"x", b"y", b"z"):
        append(source, value, epoch=1)
    copy.append(chosen)
    catch_up(copy)
    assert_same(copy)


def test_an_empty_copy_follows_a_source_that_begins_within_a_batch_which_comes_later(disk: SimulatedDisk) -> None:
    """A follower begins anew where its leader's log starts, and once more where the batch there does."""
    source = open_log(disk, SOURCE, config())
    source.truncate_fully_and_start_at(8, now_ms=NOW_MS)
    copy = new_copy(disk, source)
    catch_up(copy)
    assert copy.log.log_start_offset == 8
    source.truncate_fully_and_start_at(6, now_ms=NOW_MS)
    source.append_as_follower(batch(3, base_offset=6))
    source.increment_log_start_offset(8)
    catch_up(copy)
    copy.finish()
    assert_same(copy)


def test_a_copy_truncates_past_epochs_that_its_source_never_had(disk: SimulatedDisk) -> None:
    source = open_log(disk, SOURCE, config())
    for epoch, values in ((0, b"abcde"), (2, b"fg")):
        for value in values:
            append(source, bytes([value]), epoch=epoch)
    copy = new_copy(disk, source)
    catch_up(copy)
    source.truncate_to(3)
    for epoch, values in ((1, b"mnopq"), (3, b"r")):
        for value in values:
            append(source, bytes([value]), epoch=epoch)
    catch_up(copy)
    assert_same(copy)


@pytest.mark.parametrize("appended_since", [b"", b"x", b"xyz"])
def test_a_copy_of_an_earlier_run_keeps_nothing_that_its_source_has_lost(
    disk: SimulatedDisk, appended_since: bytes
) -> None:
    """A power cut took from the source what the copy had flushed already."""
    source = open_log(disk, SOURCE, config())
    append(source, b"a")
    source.flush()
    for value in (b"b", b"c"):
        append(source, value)
    copy = new_copy(disk, source)
    catch_up(copy)
    copy.log.flush()
    disk.crash()
    source, log = open_log(disk, SOURCE, config()), open_log(disk, COPY, config())
    assert (source.log_end_offset, log.log_end_offset) == (1, 3)
    source.assign_epoch_start_offset(1, 1)
    for value in appended_since:
        append(source, bytes([value]), epoch=1)
    copy = LogCopy(source, log)
    catch_up(copy)
    assert_same(copy)


def copied(disk: RecordingDisk) -> LogDirectory:
    """With a copy of two records, which begins at the second one."""
    format_directory(disk, "/two", cluster_id="c", node_id=1, rng=Random(1))
    directory = LogDirectory.open(disk, "/two", rng=Random(1))
    log = directory.open_copy(AT, b"a" * 16, config(), now_ms=NOW_MS)
    append(log, b"a")
    append(log, b"b")
    log.flush()
    log.increment_log_start_offset(1)
    directory.checkpoint_log_start_offset(AT, log, 1)
    return directory


def after_a_crash(disk: RecordingDisk) -> Iterator[LogDirectory]:
    """Whatever it may leave."""
    survivors = Survivors.of_new_disk(disk)
    for operation in disk.journal:
        survivors.apply(operation)
    plain, others = survivors.choices("a copy", 0)
    for choice in plain + others:
        left, _ = survivors.state(choice).disk(disk)
        yield LogDirectory.open(left, "/two", rng=Random(1))


def test_where_a_log_begins_is_durable_in_its_new_directory_only_with_its_new_name() -> None:
    """Its old one does not know of a deletion that came in the last moment."""
    disk = RecordingDisk()
    directory = copied(disk)
    directory.promote_future(AT, 2)
    assert any(AT not in again.found for again in after_a_crash(disk))
    directory.checkpoint_log_start_offsets()
    assert all(AT in again.found for again in after_a_crash(disk))


def test_of_copies_that_an_earlier_run_has_begun_one_of_each_log_is_of_use(disk: SimulatedDisk) -> None:
    """Another one of the same log, and one that does not say whose it is, are deleted."""
    format_directory(disk, "/two", cluster_id="c", node_id=1, rng=Random(1))
    topic_id = b"i" * 16
    for name in ("t-0.a-future", "t-0.b-future", "t-1.c-future", "t-0.d-future"):
        disk.make_directory(f"/two/{name}")
        if name != "t-0.d-future":
            write_topic_id(disk, f"/two/{name}", topic_id, sync=True)
    directory = LogDirectory.open(disk, "/two", rng=Random(2), node_id=1)
    assert sorted(directory.futures.found) == [(topic_id, 0), (topic_id, 1)]
    kept = directory.futures.found[topic_id, 0]
    assert kept in ("t-0.a-future", "t-0.b-future")
    gone = {"t-0.a-future", "t-0.b-future", "t-0.d-future"} - {kept}
    assert sorted(directory.deleted_paths) == sorted(f"/two/{name.removesuffix('-future')}-delete" for name in gone)
