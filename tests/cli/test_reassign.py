"""`pykbroker reassign` and `pykbroker elect-leaders` on a cluster of three brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from compat_tests.brokers import Pykbroker
from compat_tests.ports import take_consecutive_ports
from compat_tests.waiting import until
from pykbroker.client.cluster import Cluster, parse_bootstrap_servers
from pykbroker.client.producer import open_producer

from .cluster_command import ClusterCommand
from .conftest import Outcome, calling

Call = Callable[..., Outcome]

LARGE = b"x" * 900_000
SLOW = "--throttle 1024"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of a cluster."""
    arguments = ["--ephemeral", "--base-port", str(take_consecutive_ports(8)), "--config", "min.insync.replicas=1"]
    command = ClusterCommand(arguments, tmp_path_factory.mktemp("three"))
    try:
        yield command.wait_until_ready()
    finally:
        command.close()


@pytest.fixture
def call(three: str) -> Call:
    return calling(three)


@pytest.fixture
def moving(call: Call, three: str, topic: str) -> Iterator[str]:
    """A topic whose partition is on its way from broker 1 to broker 2, slowly."""

    async def send() -> None:
        async with Cluster(parse_bootstrap_servers(three)) as cluster, open_producer(cluster) as producer:
            for _ in range(4):
                await producer.send(topic, LARGE)

    assert call(f"topics create {topic} --replica-assignment 1").code == 0
    trio.run(send)
    assert call(f"reassign start {topic} --replicas 2 {SLOW}").code == 0
    yield topic
    call("reassign cancel --all --yes")


def replicas(call: Call, topic: str) -> list[list[int]]:
    [described] = json.loads(call(f"topics describe {topic} --json").out)
    return [each["replicas"] for each in described["partitions"]]


def write_plan(path: Path, topic: str, *assignment: list[int]) -> Path:
    rows = [{"topic": topic, "partition": number, "replicas": each} for number, each in enumerate(assignment)]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    return path


def test_a_plan_spreads_a_topic_and_is_the_file_that_starts_it(call: Call, topic: str, tmp_path: Path) -> None:
    call(f"topics create {topic} --replica-assignment 1:2,1:2,1:2")
    file = tmp_path / "plan.json"
    planned = call(f"reassign plan {topic} --brokers 2,3 --output {file}")
    assert planned.code == 0
    assert planned.lines[-1].startswith("3 of 3 partitions change; ")
    assert replicas(call, topic) == [[1, 2]] * 3
    assert sorted(each["replicas"] for each in json.loads(file.read_text())["partitions"])[0] == [2, 3]
    started = call(f"reassign start --reassignment-json-file {file} --wait")
    assert started.code == 0
    assert started.lines[-2:] == ["Moves of 3 partitions are under way.", "All moves are done."]
    assert all(set(each) == {2, 3} for each in replicas(call, topic))
    verified = call(f"reassign verify --reassignment-json-file {file} --json")
    assert verified.code == 0
    assert {each["state"] for each in json.loads(verified.out)} == {"completed"}
    again = call(f"reassign start --reassignment-json-file {file}")
    assert again == Outcome(0, "All partitions have these replicas already.\n", "")


def test_the_flags_of_kafkas_tool_do_the_same(call: Call, topic: str, tmp_path: Path) -> None:
    call(f"topics create {topic} --replica-assignment 1:2,2:1")
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generated = call(f"reassign --generate --topics-to-move-json-file {topics} --broker-list 1,3")
    assert generated.lines[0] == "Current partition replica assignment"
    assert generated.lines[3] == "Proposed partition reassignment configuration"
    before = [each["replicas"] for each in json.loads(generated.lines[1])["partitions"]]
    assert before == [[1, 2], [2, 1]]
    proposed = tmp_path / "proposed.json"
    proposed.write_text(generated.lines[4])
    executed = call(f"reassign --execute --reassignment-json-file {proposed} --throttle 1000000")
    assert executed.code == 0
    assert executed.lines[-2:] == [
        "The inter-broker throttle limit was set to 1000000 B/s",
        f"Successfully started partition reassignments for {topic}-0,{topic}-1",
    ]
    verify = f"reassign --verify --reassignment-json-file {proposed}"
    until(lambda: "in progress" not in call(f"{verify} --preserve-throttles").out, "all is moved")
    throttled = "follower.replication.throttled"
    assert throttled in call(f"configs --describe --entity-type topics --entity-name {topic}").out
    assert throttled in call("configs --describe --entity-type brokers --entity-name 3").out
    verified = call(verify)
    assert verified.lines == [
        "Status of partition reassignment:",
        f"Reassignment of partition {topic}-0 is completed.",
        f"Reassignment of partition {topic}-1 is completed.",
        "",
        "Clearing broker-level throttles on brokers 1,2,3",
        f"Clearing topic-level throttles on topic {topic}",
    ]
    assert throttled not in call(f"configs --describe --entity-type topics --entity-name {topic}").out
    assert throttled not in call("configs --describe --entity-type brokers --entity-name 3").out
    assert all(set(each) == {1, 3} for each in replicas(call, topic))


def test_a_move_that_is_under_way_is_listed_and_cancelled(call: Call, moving: str, tmp_path: Path) -> None:
    [row] = json.loads(call("reassign list --json").out)
    assert row == {"topic": moving, "partition": 0, "replicas": [2, 1], "adding": [2], "removing": [1]}
    assert call("reassign --list").lines == [
        "Current partition reassignments:",
        f"{moving}-0: replicas: 2,1. adding: 2. removing: 1.",
    ]
    file = write_plan(tmp_path / "plan.json", moving, [2])
    verified = call(f"reassign --verify --reassignment-json-file {file}")
    assert verified.lines[1] == f"Reassignment of partition {moving}-0 is still in progress."
    assert call(f"reassign verify --reassignment-json-file {file}").code == 1
    another = call(f"reassign start {moving} --replicas 3")
    assert another.err.startswith("Error: Cannot execute because there is an existing partition assignment.")
    refused = call("reassign cancel --all")
    assert refused.err == (
        "Error: Cancel the move of 1 partition? Nobody can be asked here, and --yes was not given. It would be "
        f"{moving}-0 stays on 1\n"
    )
    cancelled = call(f"reassign cancel {moving} --json")
    assert json.loads(cancelled.out) == [
        {"topic": moving, "partition": 0, "state": "cancelled", "replicas": [1], "target": [1]}
    ]
    assert "Clearing broker-level throttles" in cancelled.err
    assert call("reassign --list") == Outcome(0, "No partition reassignments found.\n", "")
    until(lambda: replicas(call, moving) == [[1]], "the brokers know that the move is off")
    assert call(f"reassign cancel {moving}") == Outcome(0, "No move of these is under way.\n", "")
    assert call(f"reassign cancel {moving} --json") == Outcome(0, "[]\n", "")


def test_throttles_that_nobody_takes_away_are_told(call: Call, topic: str) -> None:
    call(f"topics create {topic} --replica-assignment 1")
    left = call(f"reassign start {topic} --replicas 2 --throttle 1000000")
    assert left.code == 0
    assert "Throttles stay, also when the moves are done: `pykbroker reassign clear-throttles`" in left.err
    until(lambda: call("reassign list --json").out.strip() == "[]", "all is moved")
    waited = call(f"reassign start {topic} --replicas 3 --throttle 1000000 --wait")
    assert (waited.code, waited.err) == (0, "")
    back = call(f"reassign start {topic} --replicas 2 --throttle 1000000 --wait --json")
    assert back.code == 0
    assert json.loads(back.out) == [
        {"topic": topic, "partition": 0, "state": "completed", "replicas": [3], "target": [2]}
    ]
    assert back.err.startswith("The inter-broker throttle limit was set to 1000000 B/s\n")
    assert call(f"reassign start {topic} --replicas 2 --json") == Outcome(0, "[]\n", "")
    assert "throttled.replicas" not in call(f"configs --describe --entity-type topics --entity-name {topic}").out


def test_throttles_that_are_left_are_found_and_cleared(call: Call, topic: str) -> None:
    call(f"topics create {topic} --replica-assignment 1")
    assert call(f"reassign start {topic} --replicas 2 --throttle 1000000").code == 0
    until(lambda: call("reassign list --json").out.strip() == "[]", "all is moved")
    asked = call("reassign clear-throttles")
    assert (asked.code, "--yes was not given" in asked.err) == (1, True)
    of_topic = json.loads(call(f"reassign clear-throttles {topic} --json").out)
    assert [(each["kind"], each["name"], each["config"], each["value"]) for each in of_topic] == [
        ("topic", topic, "follower.replication.throttled.replicas", "0:2"),
        ("topic", topic, "leader.replication.throttled.replicas", "0:1"),
    ]
    assert "throttled" not in call(f"configs --describe --entity-type topics --entity-name {topic}").out
    cleared = call("reassign clear-throttles --yes")
    assert cleared.code == 0
    rates = {tuple(row) for row in cleared.cells if row[2] == "leader.replication.throttled.rate"}
    assert rates >= {("broker", each, "leader.replication.throttled.rate", "1000000") for each in ("1", "2")}
    assert "throttled" not in call("configs --describe --entity-type brokers --entity-name 2").out
    assert call("reassign clear-throttles --yes") == Outcome(0, "No throttles are left.\n", "")
    assert call("reassign clear-throttles --yes --json") == Outcome(0, "[]\n", "")


def test_throttles_of_moves_that_go_on_stay(call: Call, moving: str, topic: str) -> None:
    refused = call("reassign clear-throttles --yes")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: Partitions of {moving} are being moved, and throttles are for that")
    assert call("reassign clear-throttles no-such-topic").err.startswith("Error: There is no topic 'no-such-topic'.")


def test_a_wait_for_a_move_ends_when_its_time_is_over(call: Call, moving: str) -> None:
    waited = call(f"reassign start {moving} --replicas 2 {SLOW} --additional --wait --wait-timeout 100ms")
    assert waited.code == 1
    throttles, error = waited.err.splitlines()
    assert throttles.startswith("Throttles stay, ")
    assert error.startswith("Error: 0 of 1 moves are done after 0.1 s, and the others go on:")


def test_the_replication_factor_changes_unless_that_is_forbidden(call: Call, topic: str) -> None:
    call(f"topics create {topic} --replica-assignment 1")
    refused = call(f"reassign start {topic} --replicas 1,2,3 --disallow-replication-factor-change")
    assert refused.err == (
        f"Error: Error reassigning partition(s): {topic}-0: The replication factor is changed from 1 to 3\n"
    )
    assert call(f"reassign start {topic} --replication-factor 3 --wait").code == 0
    assert sorted(replicas(call, topic)[0]) == [1, 2, 3]


def test_topics_of_a_pattern_move_when_somebody_said_yes(call: Call, topic: str) -> None:
    call(f"topics create {topic}-a --replica-assignment 1")
    refused = call(f"reassign start --topic {topic}-.* --replicas 3")
    assert "Error: Move 1 partition? Nobody can be asked here" in refused.err
    assert replicas(call, f"{topic}-a") == [[1]]
    assert call(f"reassign start --topic {topic}-a --replicas 3 --wait").code == 0
    assert replicas(call, f"{topic}-a") == [[3]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no JSON", "is not JSON"),
        ("[]", "has no JSON object"),
        ('{"version": 7, "partitions": []}', "Not supported version field value 7"),
        ('{"partitions": []}', "Partition reassignment list cannot be empty"),
        ('{"partitions": [{"partition": 0}]}', "has an entry without a topic"),
        ('{"partitions": [{"topic": "t", "replicas": [1]}]}', "has an entry without a partition"),
        ('{"partitions": [{"topic": "t", "partition": -1, "replicas": [1]}]}', "has an entry without a partition"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "lacks the replicas of t-0"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "replica list cannot be empty"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "may not contain duplicate entries"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [9]}]}', "Unknown broker id 9"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}', "Unable to find partition: t-0"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": []}]}',
            "is different from size of log dirs list",
        ),
    ],
)
@pytest.mark.parametrize("form", ["start", "--execute"])
def test_a_file_that_says_nothing_sensible_is_one_line(
    call: Call, tmp_path: Path, text: str, reason: str, form: str
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    refused = call(f"reassign {form} --reassignment-json-file {file}")
    assert (refused.code, refused.out) == (1, "")
    assert reason in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--execute", "--execute needs --reassignment-json-file"),
        ("--generate", "--generate needs --topics-to-move-json-file and --broker-list"),
        ("--list --verify", "Command must include exactly one action"),
        ("--list --throttle 5000", "--throttle can be used with --execute only"),
        ("--verify --reassignment-json-file f --bootstrap-controller h:1", "Please don't specify both"),
        ("--execute --reassignment-json-file /no/such", "Cannot read /no/such: No such file or directory"),
        ("plan", "Say which topics: their names, or --topic with a regular expression"),
        ("plan no-such-topic", "There is no topic 'no-such-topic'."),
        ("plan --topic no-such-.*", "Topic 'no-such-.*' does not exist as expected"),
        ("start x --reassignment-json-file f", "--reassignment-json-file says all of it"),
        ("start x --wait-timeout soon", "'soon' is not a time like 500ms, 30s, 5m or 1h"),
        ("cancel", "Say which moves: names of topics, --reassignment-json-file or --all"),
        ("strat", "No such command 'strat'. Did you mean 'start'?"),
    ],
)
def test_flags_that_do_not_go_together_are_one_line(call: Call, arguments: str, reason: str) -> None:
    refused = call(f"reassign {arguments}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: {reason}")
    assert refused.err.count("\n") == 1


def test_brokers_that_cannot_take_replicas_are_told(call: Call, topic: str) -> None:
    call(f"topics create {topic} --replica-assignment 1:2:3")
    assert "There is no broker 7, or it is down (there are: 1, 2, 3)" in call(f"reassign plan {topic} --brokers 7").err
    assert "replication factor of 3 cannot be reached" in call(f"reassign plan {topic} --brokers 1,2").err
    too_slow = call(f"reassign start {topic} --replicas 3,2,1 --throttle 5")
    assert too_slow.err.startswith("Error: --throttle: the throttle rate should be at least 1024 bytes per second")
    assert replicas(call, topic) == [[1, 2, 3]]


# Elections


def test_preferred_leaders_are_elected_where_others_lead(call: Call, topic: str, tmp_path: Path) -> None:
    call(f"topics create {topic} --replica-assignment 1:2")
    call(f"reassign start {topic} --replicas 2,1 --wait")
    elected = call(f"elect-leaders --topic {topic} --partition 0")
    assert elected == Outcome(0, f"Successfully completed leader election (PREFERRED) for partitions {topic}-0\n", "")
    assert call(f"elect-leaders --topic {topic}").out == f"Valid replica already elected for partitions {topic}-0\n"
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0}, {"topic": "nope", "partition": 3}]}))
    failed = call(f"elect-leaders --election-type preferred --path-to-json-file {file}")
    assert failed.code == 1
    assert failed.out == f"Valid replica already elected for partitions {topic}-0\n"
    assert failed.err.endswith("1 replica(s) could not be elected\n")
    rows = json.loads(call(f"elect-leaders --path-to-json-file {file} --json").out)
    assert sorted(each["outcome"] for each in rows) == ["failed", "not needed"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("", "One and only one of the following options is required:"),
        ("--topic a --all-topic-partitions", "One and only one of the following options is required:"),
        ("--all-topic-partitions --partition 0", "Option partition is only allowed if topic is used"),
        ("--topic no-such-topic", "There is no topic 'no-such-topic'."),
        ("--election-type quick --topic a", "Invalid value for '--election-type'"),
        ("--path-to-json-file /no/such", "Cannot read /no/such: No such file or directory"),
    ],
)
def test_elections_that_cannot_be_asked_for_are_one_line(call: Call, arguments: str, reason: str) -> None:
    refused = call(f"elect-leaders {arguments}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: {reason}")


# Log directories


@pytest.fixture
def two_directories(tmp_path: Path) -> Iterator[tuple[Call, list[str]]]:
    """A broker with two log directories."""
    paths = [str(tmp_path / "first"), str(tmp_path / "second")]
    broker = Pykbroker(tmp_path / "broker", {"log.dirs": ",".join(paths)})
    broker.start()
    try:
        yield calling(broker.bootstrap), paths
    finally:
        broker.close()


def test_a_plan_moves_a_replica_to_another_log_directory(
    two_directories: tuple[Call, list[str]], topic: str, tmp_path: Path
) -> None:
    call, paths = two_directories
    call(f"topics create {topic}")
    rows = json.loads(call(f"log-dirs describe {topic} --json").out)
    assert {each["log_dir"] for each in rows} == set(paths)
    [old] = [each["log_dir"] for each in rows if each["replicas"]]
    [new] = [each for each in paths if each != old]
    file = tmp_path / "plan.json"
    entry = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [new]}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    before = call(f"reassign --verify --reassignment-json-file {file}")
    assert f"Partition {topic}-0 on broker 1 is not being moved from log dir {old} to {new}." in before.lines
    assert call(f"reassign verify --reassignment-json-file {file} --json").code == 1
    started = call(f"reassign start --reassignment-json-file {file} --wait")
    assert started.code == 0, started
    assert f"Successfully started moving log directory to {new} for replica {topic}-0 with broker 1 " in started.lines
    after = call(f"reassign --verify --reassignment-json-file {file}")
    assert f"Reassignment of replica {topic}-0-1 completed successfully." in after.lines
    assert call(f"log-dirs describe {topic} --top 1").cells[0][2] == new
    entry["log_dirs"] = ["/no/such/directory"]
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    refused = call(f"reassign --execute --reassignment-json-file {file}")
    assert refused.code == 1
    assert refused.err.startswith(f"Error: Failed to alter dir for {topic}-0-1: ")


def test_controllers_list_and_cancel_moves(call: Call, moving: str) -> None:
    replica = json.loads(call("quorum replication --json").out)[0]
    where = f"--bootstrap-controller {replica['endpoints'][0].partition('://')[2]}"
    listed = call(f"reassign list --json {where}", with_server=False)
    assert [each["topic"] for each in json.loads(listed.out)] == [moving]
    assert call(f"reassign --list {where}", with_server=False).lines[1].startswith(f"{moving}-0: replicas: 2,1.")
    assert call(f"reassign cancel {moving} {where}", with_server=False) == Outcome(0, "1 move cancelled.\n", "")
    until(lambda: replicas(call, moving) == [[1]], "the brokers know that the move is off")
    refused = call(f"reassign plan {moving} {where}", with_server=False)
    assert refused.err == "Error: Controllers list and cancel moves alone: give --bootstrap-server\n"
