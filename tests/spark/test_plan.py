"""What a run that copies topics reads: where it goes on, what it refuses, and how batches share what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.spark.archiving.manifest import ArchiveState, PartitionState, TopicState
from pykbroker.spark.errors import ArchiveMismatch, RecordsLost
from pykbroker.spark.plan import Position, check_logs, next_batch, offsets_left, plan_after, plan_of
from pykbroker.spark.source import ClusterEnds, PartitionEnds, TopicEnds

TOPIC = "orders"
COPY = "the archive"


def cluster(*ends: tuple[int, int], topic_id: str = "aa", cluster_id: str = "cluster") -> ClusterEnds:
    """ends: where each partition begins and ends."""
    partitions = {number: PartitionEnds(start, end, 7) for number, (start, end) in enumerate(ends)}
    return ClusterEnds(cluster_id, {TOPIC: TopicEnds(TOPIC, topic_id, partitions)})


def archived(*ends: tuple[int, int]) -> ArchiveState:
    partitions = {number: PartitionState(start, end, 5) for number, (start, end) in enumerate(ends)}
    return ArchiveState(1, "cluster", "read_committed", {TOPIC: TopicState("aa", partitions)})


def test_a_first_run_begins_where_the_topic_begins() -> None:
    plan = plan_of({}, cluster((100, 200), (0, 50)), COPY, accept_loss=False)
    assert plan == {TOPIC: {0: Position(100, 100, 100, 200, 7), 1: Position(0, 0, 0, 50, 7)}}


def test_a_later_run_goes_on_where_the_archive_ends() -> None:
    plan = plan_of(archived((0, 150)).copied, cluster((100, 200), (0, 50)), COPY, accept_loss=False)
    assert plan == {TOPIC: {0: Position(0, 150, 150, 200, 7), 1: Position(0, 0, 0, 50, 7)}}


@pytest.mark.parametrize("state", [archived((0, 150)), archived((0, 300), (0, 40))])
def test_what_was_deleted_meanwhile_is_lost(state: ArchiveState) -> None:
    """In a partition that the archive has, and in one that came later."""
    now = cluster((160, 400), (50, 60)) if 1 not in state.topics[TOPIC].partitions else cluster((0, 400), (50, 60))
    with pytest.raises(RecordsLost, match="were deleted before they were read"):
        plan_of(state.copied, now, COPY, accept_loss=False)
    plan = plan_of(state.copied, now, COPY, accept_loss=True)
    assert plan[TOPIC][1].lost == ((plan[TOPIC][1].next_offset, 50),)


def test_what_is_not_the_topic_of_the_archive() -> None:
    archived((0, 1)).check_topics(cluster((0, 1), (0, 1)))
    ArchiveState().check_topics(cluster((0, 1)))
    for other, words in (
        (cluster((0, 1), cluster_id="other"), "is of the cluster cluster, not of other"),
        (cluster((0, 1), topic_id="bb"), "deleted and created again"),
    ):
        with pytest.raises(ArchiveMismatch, match=words):
            archived((0, 1)).check_topics(other)
    with pytest.raises(ArchiveMismatch, match="has 1 partitions, its archive 2"):
        archived((0, 1), (0, 1)).check_topics(cluster((0, 1)))


def test_a_log_that_was_cut_off_is_noticed() -> None:
    """By its end, and by its leader epochs where it has grown again behind the cut."""
    check_logs(archived((0, 150)).copied, cluster((0, 150)), {(TOPIC, 0): 150}, COPY)
    check_logs(archived((0, 150)).copied, cluster((0, 200)), {(TOPIC, 0): 200}, COPY)
    with pytest.raises(RecordsLost, match="orders-0 was cut off at offset 140"):
        check_logs(archived((0, 150)).copied, cluster((0, 140)), {}, COPY)
    with pytest.raises(RecordsLost, match="orders-0 was cut off at offset 120"):
        check_logs(archived((0, 150)).copied, cluster((0, 300)), {(TOPIC, 0): 120}, COPY)


@given(
    ends=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 1000)), min_size=1, max_size=20),
    most=st.integers(1, 5000),
)
def test_batches_read_all_once(ends: list[tuple[int, int]], most: int) -> None:
    plan = plan_of({}, cluster(*((start, start + size) for start, size in ends)), COPY, accept_loss=False)
    read: dict[int, list[tuple[int, int]]] = {}
    batches = 0
    while ranges := next_batch(plan, most):
        batches += 1
        taken = sum(end - start for start, end in ranges[TOPIC].values())
        assert 0 < taken <= most
        for partition, row in ranges[TOPIC].items():
            read.setdefault(partition, []).append(row)
        before, plan = offsets_left(plan), plan_after(plan, ranges)
        assert offsets_left(plan) == before - taken
    for partition, (start, size) in enumerate(ends):
        rows = read.get(partition, [])
        assert [first for first, _ in rows] == [start, *(end for _, end in rows[:-1])][: len(rows)]
        assert sum(end - first for first, end in rows) == size
    assert batches <= 2 * sum(size for _, size in ends) // most + 60
