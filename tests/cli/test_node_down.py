"""Commands of administration where one of three nodes was killed: its row says so, and the others are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from compat_tests.ports import take_consecutive_ports
from compat_tests.waiting import until

from .cluster_command import ClusterCommand
from .conftest import Outcome, calling

Call = Callable[..., Outcome]

GONE = 3
TOPIC, LOST = "replicated", "lost"


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Three nodes, of which the third is killed; a topic on all of them, and one on the third alone."""
    arguments = ["--ephemeral", "--base-port", str(take_consecutive_ports(8))]
    command = ClusterCommand(arguments, tmp_path_factory.mktemp("down"))
    try:
        invoke = calling(command.wait_until_ready())
        assert invoke(f"topics create {TOPIC} --replica-assignment 1:2:3,2:3:1,3:1:2").code == 0
        assert invoke(f"topics create {LOST} --replica-assignment 3").code == 0
        command.nodes()[GONE].kill()
        until(lambda: invoke("brokers list --fenced").code == 1, "the controller has fenced the broker")
        yield invoke
    finally:
        command.close()


def test_brokers_that_are_down_are_told_by_exit_codes(call: Call) -> None:
    listed = call("brokers list --json")
    assert listed.code == 1
    rows = {each["broker"]: each for each in json.loads(listed.out)}
    assert [rows[node_id]["state"] for node_id in (1, 2, GONE)] == ["up", "up", "fenced"]
    assert rows[GONE]["error"].startswith(f"Cannot reach broker {GONE} at ")
    assert (rows[GONE]["replicas"], rows[GONE]["leaders"], rows[GONE]["under_replicated"]) == (4, 0, 4)
    for kind in ("fenced", "unreachable", "under-replicated"):
        found = call(f"brokers list --{kind}")
        assert (found.code, [row[0] for row in found.cells]) == (1, [str(GONE)])
    described = call("brokers describe")
    assert described.code == 1
    assert "broker: 1" in described.lines
    assert f"broker: {GONE}" in described.lines


def test_offsets_of_other_leaders_are_told(call: Call) -> None:
    listed = call("offsets list --json")
    assert listed.code == 1
    rows = json.loads(listed.out)
    assert [each["offset"] for each in rows if each["topic"] == TOPIC] == [0, 0, 0]
    [lost] = [each for each in rows if each["topic"] == LOST]
    assert lost["offset"] is None
    assert lost["error"]
    lines = call("offsets --topic .*")
    assert lines.code == 1
    assert lines.out == f"{TOPIC}:0:0\n{TOPIC}:1:0\n{TOPIC}:2:0\n"
    assert lines.err.startswith(f"Skip getting offsets for topic-partition {LOST}-0 due to error: ")


def test_log_directories_of_other_brokers_are_told(call: Call) -> None:
    described = call("log-dirs describe --json")
    assert described.code == 1
    states = {each["broker"]: each["state"] for each in json.loads(described.out)}
    assert states == {1: "online", 2: "online", GONE: "unreachable"}
    as_kafka = call("log-dirs --describe")
    assert as_kafka.code == 1
    assert [each["broker"] for each in json.loads(as_kafka.lines[-1])["brokers"]] == [1, 2]
    assert as_kafka.err.startswith(f"Broker {GONE}: Cannot reach broker {GONE} at ")


def test_apis_of_other_brokers_are_told(call: Call) -> None:
    shown = call("apis")
    assert shown.code == 1
    assert shown.out.count("Produce(0): 0 to 13 [usable: 13]") == 2
    assert f"(id: {GONE} rack: null isFenced: true) -> ERROR: Cannot reach broker {GONE}" in shown.out
    rows = json.loads(call("apis --json").out)
    assert {tuple(each["brokers"]) for each in rows} == {(1, 2)}


def test_the_quorum_is_led_by_another(call: Call) -> None:
    described = call("quorum describe --json")
    assert described.code == 0
    told = json.loads(described.out)
    assert told["leader"] in (1, 2)
    [gone] = [each for each in told["replicas"] if each["node"] == GONE]
    assert gone["lag"] is None or gone["lag"] > 0  # none where the new leader has never heard of it
    assert told["max_follower_lag"] > 0


def test_nothing_moves_to_a_broker_that_is_down(call: Call) -> None:
    refused = call(f"reassign start {TOPIC} --replicas {GONE}")
    assert refused == Outcome(1, "", f"Error: Unknown broker id {GONE}\n")
    plan = call(f"reassign plan {TOPIC} --brokers 1,{GONE}")
    assert plan.err == f"Error: There is no broker {GONE}, or it is down (there are: 1, 2)\n"


def test_unclean_elections_ask_for_they_lose_records(call: Call) -> None:
    refused = call("elect-leaders --election-type unclean --all-topic-partitions")
    assert refused == Outcome(
        1,
        "",
        "Error: Elect unclean leaders of 1 partition, although records may be lost for good? Nobody can be asked here, "
        f"and --yes was not given. It would be {LOST}-0\n",
    )
    failed = call(f"elect-leaders --election-type unclean --topic {LOST} --partition 0")
    assert failed.code == 1
    assert failed.err.endswith("1 replica(s) could not be elected\n")


def test_a_broker_that_is_gone_for_good_is_unregistered(call: Call) -> None:
    gone = call(f"brokers unregister {GONE} --json")
    assert (gone.code, json.loads(gone.out), gone.err) == (0, [{"broker": GONE, "unregistered": True}], "")
    until(lambda: len(json.loads(call("brokers list --json").out)) == 2, "the broker is not listed any more")
    assert call("brokers list").code == 0
