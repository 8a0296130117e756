"""`pykbroker streams-groups`, in words and with Kafka's flags."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from pykbroker.client.cluster import Cluster, parse_bootstrap_servers
from pykbroker.client.errors import check
from pykbroker.client.group_offsets import commit_offsets
from pykbroker.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from pykbroker.protocol.topic_partition import TopicPartition
from tests.cli.conftest import Outcome
from tests.cli.terminals import at_terminal
from tests.groups.streams_requests import LEAVING, streams_beat, streams_joining, subtopology, topic_info, topology

Call = Callable[..., Outcome]

MEMBER = "a-member"


class Application:
    """An application of Kafka Streams that reads two partitions of a topic, and has a store with a changelog."""

    def __init__(self, bootstrap: str, topic: str, group_id: str) -> None:
        self.bootstrap, self.topic, self.group_id = bootstrap, topic, group_id
        self.changelog = f"{group_id}-counts-changelog"

    def join(self) -> None:
        """Become the one member, with both tasks."""
        part = subtopology("0", self.topic, changelogs=[topic_info(self.changelog, cleanup_policy="compact")])
        epoch = self._beat(streams_joining(self.group_id, MEMBER, topology(part), rebalance=60_000)).member_epoch
        tasks: dict[str, list[int]] = {}
        while tasks != {"0": [0, 1]}:  # until the changelog is there
            answer = self._beat(streams_beat(self.group_id, MEMBER, epoch, active={}, standby={}, rebalance=60_000))
            epoch = answer.member_epoch
            tasks = {each.subtopology_id: sorted(each.partitions) for each in answer.active_tasks or ()}

    def leave(self) -> None:
        self._beat(streams_beat(self.group_id, MEMBER, LEAVING))

    def commit(self, offset: int) -> None:
        async def work() -> None:
            async with Cluster(parse_bootstrap_servers(self.bootstrap)) as cluster:
                await commit_offsets(cluster, self.group_id, {TopicPartition(self.topic, at): offset for at in (0, 1)})

        trio.run(work)

    def _beat(self, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
        async def work() -> StreamsGroupHeartbeatResponse:
            async with Cluster(parse_bootstrap_servers(self.bootstrap)) as cluster:
                return await cluster.group_request(
                    self.group_id,
                    request,
                    StreamsGroupHeartbeatResponse,
                    at_most=0,
                    verify=lambda answer: check(answer.error_code, answer.error_message),
                )

        return trio.run(work)


@pytest.fixture
def application(call: Call, given: Callable[..., None], bootstrap: str, topic: str) -> Application:
    """An application that is a member, of a topic with ten records."""
    call(f"topics create {topic} --partitions 2")
    given(topic, *(b"%d" % number for number in range(10)))
    made = Application(bootstrap, topic, f"{topic}-app")
    made.join()
    return made


@pytest.fixture
def stopped(application: Application) -> Application:
    """An application that has read nothing, has committed that, and has left."""
    application.leave()
    application.commit(0)
    return application


def described(call: Call, group_id: str, flags: str = "") -> dict[str, object]:
    [told] = json.loads(call(f"streams-groups describe {group_id} {flags} --json").out)
    assert isinstance(told, dict)
    return told


def offsets(call: Call, group_id: str) -> list[int]:
    partitions = described(call, group_id)["partitions"]
    assert isinstance(partitions, list)
    return [each["current_offset"] for each in partitions]


def topics(call: Call) -> list[str]:
    return call("topics --list").lines


def test_groups_are_listed_with_their_states(call: Call, application: Application) -> None:
    group = application.group_id
    [[name, protocol, _]] = call(f"streams-groups list {group}").cells
    assert (name, protocol) == (group, "streams")
    application.leave()
    assert call(f"streams-groups list {group} --state empty").cells == [[group, "streams", "Empty"]]
    assert group not in call("streams-groups list --state NotReady").out
    assert group in call("streams-groups --list").lines
    assert [group, "Empty"] in call("streams-groups --list --state Empty,Dead --timeout 20000").cells
    assert {"group": group, "protocol": "streams", "state": "Empty"} in json.loads(
        call("streams-groups --list --json").out
    )
    assert [group, "streams", "streams", "Empty"] in call("groups list --state Empty").cells
    assert "Valid states are: Empty, NotReady," in call("streams-groups list --state none").err


def test_a_description_has_kafkas_columns_in_both_forms(call: Call, application: Application) -> None:
    group = application.group_id
    lags = call(f"streams-groups describe {group}")
    assert lags.lines[0].split() == ["GROUP", "TOPIC", "PARTITION", "OFFSET-LAG"]
    assert [row[:3] for row in lags.cells] == [[group, application.topic, "0"], [group, application.topic, "1"]]
    assert sum(int(row[3]) for row in lags.cells) == 10
    assert lags == call(f"streams-groups --describe --group {group} --offsets")
    verbose = call(f"streams-groups describe {group} --verbose")
    assert verbose.lines[0].split()[3:] == ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"]
    assert verbose == call(f"streams-groups --describe --group {group} --verbose")
    members = call(f"streams-groups describe {group} --members")
    assert members.lines[0].split() == ["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
    assert members.cells[0][1:3] == [MEMBER, f"process-of-{MEMBER}"]
    assert members == call(f"streams-groups --describe --group {group} --members")
    with_targets = call(f"streams-groups describe {group} --members --verbose")
    assert "TARGET-ACTIVE: 0:[0,1];" in with_targets.out
    assert with_targets.cells[0][4] == "streams"
    state = call(f"streams-groups describe {group} --state --verbose")
    assert state.lines[0].split()[4:] == ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    assert state == call(f"streams-groups --describe --group {group} --state --verbose")
    assert group in call("streams-groups --describe --all-groups --state").out


def test_json_has_the_topology_and_the_tasks(call: Call, application: Application) -> None:
    told = described(call, application.group_id)
    assert told["lag"] == 10
    assert told["subtopologies"] == [
        {
            "id": "0",
            "source_topics": [application.topic],
            "repartition_source_topics": [],
            "changelog_topics": [application.changelog],
        }
    ]
    members = told["members"]
    assert isinstance(members, list)
    assert members[0]["target_tasks"]["active"] == [{"subtopology": "0", "partitions": [0, 1]}]
    assert "partitions" not in described(call, application.group_id, "--members")
    assert "members" not in described(call, application.group_id, "--state")


def test_of_a_group_without_members_the_word_shows_what_it_has_committed(call: Call, stopped: Application) -> None:
    shown = call(f"streams-groups describe {stopped.group_id}")
    assert shown.err == f"Streams group '{stopped.group_id}' has no active members.\n"
    assert len(shown.cells) == 2
    assert call(f"streams-groups --describe --group {stopped.group_id}").out == ""


@pytest.mark.parametrize(
    ("place", "moved"),
    [
        ("--to-latest", 10),
        ("--to-earliest", 0),
        ("--to-current", 0),
        ("--to-offset 1", 2),
        ("--shift-by 1", 2),
        ("--to-datetime 2020-01-01T00:00:00.000", 0),
        ("--by-duration P1D", 0),
    ],
)
def test_offsets_are_reset_to_the_place_that_was_named(
    call: Call, stopped: Application, given: Callable[..., None], place: str, moved: int
) -> None:
    while min(int(row[2]) for row in call(f"offsets list {stopped.topic}").cells) < 1:
        given(stopped.topic, b"more")  # so that there is one in each partition
    flags = f"streams-groups --reset-offsets --group {stopped.group_id} --all-input-topics {place}"
    planned = call(f"{flags} --dry-run")
    assert len(planned.cells) == 2
    assert offsets(call, stopped.group_id) == [0, 0]
    done = call(f"{flags} --execute")
    assert (done.code, done.cells) == (0, planned.cells)
    assert sum(offsets(call, stopped.group_id)) >= moved


def test_a_plan_goes_through_a_file(call: Call, stopped: Application, tmp_path: Path) -> None:
    reset = f"streams-groups --reset-offsets --group {stopped.group_id}"
    exported = call(f"{reset} --input-topic {stopped.topic}:1 --to-latest --export --dry-run")
    assert exported.out.startswith(f"{stopped.topic},1,")
    assert (
        exported.out
        == call(f"streams-groups reset-offsets {stopped.group_id} --to-latest --export").out.split("\n", 1)[1]
    )
    file = tmp_path / "plan.csv"
    file.write_text(exported.out)
    assert call(f"{reset} --execute --from-file", str(file)).code == 0
    assert offsets(call, stopped.group_id)[0] == 0


def test_a_reset_takes_internal_topics_with_it_where_that_is_asked_for(
    call: Call, bootstrap: str, stopped: Application
) -> None:
    words = f"streams-groups reset-offsets {stopped.group_id} --to-latest"
    refused = call(f"{words} --delete-internal-topic {stopped.topic} --yes")
    assert "is no internal topic of the streams group" in refused.err
    assert stopped.topic in topics(call)
    line = [*words.split(), "--delete-internal-topic", stopped.changelog, "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=b"n\n")
    assert ended == 1
    assert f"and delete 1 internal topic ({stopped.changelog})? [y/N]" in " ".join(shown.split())
    assert stopped.changelog in topics(call)
    done = call(f"{words} --delete-all-internal-topics --yes")
    assert (done.code, done.err) == (0, f"Deleted internal topics: {stopped.changelog}\n")
    assert stopped.changelog not in topics(call)
    assert call(f"{words} --delete-internal-topic {stopped.changelog} --yes").code == 0


def test_a_running_application_is_neither_reset_nor_deleted(call: Call, application: Application) -> None:
    group = application.group_id
    reset = call(f"streams-groups reset-offsets {group} --to-latest --yes --delete-all-internal-topics")
    assert "can only be reset if the group" in reset.err
    assert call(f"streams-groups delete {group}").err.endswith("is not EMPTY.\n")
    assert application.changelog in topics(call)
    other = call(f"streams-groups --reset-offsets --group {group} --input-topic {group} --to-latest --execute")
    assert other.code == 1


def test_a_topic_that_is_not_the_groups_is_not_reset(call: Call, stopped: Application) -> None:
    call(f"topics create {stopped.topic}b --partitions 1")
    refused = call(f"streams-groups reset-offsets {stopped.group_id} --input-topic {stopped.topic}b --to-latest --yes")
    assert refused.err == f"Error: One or more topics are not part of the group '{stopped.group_id}'.\n"


def test_offsets_are_deleted(call: Call, stopped: Application) -> None:
    deleted = call(f"streams-groups delete-offsets {stopped.group_id} --input-topic {stopped.topic}:0 --json")
    assert json.loads(deleted.out) == [{"topic": stopped.topic, "partition": 0, "status": "Successful"}]
    flags = call(f"streams-groups --delete-offsets --group {stopped.group_id} --all-input-topics --yes")
    assert flags.lines[0] == f"Request succeeded for deleting offsets from group {stopped.group_id}."
    assert flags.lines[2].split() == ["TOPIC", "PARTITION", "STATUS"]
    assert described(call, stopped.group_id)["partitions"] == []


def test_a_group_is_deleted_with_its_internal_topics(call: Call, bootstrap: str, stopped: Application) -> None:
    group = stopped.group_id
    line = ["streams-groups", "delete", group, "--delete-all-internal-topics", "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=b"n\n")
    assert ended == 1
    assert f"internal topics {stopped.changelog}" in " ".join(shown.split())
    deleted = call(f"streams-groups --delete --group {group} --delete-all-internal-topics --yes")
    assert deleted.lines == [
        f"Deletion of requested streams groups ('{group}') was successful.",
        f"Deletion of associated internal topics of the streams groups ('{group}') was successful.",
    ]
    assert stopped.changelog not in topics(call)
    assert stopped.topic in topics(call)
    gone = call(f"streams-groups delete {group} --if-exists --json --yes")
    assert json.loads(gone.out) == []
    missing = call(f"streams-groups --delete --group {group}")
    assert missing.err.endswith(f"Group '{group}' does not exist or is not a streams group.\n")
    assert (
        "Nobody can be asked here" in call("streams-groups delete --all-groups").err
        or not call("streams-groups --list").lines
    )


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--list --delete", "Command must include exactly one action"),
        ("--list --all-groups", "--all-groups cannot be used with --list"),
        ("--describe", "--describe takes one of these options: --all-groups, --group"),
        ("--describe --group a --members --offsets", "--describe takes at most one of these options"),
        ("--describe --group a --state Empty", "--describe does not take a value for --state"),
        ("--delete --group a --input-topic t", "--input-topic can be used with --reset-offsets and --delete-offsets"),
        (
            "--delete --group a --delete-internal-topic t",
            "--delete-internal-topic can be used with --reset-offsets only",
        ),
        ("--list --delete-all-internal-topics", "takes one of these options: --delete, --reset-offsets"),
        ("--delete-offsets --group a", "takes the --group and one of these options: --all-input-topics, --input-topic"),
        ("--delete-offsets --group a --group b --input-topic t", "supports only one --group at a time"),
        ("--reset-offsets --group a --all-input-topics --to-latest", "takes the option: --execute or --dry-run"),
        ("--reset-offsets --group a --to-latest --execute", "takes one of these options: --all-input-topics,"),
        ("--reset-offsets --group a --all-input-topics --execute", "takes exactly one of these options"),
        (
            "--reset-offsets --group a --all-input-topics --to-latest --dry-run --delete-all-internal-topics",
            "--delete-all-internal-topics takes --execute when --reset-offsets is used",
        ),
        ("--describe --group a --execute", "--execute can be used with --reset-offsets only"),
        ("delete a --all-groups", "delete takes either names of groups or --all-groups"),
        ("reset-offsets", "reset-offsets takes either names of groups or --all-groups"),
        ("reset-offsets a --to-latest --export --json", "--export and --json exclude each other"),
        ("reset-offsets a --to-latest --delete-internal-topic t --delete-all-internal-topics", "exclude each other"),
        ("reset-offsets --all-groups --to-latest --delete-internal-topic t", "is for one group at a time"),
        ("reset-offsets a --from-file /nowhere/plan.csv", "There is no group 'a'"),
        ("delete-offsets a", "Say of which topics: --input-topic T or --all-input-topics"),
        ("describe no-such-group-at-all", "There is no group 'no-such-group-at-all'"),
    ],
)
def test_flags_that_do_not_fit_are_one_line(call: Call, flags: str, complaint: str) -> None:
    refused = call(f"streams-groups {flags}")
    assert (refused.code, refused.out) == (1, "")
    assert complaint in refused.err
    assert refused.err.count("\n") == 1
