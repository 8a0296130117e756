"""`pykbroker brokers` and `pykbroker apis`, of a broker that is up."""

import json
from collections.abc import Callable

import pytest

from pykbroker.protocol.api_keys import ApiKey
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


def test_brokers_are_listed_with_what_they_lead(call: Call, bootstrap: str, topic: str) -> None:
    call(f"topics create {topic} --partitions 3")
    [before] = json.loads(call("brokers list --json").out)
    assert before["address"] == bootstrap
    assert (before["state"], before["controller"], before["error"]) == ("up", True, None)
    assert before["leaders"] == before["replicas"] >= 3
    assert before["under_replicated"] == 0
    assert before["version"] == "4.4"
    listed = call("brokers list")
    assert listed.code == 0
    assert listed.cells[0][:5] == [str(before["broker"]), bootstrap, "-", "up", "yes"]
    call(f"topics delete {topic}")
    [after] = json.loads(call("brokers list --json").out)
    assert after["leaders"] == before["leaders"] - 3


@pytest.mark.parametrize("kind", ["--fenced", "--unreachable", "--under-replicated"])
def test_a_list_of_what_is_wrong_is_empty_and_0_where_nothing_is(call: Call, kind: str) -> None:
    assert call(f"brokers list {kind}") == Outcome(0, "", "")
    assert call(f"brokers list {kind} --json") == Outcome(0, "[]\n", "")


def test_a_broker_is_described_with_its_listeners_directories_and_features(call: Call, bootstrap: str) -> None:
    [described] = json.loads(call("brokers describe 1 --json").out)
    assert f"PLAINTEXT://{bootstrap}" in described["listeners"]
    [directory] = described["log_dirs"]
    assert directory["online"]
    assert directory["total_bytes"] >= directory["usable_bytes"] > 0
    assert described["features"]["transaction.version"] == "0 to 2"
    shown = call("brokers describe")
    assert f"  - path: {directory['path']}" in shown.lines
    assert "    online: yes" in shown.lines


def test_the_id_of_the_cluster_is_told_as_by_kafka_cluster(call: Call) -> None:
    [described] = json.loads(call("brokers cluster-id --json").out)
    assert len(described["cluster_id"]) == 22
    told = Outcome(0, f"Cluster ID: {described['cluster_id']}\n", "")
    assert call("brokers cluster-id") == told


def test_a_broker_that_does_not_exist_is_one_line(call: Call) -> None:
    for word in ("describe 77", "unregister 77"):
        assert call(f"brokers {word}") == Outcome(1, "", "Error: There is no broker 77 (there are: 1)\n")


def test_a_broker_that_is_up_is_not_unregistered_without_a_yes(call: Call) -> None:
    refused = call("brokers unregister 1")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("Error: Unregister 1 broker? Nobody can be asked here, and --yes was not given.")
    assert refused.err.endswith(", which is up\n")


@pytest.mark.parametrize("group", ["brokers", "quorum", "features"])
def test_a_group_says_what_it_can_do(call: Call, group: str) -> None:
    told = call(group)
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith("Error: Say what to do: ")
    misspelled = call(f"{group} descibe")
    assert misspelled.err == "Error: No such command 'descibe'. Did you mean 'describe'?\n"


def test_apis_are_told_with_the_version_that_this_client_uses(call: Call) -> None:
    rows = {each["api"]: each for each in json.loads(call("apis --json").out)}
    assert rows["Fetch"] == {"api": "Fetch", "key": 1, "min": 4, "max": 18, "used": 18, "brokers": [1]}
    assert rows["ApiVersions"]["key"] == ApiKey.API_VERSIONS
    assert json.loads(call("apis --broker 1 --json").out) == list(rows.values())
    assert call("apis --broker 9").err == "Error: There is no broker 9 (there are: 1)\n"
