"""`pykbroker format`, and that a node takes what it formatted."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykbroker.cli.main import main
from pykbroker.protocol.compile import decode
from pykbroker.protocol.messages.control_records import VotersRecord
from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord, UserScramCredentialRecord
from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.protocol.uuids import uuid_from_text
from pykbroker.security.sasl.scram_credential import MECHANISMS
from pykbroker.server.quorum.bootstrap_checkpoint import read_bootstrap_checkpoint
from pykbroker.server.quorum.snapshot_format import decode_snapshot
from pykbroker.storage.files.disk import OsDisk

CLUSTER_ID = "rGKhQ5uFQ7WqXg2Vd1mY0A"
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
DIRECTORY_ID = "J8aAPcfLQt2bqs1JT_rMgQ"
FIRST_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"node.id=3\nlog.dirs={tmp_path}/a,{tmp_path}/b\n")
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["format", *map(str, arguments)])


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
        (["--feature", "group.version=2"], "group.version"),
        (["--feature", "share.version=3"], "share.version"),
        (["--feature", "group.version=1", "--feature", "group.version=0"], "group.version"),
        (["--feature", "metadata.version=29"], "metadata.version"),
        (["--feature", "metadata.version"], "NAME=LEVEL"),
        (["--release-version", "3.9"], "3.9"),
        (["--release-version", "4.5-IV0"], "4.4-IV2"),
        (["--release-version", "4.4", "--feature", "metadata.version=31"], "ambiguity"),
        (["--feature", "metadata.version=34"], "30 to 33"),
        (["--override", "num.partitions=none"], "num.partitions"),
        (["--override", "principal.builder.class=x"], "principal.builder.class"),
        (["--feature", "kraft.version=2"], "kraft.version"),
        (["--feature", "kraft.version=1"], "dynamic voters"),
        (["--no-initial-controllers", "--feature", "kraft.version=0"], "kraft.version"),
        (["--standalone"], "port"),
        (["--standalone", "--no-initial-controllers"], "Only one"),
        (["--initial-controllers", ""], "No initial controller"),
        (["--initial-controllers", "3@here:9093"], "'3@here:9093'"),
        (["--initial-controllers", "3@here:90930:J8aAPcfLQt2bqs1JT_rMgQ"], "90930"),
        (["--initial-controllers", "3@here:9093:directory"], "directory id"),
        (
            ["--initial-controllers", "3@a:1:J8aAPcfLQt2bqs1JT_rMgQ,3@b:1:J8aAPcfLQt2bqs1JT_rMgQ"],
            "more than once",
        ),
    ],
)
def test_what_is_not_offered_is_refused_in_one_line(properties: Path, arguments: list[str], complaint: str) -> None:
    result = run("-t", CLUSTER_ID, "-c", properties, *arguments)
    assert result.exit_code == 1
    assert complaint in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "name", "level"),
    [
        ([], "4.3-IV0", 30),
        (["--release-version", "4.3.1"], "4.3-IV0", 30),
        (["--release-version", "4.4"], "4.4-IV2", 33),
        (["--release-version", "4.4.0"], "4.4-IV2", 33),
        (["--release-version", "4.4-IV1"], "4.4-IV1", 32),
        (["--feature", "metadata.version=31"], "4.4-IV0", 31),
        (["--release-version", "4.4-IV0", "--feature", "metadata.version=31"], "4.4-IV0", 31),
    ],
)
def test_a_cluster_begins_with_the_levels_of_a_release(
    properties: Path, tmp_path: Path, arguments: list[str], name: str, level: int
) -> None:
    result = run("-t", CLUSTER_ID, "-c", properties, *arguments)
    assert result.exit_code == 0, result.output
    assert f"Formatting {tmp_path}/a with metadata.version {name}." in result.output
    records = read_bootstrap_checkpoint(OsDisk(), str(tmp_path / "a")) or []
    levels = {each.name: each.feature_level for each in records if isinstance(each, FeatureLevelRecord)}
    assert levels["metadata.version"] == level
    assert (levels["group.version"], levels["transaction.version"]) == (1, 2)


def test_a_cluster_id_is_needed(properties: Path) -> None:
    result = run("-c", properties)
    assert result.exit_code == 1
    assert "--random-uuid" in result.output


def test_kafkas_flags_for_a_single_node_are_taken(properties: Path) -> None:
    arguments = [
        "--override",
        LISTENERS,
        "--standalone",
        "--release-version",
        "4.3-IV0",
        "--feature",
        "metadata.version=30",
    ]
    assert run("--cluster-id", CLUSTER_ID, "--config", properties, *arguments).exit_code == 0


def test_a_random_uuid_is_one() -> None:
    first, second = run("--random-uuid").output.strip(), run("--random-uuid").output.strip()
    assert uuid_from_text(first) != uuid_from_text(second)


def test_the_first_voters_of_a_dynamic_quorum_stand_in_a_snapshot(properties: Path, tmp_path: Path) -> None:
    others = f"3@here:9093:{DIRECTORY_ID},4@[::1]:9094:{DIRECTORY_ID}"
    assert run("-t", CLUSTER_ID, "-c", properties, "--initial-controllers", others).exit_code == 0
    assert meta(tmp_path / "a")["directory.id"] == DIRECTORY_ID
    assert meta(tmp_path / "b")["directory.id"] != DIRECTORY_ID
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()
    records = decode_snapshot((tmp_path / "a" / FIRST_SNAPSHOT).read_bytes()).quorum
    assert records.voter_ids() == [3, 4]
    voters = decode(VotersRecord, 0, records.by_type[ControlRecordType.KRAFT_VOTERS][1])[0]
    assert [(each.name, each.host, each.port) for each in voters.voters[1].endpoints] == [("CONTROLLER", "::1", 9094)]


def test_a_standalone_controller_is_its_own_first_voter(properties: Path, tmp_path: Path) -> None:
    assert run("-t", CLUSTER_ID, "-c", properties, "--override", LISTENERS, "--standalone").exit_code == 0
    records = decode_snapshot((tmp_path / "a" / FIRST_SNAPSHOT).read_bytes()).quorum
    assert records.voter_ids() == [3]


def test_who_is_to_join_begins_without_voters(properties: Path, tmp_path: Path) -> None:
    assert run("-t", CLUSTER_ID, "-c", properties, "--no-initial-controllers").exit_code == 0
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()


def test_a_crash_while_the_voters_were_written_can_be_formatted_away(properties: Path, tmp_path: Path) -> None:
    others = f"3@here:9093:{DIRECTORY_ID}"
    assert run("-t", CLUSTER_ID, "-c", properties, "--initial-controllers", others).exit_code == 0
    (tmp_path / "a" / "meta.properties").unlink()
    assert run("-t", CLUSTER_ID, "-c", properties, "--initial-controllers", others, "-g").exit_code == 0
    (tmp_path / "a" / "meta.properties").unlink()
    (tmp_path / "a" / "__cluster_metadata-0" / "quorum-state").touch()
    assert run("-t", CLUSTER_ID, "-c", properties, "--initial-controllers", others, "-g").exit_code == 1


SALTED = "U2FsdGVkUGFzc3dvcmQ="


def scram_users(directory: Path) -> list[tuple[str, int, int, bytes, bytes, bytes]]:
    records = read_bootstrap_checkpoint(OsDisk(), str(directory)) or []
    found = [each for each in records if isinstance(each, UserScramCredentialRecord)]
    assert records[-len(found) or len(records) :] == found
    return [(each.name, each.mechanism, each.iterations, each.salt, each.stored_key, each.server_key) for each in found]


def test_a_cluster_begins_with_the_users_that_are_given(properties: Path, tmp_path: Path) -> None:
    result = run(
        *("-t", CLUSTER_ID, "-c", properties),
        *("--add-scram", 'SCRAM-SHA-256=[name=alice,iterations=8192,password="alicepass",salt="c2FsdA=="]'),
        *("-S", f"SCRAM-SHA-512=[name=bob,salt=c2FsdA==,saltedpassword={SALTED}]"),
        *("-S", "SCRAM-SHA-512=[name=carol,password=x=y]"),
    )
    assert (result.exit_code, "alicepass" in result.output) == (0, False), result.output
    alice, bob, carol = scram_users(tmp_path / "a")
    sha_256, sha_512 = MECHANISMS.values()
    expected = sha_256.credential(sha_256.salted_password("alicepass", b"salt", 8192), b"salt", 8192)
    assert alice == ("alice", 1, 8192, b"salt", expected.stored_key, expected.server_key)
    expected = sha_512.credential(b"SaltedPassword", b"salt", 4096)
    assert bob == ("bob", 2, 4096, b"salt", expected.stored_key, expected.server_key)
    salt = carol[3]
    assert len(salt) > 20
    assert carol[4] == sha_512.credential(sha_512.salted_password("x=y", salt, 4096), salt, 4096).stored_key


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("hunter2", "Failed to find equals sign in SCRAM argument"),
        ("PLAIN=[name=a,password=hunter2]", "The add-scram mechanism is not supported"),
        ("SCRAM-SHA-256=name=a,password=hunter2]", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a,password=hunter2", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[password=hunter2]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=hunter2]", "You must supply 'salt' with 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,password=hun,ter2]", "No equals sign found in SCRAM component"),
        ("SCRAM-SHA-256=[name=a,hunter2=1]", "Unknown SCRAM configuration"),
        ("SCRAM-SHA-256=[name=a,salt=c2FsdA==,saltedpassword=hunter2!]", "Failed to decode given saltedpassword"),
        ("SCRAM-SHA-256=[name=a,salt=?,password=hunter2]", "Failed to decode given salt"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=-5000]", "Failed to parse iterations count"),
        ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=4095]", "The 'iterations' value must be >= 4096"),
        ("SCRAM-SHA-512=[name=a,password=hunter2,iterations=16385]", "The 'iterations' value must be <= 16384"),
    ],
)
def test_a_user_that_cannot_be_read_ends_it_and_is_not_shown(argument: str, reason: str, properties: Path) -> None:
    result = run("-t", CLUSTER_ID, "-c", properties, "--add-scram", argument)
    assert result.exit_code == 1
    assert reason in result.output
    assert "hunter2" not in result.output
    assert not (properties.parent / "a").exists()
