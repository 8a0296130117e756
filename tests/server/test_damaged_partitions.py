"""A damaged partition is quarantined with one line that says so; the others, and the next start, go on as ever."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from pykbroker.api.fetch import fetch
from pykbroker.api.list_offsets import list_offsets
from pykbroker.api.produce import produce
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.records.batch import iter_batches
from tests.api.api_node import ApiNode, batch, in_virtual_time

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
BATCHES = 20


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    node = ApiNode(tmp_path)
    for topic in ("hurt", "well"):
        node.create_topic(topic, segment_bytes="700")
        for number in range(BATCHES):
            node.append(topic, b"one %d" % number, b"two %d" % number, timestamp=1000 + number)
    return node


def log_files(node: ApiNode, topic: str = "hurt") -> list[Path]:
    return sorted((node.path / f"data/{topic}-0").glob("*.log"))


def flip(path: Path, position: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= bit
    path.write_bytes(data)


def fetched(node: ApiNode, topic: str, offset: int = 0, max_bytes: int = 1 << 20) -> tuple[int, list[int]]:
    """The error, and the base offsets of what came."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(max_bytes=1 << 20, max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[asked])])

    async def call() -> tuple[int, list[int]]:
        [answer] = (await node.call(fetch, request, 12)).responses[0].partitions
        batches = list(iter_batches(answer.records or b"", allow_partial=True))
        for each in batches:
            each.ensure_valid()
        return answer.error_code, [each.header.base_offset for each in batches]

    return in_virtual_time(call)


def read_all(node: ApiNode, topic: str, max_bytes: int = 1 << 20) -> tuple[int, list[int]]:
    """Until something is wrong or nothing is left."""
    found: list[int] = []
    while True:
        error, bases = fetched(node, topic, found[-1] + 2 if found else 0, max_bytes)
        if error or not bases:
            return error, found
        found += bases


def produced(node: ApiNode, topic: str) -> int:
    data = PartitionProduceData(index=0, records=batch(b"v"))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])

    async def call() -> int:
        [answer] = (await node.call(produce, request, 9)).responses[0].partition_responses
        return int(answer.error_code)

    return in_virtual_time(call)


def listed(node: ApiNode, topic: str, timestamp: int) -> tuple[int, int]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])

    async def call() -> tuple[int, int]:
        [answer] = (await node.call(list_offsets, request, 5)).topics[0].partitions
        return answer.error_code, answer.offset

    return in_virtual_time(call)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


ALL = list(range(0, 2 * BATCHES, 2))


def in_a_batch(node: ApiNode) -> None:
    flip(log_files(node)[0], 200)


def in_a_base_offset(node: ApiNode) -> None:
    flip(log_files(node)[0], 3 * batch_size(node) + 6)


def in_a_leader_epoch(node: ApiNode) -> None:
    flip(log_files(node)[0], 3 * batch_size(node) + 15)


def in_a_length(node: ApiNode) -> None:
    flip(log_files(node)[0], 3 * batch_size(node) + 10)


def batch_size(node: ApiNode) -> int:
    return int.from_bytes(log_files(node)[0].read_bytes()[8:12], "big") + 12


def a_missing_segment(node: ApiNode) -> None:
    for path in log_files(node)[1].parent.glob(log_files(node)[1].stem + ".*"):
        path.unlink()


DAMAGE = [in_a_batch, in_a_base_offset, in_a_leader_epoch, in_a_length, a_missing_segment]


@pytest.mark.parametrize("max_bytes", [1, 300, 1 << 20])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_when_it_is_read_first(
    node: ApiNode, damage: Callable[[ApiNode], None], max_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    node.close()
    damage(node)
    node.restart()
    assert not lines(caplog)
    error, found = read_all(node, "hurt", max_bytes)
    assert error == STORAGE_ERROR
    assert found == ALL[: len(found)]
    [line] = lines(caplog)
    assert line.startswith(
        f"hurt-0 is quarantined, and clients get KAFKA_STORAGE_ERROR for it: {node.path}/data/hurt-0"
    )
    assert produced(node, "hurt") == STORAGE_ERROR
    assert listed(node, "hurt", -1)[0] == STORAGE_ERROR
    assert read_all(node, "well", max_bytes) == (0, ALL)
    assert produced(node, "well") == 0


def test_each_start_finds_it_again_and_forgets_nothing(node: ApiNode) -> None:
    node.restart()
    in_a_batch(node)
    before = {path.name: path.read_bytes() for path in log_files(node)}
    for clean in (True, True, False, True):
        node.restart(clean=clean)
        assert read_all(node, "hurt")[0] == STORAGE_ERROR
        assert read_all(node, "well") == (0, ALL)
        assert {path.name: path.read_bytes() for path in log_files(node)} == before
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            in_virtual_time(node.replicas.checkpoint)
            assert "hurt 0 40" in (node.path / "data" / name).read_text().splitlines()


def test_damage_that_recovery_finds_is_no_reason_not_to_start(node: ApiNode, caplog: pytest.LogCaptureFixture) -> None:
    in_a_batch(node)
    node.restart(clean=False)
    assert fetched(node, "hurt")[0] == STORAGE_ERROR
    assert read_all(node, "well") == (0, ALL)
    [line] = lines(caplog)
    assert "is damaged at position 174, where offset 4 belongs: the checksum is wrong; " in line
    assert "sound batches follow" in line
    assert [path.name for path in (node.path / "data").glob("hurt*")] == ["hurt-0"]


def test_a_leader_epoch_that_nobody_has_had_is_damage(node: ApiNode, caplog: pytest.LogCaptureFixture) -> None:
    path = log_files(node)[-1]
    last = path.stat().st_size - batch_size(node) - 2  # two digits in two records
    flip(path, last + 14)
    node.restart(clean=False)
    assert produced(node, "hurt") == STORAGE_ERROR
    assert "has records of leader epoch 256, and no leader of the partition has had one above 0" in caplog.text


def test_it_goes_with_its_topic_and_the_name_is_free_again(node: ApiNode) -> None:
    node.close()
    in_a_batch(node)
    node.restart()
    assert fetched(node, "hurt")[0] == STORAGE_ERROR
    node.delete_topic("hurt")
    node.create_topic("hurt")
    node.append("hurt", b"new", b"newer")
    node.restart(clean=False)
    assert read_all(node, "hurt") == (0, [0])


@pytest.mark.parametrize("clean", [True, False])
def test_a_lost_directory_is_not_begun_anew(node: ApiNode, clean: bool, caplog: pytest.LogCaptureFixture) -> None:
    in_virtual_time(node.replicas.checkpoint)
    if clean:
        node.close()
    for path in (node.path / "data/hurt-0").glob("*"):
        path.unlink()
    (node.path / "data/hurt-0").rmdir()
    node.restart(clean=False)
    node.restart()
    assert produced(node, "hurt") == STORAGE_ERROR
    assert "hurt-0 is missing, which held offsets up to 39" in lines(caplog)[-1]


def test_a_lying_index_is_built_anew(node: ApiNode, caplog: pytest.LogCaptureFixture) -> None:
    node.close()
    node = ApiNode(node.path / "other")
    node.create_topic("hurt", segment_bytes="2000", index_interval_bytes="1")
    for number in range(3 * BATCHES):
        node.append("hurt", b"one", b"two", timestamp=1000 + number)
    node.close()
    index = log_files(node)[0].with_suffix(".index")
    before = index.read_bytes()
    flip(index, len(before) // 2 // 8 * 8 + 7)
    node.restart()
    assert read_all(node, "hurt", 100) == (0, list(range(0, 6 * BATCHES, 2)))
    assert "building the index anew" in caplog.text
    assert index.read_bytes() == before


def test_a_batch_that_a_timestamp_leads_to_is_checked(node: ApiNode) -> None:
    assert listed(node, "hurt", 1020) == (0, 39)
    node.close()
    flip(log_files(node)[-1], -2)
    node.restart()
    assert listed(node, "hurt", 1020)[0] == STORAGE_ERROR
    assert listed(node, "well", 1020) == (0, 39)
