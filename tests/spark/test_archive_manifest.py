"""The manifest of an archive: what its commits add up to, and that it comes back from its JSON."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.spark.archiving.manifest import (
    ArchivedFile,
    ArchiveState,
    Commit,
    PartitionState,
    Read,
    Share,
    commit_text,
    parse_commit,
    parse_state,
    state_text,
)
from pykbroker.spark.errors import ArchiveDamaged
from pykbroker.spark.records import EMPTY_CHECKSUM, add_checksums, checksum_text

SHARES = st.builds(
    Share,
    records=st.integers(1, 1 << 40),
    checksum=st.integers(0, (1 << 64) - 1).map(checksum_text),
    size_bytes=st.integers(0, 1 << 50),
    first_offset=st.integers(0, 1 << 62),
    last_offset=st.integers(0, 1 << 62),
    first_timestamp_ms=st.integers(-1, 1 << 50),
    last_timestamp_ms=st.integers(-1, 1 << 50),
)
PARTITIONS = st.integers(0, 2)
TOPICS = st.sampled_from(["orders", "2024", "a.b-c_d"])
READS = st.dictionaries(
    PARTITIONS,
    st.builds(
        Read,
        start_offset=st.integers(0, 9),
        next_offset=st.integers(10, 1 << 62),
        leader_epoch=st.integers(-1, 1 << 30),
        lost=st.lists(st.tuples(st.integers(0, 5), st.integers(6, 9)), max_size=2).map(tuple),
    ),
    min_size=3,
    max_size=3,
)


@st.composite
def commits(draw: st.DrawFn, number: int) -> Commit:
    topics = draw(st.lists(TOPICS, unique=True, max_size=2))
    return Commit(
        number=number,
        at_ms=draw(st.integers(0, 1 << 50)),
        cluster_id="a cluster",
        isolation_level="read_committed",
        staging=f"_pykbroker/staging/{number:020d}-run",
        topic_ids={topic: topic.encode().hex() for topic in topics},
        reads={topic: draw(READS) for topic in topics},
        added=tuple(
            ArchivedFile(
                f"topic={topic}/date=2026-11-25/{number}", topic, 1000, draw(st.dictionaries(PARTITIONS, SHARES))
            )
            for topic in topics
        ),
    )


@given(st.integers(1, 5).flatmap(lambda count: st.tuples(*(commits(number) for number in range(1, count + 1)))))
def test_what_is_written_is_what_is_read(log: tuple[Commit, ...]) -> None:
    state = ArchiveState()
    for commit in log:
        assert parse_commit(commit_text(commit), "commit") == commit
        state = state.after(commit)
        assert parse_state(state_text(state), "snapshot") == state
    for name, topic in state.topics.items():
        for partition, at in topic.partitions.items():
            shares = [
                file.shares[partition]
                for each in log
                for file in each.added
                if file.topic == name and partition in file.shares
            ]
            assert at.records == sum(share.records for share in shares)
            assert int(at.checksum, 16) == sum(int(share.checksum, 16) for share in shares) % 2**64


def one_commit() -> Commit:
    share = Share(3, checksum_text(-1), 30, 0, 2, 5, 7)
    file = ArchivedFile("topic=orders/date=2026-11-25/a", "orders", 100, {0: share})
    reads = {"orders": {0: Read(0, 5, 2)}}
    return Commit(1, 0, "cluster", "read_committed", "staging", {"orders": "aa"}, reads, (file,))


def test_merged_files_change_no_partition() -> None:
    before = ArchiveState().after(one_commit())
    merged = replace(one_commit().added[0], path="topic=orders/date=2026-11-25/b")
    after = before.after(
        replace(one_commit(), number=2, topic_ids={}, reads={}, added=(merged,), removed=(one_commit().added[0].path,))
    )
    assert after.topics == before.topics
    assert list(after.files) == [merged.path]
    assert after.topics["orders"].partitions[0] == PartitionState(0, 5, 2, merged.shares[0])


def test_a_commit_that_does_not_follow_is_refused() -> None:
    state = ArchiveState().after(one_commit())
    with pytest.raises(ArchiveDamaged, match="Commit 3 of the archive follows 1: one is missing"):
        state.after(replace(one_commit(), number=3))
    with pytest.raises(ArchiveDamaged, match="removes topic=x, which it does not have"):
        state.after(replace(one_commit(), number=2, removed=("topic=x",)))


@given(st.data())
def test_a_manifest_that_is_none_is_refused(data: st.DataObject) -> None:
    given = json.loads(commit_text(one_commit()))
    name = data.draw(st.sampled_from(["version", "topic_ids", "reads", "added", "removed"]))
    given[name] = data.draw(st.sampled_from([None, 7.5, {"a": 1}, {"orders": [1]}, [[1]], [{}]]))
    with contextlib.suppress(ArchiveDamaged):
        ArchiveState().after(parse_commit(json.dumps(given), "00.json"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version":2}', '{"version":1}', "\x00"])
def test_a_file_that_is_no_manifest_is_named(text: str) -> None:
    for parse in (parse_commit, parse_state):
        with pytest.raises(ArchiveDamaged, match=r"00\.json"):
            parse(text, "00.json")


def test_checksums_go_around() -> None:
    assert checksum_text(-1) == "ffffffffffffffff"
    assert add_checksums("ffffffffffffffff", checksum_text(2)) == checksum_text(1)
    assert PartitionState(0, 0).checksum == EMPTY_CHECKSUM
