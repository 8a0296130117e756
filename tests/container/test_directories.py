"""Data directories of a node in a container: formatted once, and kept as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.config import ConfigurationError
from pykbroker.container import directories
from pykbroker.container.directories import check_writable, prepare_directories
from pykbroker.protocol.messages.metadata_records import UserScramCredentialRecord
from pykbroker.server.quorum.bootstrap_checkpoint import read_bootstrap_checkpoint
from pykbroker.storage.files.disk import OsDisk

from .builders import config_of, read
from .test_bitnami import SASL


def prepared(directory: Path, **variables: str) -> str | None:
    given = {**variables, "KAFKA_LOG_DIRS": str(directory)}
    return prepare_directories(config_of(given), read(given))


def cluster_id(directory: Path) -> str:
    lines = (directory / "meta.properties").read_text().splitlines()
    return next(line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id="))


def test_a_directory_is_formatted_for_the_cluster_that_is_given(tmp_path: Path) -> None:
    assert prepared(tmp_path / "a", CLUSTER_ID="mine") is None
    assert cluster_id(tmp_path / "a") == "mine"
    assert prepared(tmp_path / "a", CLUSTER_ID="mine") is None


def test_a_formatted_directory_keeps_its_cluster(tmp_path: Path) -> None:
    prepared(tmp_path, CLUSTER_ID="mine")
    note = prepared(tmp_path, CLUSTER_ID="other")
    assert note == f"the data in {tmp_path} belongs to cluster mine, and stays there: other is ignored"
    assert cluster_id(tmp_path) == "mine"


def test_users_are_there_from_the_beginning(tmp_path: Path) -> None:
    prepared(tmp_path, **SASL)
    records = read_bootstrap_checkpoint(OsDisk(), str(tmp_path)) or []
    users = {record.name for record in records if isinstance(record, UserScramCredentialRecord)}
    assert users == {"alice", "bob", "nodes"}


def test_a_password_that_scram_cannot_have_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^KAFKA_CLIENT_USERS, KAFKA_CLIENT_PASSWORDS: "):
        prepared(tmp_path, **{**SASL, "KAFKA_INTER_BROKER_PASSWORD": "a,b"})


def test_first_controllers_that_are_none_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^KAFKA_INITIAL_CONTROLLERS: "):
        prepared(tmp_path, KAFKA_INITIAL_CONTROLLERS="x")


def test_a_directory_of_another_user_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories.os, "access", lambda path, mode: path != tmp_path)
    monkeypatch.setattr(directories.os, "geteuid", lambda: 4321)
    owner = tmp_path.stat()
    expected = f"{tmp_path} belongs to {owner.st_uid}:{owner.st_gid}, and the node runs as 4321:{owner.st_gid}; "
    with pytest.raises(ConfigurationError, match=expected):
        check_writable(config_of({"KAFKA_LOG_DIRS": str(tmp_path / "data")}))
