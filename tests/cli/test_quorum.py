"""`pykbroker quorum` and `pykbroker features` against one node; the words of Kafka's tools and our tables."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]
NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


def test_the_quorum_is_described(call: Call) -> None:
    described = json.loads(call("quorum describe --json").out)
    assert described["leader"] == 1
    assert described["max_follower_lag"] == 0
    [replica] = described["replicas"]
    assert (replica["status"], replica["lag"]) == ("leader", 0)
    shown = call("quorum describe")
    assert shown.code == 0
    assert "leader: 1" in shown.lines
    assert call("quorum replication").cells[0][:2] == ["1", "leader"]


def test_controllers_may_be_asked_in_place_of_brokers(call: Call) -> None:
    [replica] = json.loads(call("quorum replication --json").out)
    address = replica["endpoints"][0].partition("://")[2]
    asked = json.loads(call(f"quorum describe --bootstrap-controller {address} --json", with_server=False).out)
    assert asked["leader"] == 1
    features = call(f"features describe --bootstrap-controller {address}", with_server=False)
    assert "metadata.version" in features.out
    both = call(f"quorum describe --bootstrap-controller {address} --bootstrap-server {address}", with_server=False)
    assert both.err == "Error: Please don't specify both --bootstrap-server and --bootstrap-controller\n"


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("--status --replication", "Only one of --status or --replication should be specified"),
        ("--status --human-readable", "The option --human-readable is only supported along with --replication"),
        ("--status --json", "--status and --json exclude each other"),
    ],
)
def test_flags_that_do_not_go_together_are_one_line(call: Call, flags: str, reason: str) -> None:
    refused = call(f"quorum describe {flags}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: {reason}")
    assert refused.err.count("\n") == 1


def test_a_controller_is_added_by_its_own_properties(call: Call, tmp_path: Path) -> None:
    properties = tmp_path / "controller.properties"
    properties.write_text(
        f"node.id=7\nprocess.roles=controller\nlog.dirs={tmp_path}\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://localhost:9393\n"
    )
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=7\ndirectory.id=Kjkd1c2oRUOx6z4qmZ3yWA\n")
    text = "controller 7 with directory id Kjkd1c2oRUOx6z4qmZ3yWA and endpoints: CONTROLLER://localhost:9393\n"
    add = f"quorum add-controller --command-config {properties}"
    assert call(f"{add} --dry-run") == Outcome(0, f"DRY RUN of adding {text}", "")
    [told] = json.loads(call(f"{add} --dry-run --json").out)
    assert (told["controller"], told["added"]) == (7, False)
    assert told["endpoints"] == ["CONTROLLER://localhost:9393"]
    assert call(add).err == "Error: the voters can't be changed while kraft.version is 0\n"
    (tmp_path / "meta.properties").unlink()
    assert call(add).code == 1
    assert call("quorum add-controller").err.startswith("Error: You must supply the configuration file")


def test_a_controller_is_removed_by_id_and_directory(call: Call) -> None:
    remove = "quorum remove-controller -i 7 -d"
    assert call(f"{remove} {NO_DIRECTORY} --dry-run") == Outcome(
        0, f"DRY RUN of removing KRaft controller 7 with directory id {NO_DIRECTORY}\n", ""
    )
    told = call(f"{remove} {NO_DIRECTORY} --dry-run --json")
    assert json.loads(told.out) == [{"controller": 7, "directory_id": NO_DIRECTORY, "removed": False}]
    assert call(f"{remove} {NO_DIRECTORY}").code == 1
    assert call(f"{remove} x").err.startswith("Error: Failed to parse --controller-directory-id:")


def test_features_are_described_and_changed(call: Call) -> None:
    rows = {each["feature"]: each for each in json.loads(call("features describe --json").out)}
    assert rows["transaction.version"]["finalized"] == 2
    assert re.search(r"^Feature: metadata.version +SupportedMinVersion: 4.3-IV0 ", call("features describe").out, re.M)
    lower = "features downgrade --feature transaction.version=1"
    assert call(f"{lower} --dry-run") == Outcome(0, "transaction.version can be downgraded to 1.\n", "")
    assert call(f"{lower} --yes") == Outcome(0, "transaction.version was downgraded to 1.\n", "")
    rows = {each["feature"]: each for each in json.loads(call("features describe --json").out)}
    assert rows["transaction.version"]["finalized"] == 1
    upgraded = call("features upgrade --feature transaction.version=2")
    assert upgraded == Outcome(0, "transaction.version was upgraded to 2.\n", "")
    failed = call("features upgrade --feature transaction.version=9")
    assert failed.code == 1
    assert failed.out.startswith("Could not upgrade transaction.version to 9. ")
    assert failed.err == "1 out of 1 operation(s) failed.\n"


def test_what_may_lose_metadata_needs_a_yes_where_nobody_can_be_asked(call: Call) -> None:
    refused = call("features disable --feature group.version --unsafe")
    assert refused.code == 1
    assert "Disable features, although metadata may be lost for good? Nobody can be asked here" in refused.err
    rows = {each["feature"]: each for each in json.loads(call("features describe --json").out)}
    assert rows["group.version"]["finalized"] == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("upgrade", "You must specify at least one feature to upgrade"),
        ("upgrade --feature x", "--feature expects key=value, not 'x'"),
        ("upgrade --feature x=y", "Can't parse feature=level string x=y. Expected a number for level."),
        ("upgrade --feature a=1 --feature a=2", "A feature was specified more than once"),
        ("upgrade --release-version 4.3 --feature a=1", "Can not specify `release-version` with other feature flags."),
        ("upgrade --release-version 9.9", "Unknown metadata.version '9.9'."),
        ("feature-dependencies --feature x=1", "Unknown feature: x"),
        ("feature-dependencies --feature group.version=5", "No feature:group.version with feature level 5"),
    ],
)
def test_features_and_levels_that_nobody_knows_are_one_line(call: Call, arguments: str, reason: str) -> None:
    refused = call(f"features {arguments}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: {reason}")
    assert refused.err.count("\n") == 1
