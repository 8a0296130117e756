"""`pykbroker groups` against a broker."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import TIMEOUT_S, Outcome

Call = Callable[..., Outcome]
Start = Callable[..., subprocess.Popen[bytes]]


def offset_of(call: Call, group: str) -> int:
    [row] = call(f"groups --describe --group {group}").cells
    return int(row[3])


def test_a_group_goes_on_where_it_stopped(call: Call, run: Call, topic: str, group: str) -> None:
    assert run(f"consume --topic {topic} --group {group} --max-messages 2").lines == ["4", "5"]
    assert offset_of(call, group) == 6
    assert run(f"consume --topic {topic} --group {group} --max-messages 1").lines == ["6"]


def test_groups_are_listed_with_state_and_type(call: Call, group: str) -> None:
    assert group in call("groups --list").lines
    assert [group, "Empty"] in call("groups --list --state").cells
    assert [group, "Classic", "Empty"] in call("groups --list --type --state EMPTY").cells
    assert group not in call("groups --list --state stable").out


def test_the_offsets_table_has_kafkas_columns(call: Call, topic: str, group: str) -> None:
    described = call(f"groups --describe --group {group}")
    assert described.err == f"Consumer group '{group}' has no active members.\n"
    blank, titles, row = described.lines
    assert blank == ""
    assert titles.split() == (
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    )
    assert row.split() == [group, topic, "0", "4", "10", "6", "-", "-", "-"]


def test_members_and_state_of_a_live_group_are_shown(call: Call, start: Start, topic: str, group: str) -> None:
    consumer = start(f"consume --topic {topic} --group {group}")
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == b"4\n"
    [state] = call(f"groups --describe --group {group} --state").cells
    assert state[3:] == ["range", "Stable", "1"]
    [member] = call(f"groups --describe --group {group} --members --verbose").cells
    assert member[3:] == ["console-consumer", "1", "-", f"{topic}:0", "-", "-"]
    [row] = call(f"groups --describe --group {group}").cells
    assert row[6:] == [member[1], member[2], "console-consumer"]
    for action, complaint in (
        ("--delete", "could not be deleted due to: The group still has members."),
        ("--reset-offsets --all-topics --to-earliest --execute", "the current state is Stable"),
        (f"--delete-offsets --topic {topic}", "Encountered some partition-level error"),
    ):
        refused = call(f"groups {action} --group {group}")
        assert refused.code == 1
        assert complaint in refused.err
    consumer.send_signal(signal.SIGINT)
    consumer.wait(TIMEOUT_S)
    assert call(f"groups --describe --group {group} --state").cells[0][-2:] == ["Empty", "0"]


@pytest.mark.parametrize(
    ("place", "offset"),
    [
        ("--to-earliest", 0),
        ("--to-latest", 10),
        ("--to-current", 4),
        ("--to-offset 7", 7),
        ("--to-offset 99", 10),
        ("--shift-by -3", 1),
        ("--shift-by -30", 0),
        ("--shift-by 2", 6),
        ("--to-datetime 2020-01-01T00:00:00.000", 0),
        ("--to-datetime 2100-01-01T00:00:00.000", 10),
        ("--by-duration P1D", 0),
    ],
)
def test_offsets_are_reset_to_the_place_that_was_named(
    call: Call, topic: str, group: str, place: str, offset: int
) -> None:
    planned = call(f"groups --reset-offsets --group {group} --topic {topic}:0 {place} --dry-run")
    assert planned.cells == [[group, topic, "0", str(offset)]]
    assert offset_of(call, group) == 4
    done = call(f"groups --reset-offsets --group {group} --all-topics {place} --execute")
    assert (done.code, done.cells) == (0, [[group, topic, "0", str(offset)]])
    assert offset_of(call, group) == offset


def test_without_execute_nothing_happens_and_one_is_told(call: Call, group: str) -> None:
    planned = call(f"groups --reset-offsets --group {group} --all-topics --to-earliest")
    assert planned.err == "WARN: No action will be performed as the --execute option is missing.\n"
    assert offset_of(call, group) == 4


def test_a_plan_goes_through_a_file(call: Call, topic: str, group: str, tmp_path: Path) -> None:
    exported = call(f"groups --reset-offsets --group {group} --all-topics --to-offset 8 --export")
    assert exported.out == f"{topic},0,8\n"
    file = tmp_path / "plan.csv"
    file.write_text(exported.out)
    call(f"groups --reset-offsets --group {group} --execute --from-file", str(file))
    assert offset_of(call, group) == 8


def test_a_group_that_nobody_has_joined_may_be_given_offsets(
    call: Call, name: Callable[[str], str], topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    group = name("given")
    assert call(f"groups --reset-offsets --group {group} --topic {topic} --to-earliest --execute").code == 0
    assert offset_of(call, group) == 0


def test_deleted_offsets_are_gone(call: Call, topic: str, group: str) -> None:
    deleted = call(f"groups --delete-offsets --group {group} --topic {topic}:0")
    assert deleted.lines[0] == f"Request succeeded for deleting offsets from group {group}."
    assert deleted.lines[3].split() == [topic, "0", "Successful"]
    assert topic not in call(f"groups --describe --group {group}").out


def test_a_deleted_group_is_gone(call: Call, group: str) -> None:
    assert call(f"groups --delete --group {group}") == Outcome(
        0, f"Deletion of requested consumer groups ('{group}') was successful.\n", ""
    )
    assert group not in call("groups --list").lines


def test_a_group_that_does_not_exist_is_one_line(call: Call, name: Callable[[str], str]) -> None:
    group = name("missing")
    described = call(f"groups --describe --group {group}")
    assert (described.code, described.out) == (1, "")
    assert described.err.startswith(f"Error: There is no group '{group}'.")
    assert described.err.count("\n") == 1
    deleted = call(f"groups --delete --group {group}")
    assert deleted.code == 1
    assert deleted.err.startswith(f"Error: Group '{group}' could not be deleted due to: ")


def test_two_members_share_the_partitions(call: Call, start: Start, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 4")
    group = f"{topic}-shared"
    member = f"consume --topic {topic} --group {group} --command-property heartbeat.interval.ms=100"
    consumers = [start(member) for _ in range(2)]
    counts: list[str] = []
    # Each look at the group is a request; the rebalance ends by the members' own heartbeats.
    while counts != ["2", "2"]:
        assert all(consumer.poll() is None for consumer in consumers)
        counts = [row[4] for row in call(f"groups --describe --group {group} --members").cells]
    assert len(call(f"groups --describe --group {group}").cells) == 4


def test_groups_of_every_type_are_listed_as_by_kafka_groups(call: Call, group: str) -> None:
    all_types = call("groups --list --all-types")
    assert all_types.lines[0].split() == ["GROUP", "TYPE", "PROTOCOL"]
    assert [group, "Classic"] in all_types.cells
    assert [group, "Classic"] in call("groups --list --all-types --consumer").cells
    assert [group, "Classic"] in call("groups --list --all-types --group-type classic").cells
    for none in ("--share", "--streams", "--protocol consumer", "--group-type share"):
        assert [group, "Classic"] not in call(f"groups --list --all-types {none}").cells
    rows = json.loads(call("groups --list --all-types --json").out)
    assert {"group": group, "type": "classic", "protocol": None, "state": "Empty"} in rows


def test_a_regular_expression_is_said_to_be_valid_or_not(call: Call) -> None:
    assert call("groups --validate-regex a.*") == Outcome(0, "The regular expression `a.*` is valid.\n", "")
    refused = call("groups --validate-regex [a")
    assert refused == Outcome(1, "The regular expression `[a` is invalid: missing ]: [a.\n", "")
    [told] = json.loads(call("groups --validate-regex (?=a) --json").out)
    assert (told["regex"], told["valid"]) == ("(?=a)", False)
    assert told["error"]
