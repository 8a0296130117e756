"""Each oracle can fail: it is given states of which one thing is wrong."""

from __future__ import annotations

import logging
import random
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pytest
import trio

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.messages.metadata_records import NoOpRecord, TopicRecord
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.sim.process_disk import ProcessDisk
from pykbroker.storage.segments.leader_epochs import EpochEntry
from tests.replication.simulation.invariants import Violated

from .oracles import loop
from .oracles.images import Images
from .oracles.lines import MOST_LINES, Lines
from .oracles.quiet import check_lines, check_requests, check_steps, most_in_window
from .oracles.replicas import Replica, check_replicas
from .oracles.resources import OpenFiles, census, check_files
from .oracles.topic_order import ALTER, CREATE, DELETE, Mutation, is_linearizable
from .oracles.traffic import MOST_IN_VAIN, Asked, Traffic


def batch(offset: int, *values: str, epoch: int = 0, key: bytes | None = None, producer_id: int = -1) -> bytes:
    return encode_batch(
        [Record(key=key, value=value.encode(), timestamp=1) for value in values],
        base_offset=offset,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        is_transactional=producer_id >= 0,
    )


def marker(offset: int, producer_id: int, kind: ControlRecordType) -> bytes:
    data = encode_end_transaction_batch(
        EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=1
    )
    return offset.to_bytes(8, "big") + data[8:]


def replica(number: int, *batches: bytes) -> Replica:
    parsed = list(iter_batches(b"".join(batches)))
    epochs: dict[int, int] = {}
    for each in parsed:
        epochs.setdefault(each.header.partition_leader_epoch, each.header.base_offset)
    entries = [EpochEntry(epoch, start) for epoch, start in epochs.items()]
    return Replica(f"node {number}", 0, parsed[-1].header.next_offset, parsed, entries)


def check(*replicas: Replica, leader: str | None = "node 1", is_compacted: bool = False) -> None:
    check_replicas("orders-0", replicas, leader=leader, is_compacted=is_compacted)


LOG = batch(0, "a", "b"), batch(2, "c", epoch=1)
ONE, TWO = replica(1, *LOG), replica(2, *LOG)


def test_replicas_of_the_same_batches_agree() -> None:
    check(ONE, TWO)


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        ("Batches", replica(2, batch(0, "a", "B"), LOG[1])),
        ("Batches", replica(2, batch(0, "a"), batch(1, "b"), LOG[1])),
        ("LogEnds", replica(2, LOG[0])),
        ("LeaderEpochs", replace(TWO, epochs=[EpochEntry(0, 0)])),
        ("LeaderEpochs", replace(TWO, epochs=[EpochEntry(0, 0), EpochEntry(1, 1)])),
        ("Producers", replace(TWO, producers={7: (2, 0)})),
        ("LogStarts", replace(TWO, log_start_offset=1)),
    ],
)
def test_a_replica_that_differs_is_found(rule: str, other: Replica) -> None:
    with pytest.raises(Violated, match=f"^{rule}"):
        check(ONE, other)


def test_epochs_that_both_replicas_have_wrong_are_found_in_the_batches() -> None:
    wrong = [EpochEntry(0, 0)]
    with pytest.raises(Violated, match=r"^LeaderEpochs"):
        check(replace(ONE, epochs=wrong), replace(TWO, epochs=wrong))


def test_a_follower_whose_retention_has_deleted_segments_begins_later_and_knows_no_older_producers() -> None:
    check(
        replace(ONE, producers={7: (1, 0)}),
        replace(TWO, log_start_offset=2, starts_at=frozenset({0, 2}), epochs=[EpochEntry(1, 2)]),
    )


def test_a_leader_that_begins_later_than_its_follower_is_found() -> None:
    with pytest.raises(Violated, match=r"^LogStarts"):
        check(replace(ONE, log_start_offset=2, epochs=[EpochEntry(1, 2)]), TWO)


KEYED = batch(0, "old", key=b"k"), batch(1, "new", key=b"k")


def test_what_one_replica_has_compacted_says_the_same() -> None:
    check(replica(1, *KEYED), replica(2, KEYED[1]), is_compacted=True)


def test_a_value_that_only_one_compacted_replica_has_is_found() -> None:
    with pytest.raises(Violated, match=r"^Batches"):
        check(replica(1, *KEYED), replica(2, KEYED[0], batch(1, "other", key=b"k")), is_compacted=True)


def test_records_of_aborted_transactions_say_nothing() -> None:
    open_and_aborted = batch(2, "gone", key=b"k", producer_id=5), marker(3, 5, ControlRecordType.ABORT)
    check(replica(1, *KEYED, *open_and_aborted), replica(2, *KEYED, open_and_aborted[1]), is_compacted=True)
    committed = batch(2, "there", key=b"k", producer_id=5), marker(3, 5, ControlRecordType.COMMIT)
    with pytest.raises(Violated, match=r"^Batches"):
        check(replica(1, *KEYED, *committed), replica(2, *KEYED, committed[1]), is_compacted=True)


# Images and topics


def image_of(*topics: str) -> MetadataImage:
    image = MetadataImage()
    for offset, topic in enumerate(topics):
        image.replay(TopicRecord(name=topic, topic_id=topic.encode().ljust(16)), offset)
    return image


def test_another_image_at_the_same_offset_is_found() -> None:
    images = Images()
    images.check(1, 0, 1, image_of("a"))
    images.check(2, 0, 1, image_of("a"))
    with pytest.raises(Violated, match=r"^StateMachineSafety"):
        images.check(3, 0, 1, image_of("b"))


def test_what_was_published_stays_as_it_was() -> None:
    images, image = Images(), image_of("a")
    images.check(1, 0, 1, image)
    image.replay(TopicRecord(name="b", topic_id=bytes(16)), 1)
    images.check(1, 1, 2, image)
    images.check(2, 0, 1, image_of("a"))
    with pytest.raises(Violated, match=r"^StateMachineSafety"):
        images.check(2, 1, 2, image_of("a"))


def test_a_published_offset_that_goes_back_is_found() -> None:
    image = image_of("a")
    image.replay(NoOpRecord(), 1)
    with pytest.raises(Violated, match=r"^MonotonicImage"):
        Images().check(1, 2, 1, image)


def mutations(*history: tuple[str, int, float, float | None]) -> list[Mutation]:
    return [
        Mutation(kind, "t", value, start) if end is None else Mutation(kind, "t", value, start, end)
        for kind, value, start, end in history
    ]


CREATED = (CREATE, 1, 0.0, 1.0)


@pytest.mark.parametrize(
    ("history", "final"),
    [
        ([], None),
        ([CREATED], 1),
        ([CREATED, (ALTER, 2, 1.5, 2.0)], 2),
        ([CREATED, (ALTER, 2, 1.5, 3.0), (ALTER, 3, 2.0, 2.5)], 2),
        ([CREATED, (ALTER, 2, 1.5, 3.0), (ALTER, 3, 2.0, 2.5)], 3),
        ([CREATED, (DELETE, 0, 1.5, None)], 1),
        ([CREATED, (DELETE, 0, 1.5, None)], None),
        ([CREATED, (DELETE, 0, 1.5, None), (CREATE, 2, 2.0, 3.0)], 2),
        ([(CREATE, 1, 0.0, 3.0), (DELETE, 0, 1.0, 2.0)], 1),  # carried out before and once more behind the deletion
    ],
)
def test_histories_that_one_order_explains(history: list[tuple[str, int, float, float | None]], final: int) -> None:
    assert is_linearizable(mutations(*history), final)


@pytest.mark.parametrize(
    ("history", "final"),
    [
        ([CREATED], None),
        ([CREATED], 2),
        ([CREATED, (ALTER, 2, 1.5, 2.0), (ALTER, 3, 2.5, 3.0)], 2),
        ([CREATED, (CREATE, 2, 1.5, 2.0)], 2),
        ([CREATED, (DELETE, 0, 1.5, 2.0)], 1),
        ([(DELETE, 0, 0.0, 1.0), (CREATE, 1, 1.5, 2.0)], 1),
        ([CREATED, (CREATE, 2, 2.0, 3.0), (DELETE, 0, 3.5, None)], 2),
    ],
)
def test_histories_that_no_order_explains(history: list[tuple[str, int, float, float | None]], final: int) -> None:
    assert not is_linearizable(mutations(*history), final)


# What repeats


def test_a_request_that_brings_nothing_all_the_time_is_a_hot_loop() -> None:
    async def fail(pause_s: float) -> Traffic:
        traffic = Traffic()
        for _ in range(2 * MOST_IN_VAIN):
            traffic.note(Asked("broker-1", "broker 2", "Fetch"), "ConnectionRefused")
            traffic.note(Asked("broker-1", "broker 3", "Fetch"), "", has_news=True)
            traffic.note(Asked("broker-1", "broker 4", "BrokerHeartbeat"), "")
            await trio.sleep(pause_s)
        return traffic

    trio.run(fail, 0.01, clock=trio.testing.MockClock(autojump_threshold=0)).check_hot_loops()
    found = trio.run(fail, 0.001, clock=trio.testing.MockClock(autojump_threshold=0))
    assert [each.partition(":")[0] for each in found.hot] == [
        "Fetch from broker-1 to broker 2",
        "BrokerHeartbeat from broker-1 to broker 4",
    ]
    with pytest.raises(Violated, match=r"^HotLoop: Fetch from broker-1 to broker 2"):
        found.check_hot_loops()


FETCH = Asked("broker-1", "broker 2", "Fetch")


def test_requests_that_repeat_in_a_quiet_cluster_are_found() -> None:
    check_requests(Counter({(FETCH, ""): most_in_window(FETCH)}))
    for wrong in (
        {(FETCH, ""): most_in_window(FETCH) + 1},
        {(FETCH, "NOT_LEADER_OR_FOLLOWER"): 1},
        {(Asked("broker-1", "controller 2", "AlterPartition"), ""): 1},
    ):
        with pytest.raises(Violated, match=r"^Repeats"):
            check_requests(Counter(wrong))


def test_a_line_that_comes_all_the_time_is_found_whatever_is_switched_off() -> None:
    async def say(count: int) -> None:
        for _ in range(count):
            logging.getLogger("pykbroker.somewhere").info("again")

    for count in (MOST_LINES, MOST_LINES + 1):
        lines = Lines()
        with lines.watching():
            trio.run(say, count)
        assert lines.counts == {(logging.INFO, "pykbroker.somewhere", "again"): count}
        assert bool(lines.hot) == (count > MOST_LINES)
    with pytest.raises(Violated, match=r"^HotLines: .*somewhere: again"):
        lines.check_hot_lines()


def test_lines_that_repeat_in_a_quiet_cluster_are_found() -> None:
    check_lines(Counter({(logging.INFO, "pykbroker", "once"): 1}))
    for level, count in ((logging.INFO, 100), (logging.WARNING, 1)):
        with pytest.raises(Violated, match=r"^QuietLog"):
            check_lines(Counter({(level, "pykbroker", "again"): count}))


def test_a_task_that_wakes_all_the_time_is_found() -> None:
    check_steps(Counter({"task": 100}))
    with pytest.raises(Violated, match=r"^QuietTasks: task"):
        check_steps(Counter({"task": 10_000}))


async def _wake_all_the_time() -> None:
    while True:
        await trio.lowlevel.checkpoint()


def test_a_loop_that_turns_while_time_stands_is_stopped() -> None:
    async def run() -> None:
        with loop.moving():
            await trio.sleep(1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_wake_all_the_time)

    with (
        patch.object(loop, "MOST_TURNS", 100),
        patch.object(loop, "_NAMED_BEHIND", 50),
        pytest.raises(Violated, match=r"^NoStandstill: .*_wake_all_the_time"),
    ):
        trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


# What is held


def test_the_census_counts_what_the_parts_of_a_node_reach() -> None:
    assert census(PartOfNode()) == {"PartOfNode.by_id": 2 + 1, "PartOfNode.world": 0 + 2}


class PartOfNode:
    """Images are compared as wholes, and the simulated world is none of the node's."""

    __module__ = "pykbroker.server"
    __slots__ = ("__weakref__", "by_id", "world")

    def __init__(self, child: PartOfNode | None = None) -> None:
        self.by_id: dict[int, object] = {1: child or PartOfNode(self)}
        self.world: list[object] = []
        if child is None:
            self.by_id[2] = [self]
        else:
            self.world += image_of("a"), ProcessDisk(SimulatedDisk(random.Random(1)), lambda: None)


def test_files_that_are_open_twice_or_removed_are_found() -> None:
    files = OpenFiles()
    with files.watching():
        disk = ProcessDisk(SimulatedDisk(random.Random(1)), lambda: None)
        disk.make_directory("/data")
        first = disk.open("/data/log", create=True)
        check_files(1, disk, files)
        second = disk.open("/data/log")
        with pytest.raises(Violated, match="several times"):
            check_files(1, disk, files)
        second.close()
        disk.remove("/data/log")
        with pytest.raises(Violated, match="removed"):
            check_files(1, disk, files)
        first.close()
        check_files(1, disk, files)
