"""`pykbroker format`, and that a node takes what it formatted."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykbroker.cli.format import command
from pykbroker.protocol.uuids import uuid_from_text
from pykbroker.server.bootstrap_checkpoint import read_bootstrap_checkpoint
from pykbroker.storage.disk import OsDisk

CLUSTER_ID = "rGKhQ5uFQ7WqXg2Vd1mY0A"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"node.id=3\nlog.dirs={tmp_path}/a,{tmp_path}/b\n")
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def meta(directory: Path) -> dict[str, str]:
    lines = (directory / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def test_every_directory_gets_its_owner_and_an_id_of_its_own(properties: Path, tmp_path: Path) -> None:
    result = run("-t", CLUSTER_ID, "-c", properties)
    assert result.exit_code == 0, result.output
    assert f"Formatting {tmp_path}/a with metadata.version 4.3-IV0." in result.output
    a, b = meta(tmp_path / "a"), meta(tmp_path / "b")
    assert a["cluster.id"] == b["cluster.id"] == CLUSTER_ID
    assert a["node.id"] == b["node.id"] == "3"
    assert uuid_from_text(a["directory.id"]) != uuid_from_text(b["directory.id"])
    assert read_bootstrap_checkpoint(OsDisk(), str(tmp_path / "a"))
    assert read_bootstrap_checkpoint(OsDisk(), str(tmp_path / "b")) is None


def test_what_is_formatted_is_not_formatted_again(properties: Path, tmp_path: Path) -> None:
    assert run("-t", CLUSTER_ID, "-c", properties).exit_code == 0
    before = meta(tmp_path / "a")
    result = run("-t", CLUSTER_ID, "-c", properties)
    assert result.exit_code == 1
    assert "already formatted" in result.output
    result = run("-t", CLUSTER_ID, "-c", properties, "--ignore-formatted")
    assert result.exit_code == 0
    assert "All of the log directories are already formatted." in result.output
    assert meta(tmp_path / "a") == before


def test_a_new_directory_joins_the_formatted_ones(properties: Path, tmp_path: Path) -> None:
    assert run("-t", CLUSTER_ID, "-c", properties).exit_code == 0
    directories = f"log.dirs={tmp_path}/a,{tmp_path}/b,{tmp_path}/c"
    result = run("-t", CLUSTER_ID, "-c", properties, "--override", directories, "-g")
    assert result.exit_code == 0
    assert meta(tmp_path / "c")["cluster.id"] == CLUSTER_ID


def test_directories_of_another_cluster_are_left_alone(properties: Path) -> None:
    assert run("-t", CLUSTER_ID, "-c", properties).exit_code == 0
    result = run("-t", "another", "-c", properties, "--ignore-formatted")
    assert result.exit_code == 1
    assert CLUSTER_ID in result.output
    assert "another" in result.output


def test_partitions_without_meta_properties_are_left_alone(properties: Path, tmp_path: Path) -> None:
    (tmp_path / "a" / "orders-0").mkdir(parents=True)
    result = run("-t", CLUSTER_ID, "-c", properties)
    assert result.exit_code == 1
    assert "orders-0" in result.output
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--feature", "group.version=1"], "group.version"),
        (["--feature", "metadata.version=29"], "metadata.version"),
        (["--feature", "metadata.version"], "NAME=LEVEL"),
        (["--release-version", "3.9"], "3.9"),
        (["--override", "num.partitions=none"], "num.partitions"),
    ],
)
def test_what_is_not_offered_is_refused_in_one_line(properties: Path, arguments: list[str], complaint: str) -> None:
    result = run("-t", CLUSTER_ID, "-c", properties, *arguments)
    assert result.exit_code == 1
    assert complaint in result.output
    assert len(result.output.splitlines()) == 1


def test_a_cluster_id_is_needed(properties: Path) -> None:
    result = run("-c", properties)
    assert result.exit_code == 1
    assert "--random-uuid" in result.output


def test_kafkas_flags_for_a_single_node_are_taken(properties: Path) -> None:
    arguments = ["--standalone", "--release-version", "4.3-IV0", "--feature", "metadata.version=30"]
    assert run("--cluster-id", CLUSTER_ID, "--config", properties, *arguments).exit_code == 0


def test_a_random_uuid_is_one() -> None:
    first, second = run("--random-uuid").output.strip(), run("--random-uuid").output.strip()
    assert uuid_from_text(first) != uuid_from_text(second)
