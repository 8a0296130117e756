"""DescribeLogDirs: directories, the replicas in them with their sizes, and directories that are offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.api.describe_log_dirs import describe_log_dirs
from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.storage.files.errors import DiskFailed, FileError, NoRoom
from tests.api.api_node import ApiNode, batch, in_virtual_time

Sizes = dict[tuple[str, int], int]


def ask(node: ApiNode, topics: dict[str, list[int]] | None = None, version: int = 5) -> list[DescribeLogDirsResult]:
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics.items()]

    async def run() -> DescribeLogDirsResponse:
        response: DescribeLogDirsResponse = await node.call(
            describe_log_dirs, DescribeLogDirsRequest(topics=wanted), version
        )
        return response

    return in_virtual_time(run).results


def sizes(result: DescribeLogDirsResult) -> Sizes:
    return {
        (topic.name, each.partition_index): each.partition_size for topic in result.topics for each in topic.partitions
    }


@pytest.fixture
def two(tmp_path: Path) -> ApiNode:
    """Two directories; three partitions of one topic and one of another lie in them."""
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    node.create_topic("apples", 3)
    node.create_topic("beets")
    node.append("apples", b"a", b"b")
    return node


@pytest.mark.parametrize("version", range(1, 6))
def test_every_replica_is_in_its_directory_with_its_size(two: ApiNode, version: int) -> None:
    one, other = ask(two, version=version)
    assert (one.log_dir, other.log_dir) == (f"{two.path}/one", f"{two.path}/two")
    assert sizes(one) == {("apples", 0): len(batch(b"a", b"b")), ("apples", 2): 0}
    assert sizes(other) == {("apples", 1): 0, ("beets", 0): 0}
    assert {each.offset_lag for topic in one.topics for each in topic.partitions} == {0}
    if version >= 4:
        assert 0 < one.usable_bytes <= one.total_bytes
    else:
        assert (one.usable_bytes, one.total_bytes) == (-1, -1)


def test_only_partitions_that_were_asked_for_are_named(two: ApiNode) -> None:
    one, other = ask(two, {"apples": [1, 2, 9], "nothing": [0]})
    assert sizes(one) == {("apples", 2): 0}
    assert sizes(other) == {("apples", 1): 0}
    assert [each.topics for each in ask(two, {})] == [[], []]


def test_a_directory_that_is_offline_is_an_error_of_its_own(two: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DiskFailed("write", "", OSError(5, "Input/output error"))

    broken = two.partition("apples")
    monkeypatch.setattr(broken.log, "append_as_leader", fail)
    with pytest.raises(ApiError):
        two.append("apples", b"a")
    one, other = ask(two)
    assert (one.log_dir, one.error_code, one.topics) == (f"{two.path}/one", ErrorCode.KAFKA_STORAGE_ERROR, [])
    assert (other.error_code, len(sizes(other))) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize("kind", [DiskFailed, NoRoom])
def test_a_volume_that_does_not_answer_is_an_error(
    kind: type[FileError], two: ApiNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise kind("look at", "", OSError(5, "Input/output error"))

    monkeypatch.setattr(two.directories[1], "space", fail)
    assert [each.error_code for each in ask(two)] == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_cordoned_directory_gets_no_new_partitions(two: ApiNode) -> None:
    def cordon(value: str) -> list[bool]:
        two.replay(
            ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name="cordoned.log.dirs", value=value)
        )
        return [each.is_cordoned for each in ask(two)]

    assert cordon(f"{two.path}/one") == [True, False]
    two.create_topic("carrots", 3)
    one, other = ask(two, {"carrots": [0, 1, 2]})
    assert (len(sizes(one)), len(sizes(other))) == (0, 3)
    assert cordon("*") == [True, True]
    assert cordon("") == [False, False]
