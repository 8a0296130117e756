"""A node with several log directories: they share an owner, and one that fails does not take the others with it."""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path

import pytest

from pykbroker.config import BrokerConfig
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.uuids import uuid_to_text
from pykbroker.server.node.node_storage import NodeStorage
from pykbroker.storage.directories.log_dirs import format_directory
from pykbroker.storage.directories.meta_properties import MetaProperties, read_meta_properties
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import DiskFailed, InconsistentDirectory
from tests.api.api_node import ApiNode, VirtualClock, batch


def config(path: Path, **properties: str) -> BrokerConfig:
    given = {key.replace("_", "."): value for key, value in properties.items()}
    return BrokerConfig({"node.id": "1", "log.dirs": f"{path}/one,{path}/two,{path}/three", **given})


def open_storage(path: Path, **properties: str) -> NodeStorage:
    return NodeStorage.open(OsDisk(), config(path, **properties), clock=VirtualClock(), rng=random.Random(1))


def owners(path: Path, *names: str) -> list[MetaProperties]:
    found = [read_meta_properties(OsDisk(), f"{path}/{name}") for name in names]
    return [each for each in found if each is not None]


def names(storage: NodeStorage) -> list[str]:
    return [Path(directory.path).name for directory in storage.directories]


def test_directories_have_one_cluster_and_node_and_an_id_each(tmp_path: Path) -> None:
    storage = open_storage(tmp_path, metadata_log_dir=f"{tmp_path}/meta")
    assert names(storage) == ["one", "two", "three"]
    found = owners(tmp_path, "one", "two", "three", "meta")
    assert {(each.cluster_id, each.node_id) for each in found} == {(storage.cluster_id, 1)}
    assert len({each.directory_id for each in found}) == 4
    assert (tmp_path / "meta" / "__cluster_metadata-0").is_dir()
    assert not (tmp_path / "one" / "__cluster_metadata-0").exists()
    storage.close()


def test_a_directory_that_is_added_later_is_formatted_for_the_same_cluster(tmp_path: Path) -> None:
    before = open_storage(tmp_path, log_dirs=f"{tmp_path}/one")
    before.close()
    after = open_storage(tmp_path)
    assert after.cluster_id == before.cluster_id
    assert {each.cluster_id for each in owners(tmp_path, "one", "two", "three")} == {before.cluster_id}
    after.close()


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    open_storage(tmp_path).close()
    properties = tmp_path / "two" / "meta.properties"
    lines = properties.read_text().splitlines()
    properties.write_text("\n".join("cluster.id=other" if "cluster.id" in line else line for line in lines) + "\n")
    with pytest.raises(InconsistentDirectory, match="belong to different clusters"):
        open_storage(tmp_path)


def test_an_unusable_directory_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "two").write_text("not a directory")
    with caplog.at_level(logging.ERROR):
        storage = open_storage(tmp_path)
    assert names(storage) == ["one", "three"]
    assert [record.getMessage() for record in caplog.records] == [
        f"log directory {tmp_path}/two is offline: cannot create {tmp_path}/two: a file has that name"
    ]
    storage.close()


def test_the_metadata_log_needs_its_directory(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("not a directory")
    with pytest.raises(DiskFailed):
        open_storage(tmp_path)


def test_one_directory_for_partitions_is_needed(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text("not a directory")
    with pytest.raises(DiskFailed):
        open_storage(tmp_path, metadata_log_dir=f"{tmp_path}/meta")
    (tmp_path / "three").unlink()
    storage = open_storage(tmp_path, metadata_log_dir=f"{tmp_path}/meta")
    assert names(storage) == ["three"]
    storage.close()


def test_nothing_is_written_at_the_end_to_a_directory_that_failed(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.directories[1].take_offline()
    storage.close()
    marked = [name for name in ("one", "two", "three") if (tmp_path / name / ".kafka_cleanshutdown").exists()]
    assert marked == ["one", "three"]
    again = open_storage(tmp_path)
    assert names(again) == ["one", "two", "three"], "its lock was given up"
    again.close()


# Partitions


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    """Partition 0 lies in the first directory, partition 1 in the second."""
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    node.create_topic("apples", 2)
    for index in (0, 1):
        node.append("apples", b"a", b"b", index=index)
    return node


def test_a_log_in_a_directory_that_was_formatted_anew_is_not_begun_anew(
    node: ApiNode, caplog: pytest.LogCaptureFixture
) -> None:
    lost = node.directories[1].directory_id
    node.create_topic("figs", directory=lost)
    node.append("figs", b"a")
    node.close()
    shutil.rmtree(node.path / "two")
    format_directory(node.disk, f"{node.path}/two", cluster_id="test", node_id=1, rng=node.rng)
    node.restart(clean=False)
    assert node.partition("apples", 0).log.log_end_offset == 2
    assert node.replicas.get_partition("figs", 0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert f"figs-0 was in a log directory with the id {uuid_to_text(lost)}, which is not in log.dirs" in caplog.text
    node.create_topic("pears", directory=node.directories[1].directory_id)
    assert node.partition("pears").log.directory == f"{node.path}/two/pears-0"


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_in_a_directory_that_is_missing_is_not_begun_anew_elsewhere(node: ApiNode, clean: bool) -> None:
    node.restart(clean=clean, unusable=[f"{node.path}/two"])
    assert node.partition("apples", 0).log.log_end_offset == 2
    assert node.replicas.get_partition("apples", 1) is ErrorCode.KAFKA_STORAGE_ERROR
    node.change_partition("apples", 1, isr=[1])
    assert node.replicas.get_partition("apples", 1) is ErrorCode.KAFKA_STORAGE_ERROR
    node.create_topic("beets", 2)
    assert node.partition("beets", 1).log.directory == f"{node.path}/one/beets-1", "new ones have another place"
    node.restart(clean=clean)
    assert node.partition("apples", 1).log.log_end_offset == 2
    assert node.partition("beets", 1).log.directory == f"{node.path}/one/beets-1"


def test_a_log_that_went_offline_is_not_begun_anew_elsewhere(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DiskFailed("write", "", OSError(5, "Input/output error"))

    broken = node.partition("apples", 1)
    monkeypatch.setattr(broken.log, "append_as_leader", fail)
    with pytest.raises(ApiError) as refused:
        node.replicas.append(broken, batch(b"a"), 0, 1)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    node.change_partition("apples", 1, leader=-1)
    node.change_partition("apples", 1, leader=1)
    assert node.replicas.get_partition("apples", 1) is ErrorCode.KAFKA_STORAGE_ERROR
    assert not (node.path / "one" / "apples-1").exists()
    node.restart()
    assert node.partition("apples", 1).log.log_end_offset == 2


def test_a_deleted_topic_is_unknown_wherever_it_was(node: ApiNode) -> None:
    node.restart(unusable=[f"{node.path}/two"])
    node.delete_topic("apples")
    for index in (0, 1):
        assert node.replicas.get_partition("apples", index) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.create_topic("apples", 2)
    assert node.partition("apples", 1).log.log_end_offset == 0
