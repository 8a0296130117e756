"""`pykbroker groups` in words: list, describe, reset-offsets, delete-offsets, delete; JSON, questions, exit codes."""

import json
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.conftest import TIMEOUT_S, Outcome
from tests.cli.terminals import at_terminal

Call = Callable[..., Outcome]
Start = Callable[..., subprocess.Popen[bytes]]


def offset_of(call: Call, group: str) -> int | None:
    [described] = json.loads(call(f"groups describe {group} --json").out)
    offsets = [each["current_offset"] for each in described["partitions"]]
    return offsets[0] if offsets else None


def test_groups_are_listed_with_type_protocol_and_state(call: Call, group: str) -> None:
    assert call(f"groups list {group}").cells == [[group, "classic", "-", "Empty"]]
    assert call("groups list --state empty --type classic").cells.count([group, "classic", "-", "Empty"]) == 1
    assert group not in call("groups list --state stable").out
    assert group not in call("groups list --type share").out
    expected = [{"group": group, "type": "classic", "protocol": None, "state": "Empty"}]
    assert json.loads(call(f"groups list {group} --json").out) == expected
    assert expected[0] in json.loads(call("groups --list --json").out)


def test_a_description_is_that_of_the_flags_and_json_has_all_of_it(call: Call, topic: str, group: str) -> None:
    assert call(f"groups describe {group}") == call(f"groups --describe --group {group}")
    assert call(f"groups describe {group} --state") == call(f"groups --describe --group {group} --state")
    assert call(f"groups describe {group} --members") == call(f"groups --describe --group {group} --members")
    described = call(f"groups describe {group} --json")
    assert described.err == ""
    [found] = json.loads(described.out)
    assert (found["group"], found["state"], found["lag"], found["members"]) == (group, "Empty", 6, [])
    assert found["partitions"] == [
        {
            "topic": topic,
            "partition": 0,
            "current_offset": 4,
            "log_end_offset": 10,
            "lag": 6,
            "consumer_id": None,
        }
    ]
    assert group in [each["group"] for each in json.loads(call("groups describe --json").out)]


def test_json_has_members_with_what_they_read(call: Call, start: Start, topic: str, group: str) -> None:
    consumer = start(f"consume --topic {topic} --group {group}")
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == b"4\n"
    [found] = json.loads(call(f"groups describe {group} --json --members").out)
    assert "partitions" not in found
    [member] = found["members"]
    assert member["client_id"] == "console-consumer"
    assert member["assignment"] == [{"topic": topic, "partition": 0}]
    [found] = json.loads(call(f"groups describe {group} --json").out)
    assert found["partitions"][0]["consumer_id"] == member["consumer_id"]
    consumer.send_signal(signal.SIGINT)
    consumer.wait(TIMEOUT_S)


def test_a_group_that_lags_by_more_than_allowed_is_exit_code_1(call: Call, group: str) -> None:
    late = call(f"groups describe {group} --lag-above 5")
    assert late.code == 1
    assert [row[5] for row in late.cells] == ["6"]
    assert call(f"groups describe {group} --lag-above 6") == Outcome(0, "", "")
    assert call(f"groups --describe --group {group} --lag-above 5").code == 1
    assert call(f"groups describe {group} --lag-above 6 --json") == Outcome(0, "[]\n", "")


def test_a_partition_that_nobody_has_read_lags_by_all_that_it_has(
    call: Call, start: Start, given: Callable[..., None], topic: str
) -> None:
    call(f"topics create {topic} --partitions 1")
    given(topic, *[b"unread"] * 3)
    quiet = f"consume --topic {topic} --group {topic} --command-property enable.auto.commit=false"
    consumer = start(f"{quiet} --from-beginning")
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == b"unread\n"
    assert call(f"groups describe {topic} --lag-above 2").code == 1
    assert call(f"groups describe {topic} --lag-above 3").code == 0


@pytest.mark.parametrize("line", ["groups describe {}", "groups --describe --group {}", "groups delete {}"])
def test_a_misspelled_group_is_told_with_the_one_that_was_meant(call: Call, group: str, line: str) -> None:
    missing = call(line.format(f"{group[:-2]}pu"))
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith(f"Error: There is no group '{group[:-2]}pu'. Did you mean '{group}'")
    assert missing.err.count("\n") == 1


def test_offsets_are_reset_when_somebody_said_so(call: Call, topic: str, group: str) -> None:
    row = [group, topic, "0", "4", "0"]
    planned = call(f"groups reset-offsets {group} --to-earliest --dry-run")
    assert (planned.code, planned.cells, planned.err) == (0, [row], "")
    refused = call(f"groups reset-offsets {group} --to-earliest")
    assert (refused.code, refused.cells) == (1, [row])
    assert refused.err.endswith("nobody can be asked here, and neither --execute nor --yes was given\n")
    assert offset_of(call, group) == 4
    for flag, place, offset in (("--yes", "--to-earliest", 0), ("--execute", "--shift-by 3", 3)):
        assert call(f"groups reset-offsets {group} {place} {flag}").code == 0
        assert offset_of(call, group) == offset
    [planned_json] = json.loads(call(f"groups reset-offsets {group} --to-latest --dry-run --json").out)
    assert planned_json == {
        "group": group,
        "topic": topic,
        "partition": 0,
        "current_offset": 3,
        "new_offset": 10,
    }


def test_a_misspelled_group_is_not_reset_unless_topics_say_what_is_new(call: Call, topic: str, group: str) -> None:
    refused = call(f"groups reset-offsets {group}x --to-earliest --yes")
    assert refused.err.startswith(f"Error: There is no group '{group}x'. Did you mean '{group}'")
    assert call(f"groups reset-offsets {group}x --topic {topic} --to-earliest --yes").code == 0
    assert offset_of(call, f"{group}x") == 0


@pytest.mark.parametrize(("answer", "code", "offset"), [(b"n\n", 1, 4), (b"y\n", 0, 0)])
def test_a_reset_asks_at_a_terminal(
    call: Call, bootstrap: str, group: str, answer: bytes, code: int, offset: int
) -> None:
    line = ["groups", "reset-offsets", group, "--to-earliest", "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=answer)
    assert ended == code
    assert "Reset 1 offset? [y/N]" in shown
    assert offset_of(call, group) == offset


def test_offsets_of_a_topic_are_deleted(call: Call, topic: str, group: str) -> None:
    deleted = call(f"groups delete-offsets {group} --topic {topic} --json")
    assert json.loads(deleted.out) == [{"topic": topic, "partition": 0, "status": "Successful"}]
    assert offset_of(call, group) is None
    missing = call(f"groups delete-offsets {group}x --topic {topic}")
    assert missing.err.startswith(f"Error: There is no group '{group}x'.")


@pytest.mark.parametrize("form", ["groups delete {}", "groups --delete --group {}"])
def test_a_person_sees_what_goes_with_a_group_and_is_asked(call: Call, bootstrap: str, group: str, form: str) -> None:
    line = [*form.format(group).split(), "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=b"no\n")
    assert ended == 1
    assert f"{group} (Empty, 1 committed offset)" in shown
    assert "Delete 1 group with all committed offsets? [y/N]" in shown
    assert group in call("groups --list").lines
    assert at_terminal(line, answer=b"yes\n")[0] == 0
    assert group not in call("groups --list").lines


@pytest.mark.parametrize("form", ["groups delete --all-groups", "groups --delete --all-groups"])
def test_all_groups_are_deleted_by_scripts_only_with_yes(call: Call, group: str, form: str) -> None:
    refused = call(form)
    assert (refused.code, refused.out) == (1, "")
    assert "Nobody can be asked here, and --yes was not given" in refused.err
    assert group in call("groups --list").lines


def test_a_named_group_is_deleted_by_a_script_without_a_question(call: Call, group: str) -> None:
    assert call(f"groups delete {group}x {group}").code == 1
    assert group in call("groups --list").lines
    assert call(f"groups delete {group}x {group} --if-exists").code == 0
    assert group not in call("groups --list").lines
