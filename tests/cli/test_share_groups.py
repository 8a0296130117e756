"""`pykbroker share-groups`, in words and with Kafka's flags, and `pykbroker consume --share`."""

import json
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.conftest import TIMEOUT_S, Outcome
from tests.cli.terminals import at_terminal

Call = Callable[..., Outcome]
Start = Callable[..., subprocess.Popen[bytes]]

EPOCHS = ["LEADER-EPOCH", "START-OFFSET", "LAG"]


@pytest.fixture
def share_group(call: Call, given: Callable[..., None], topic: str) -> str:
    """A share group without members that begins at the fourth of ten records."""
    call(f"topics create {topic} --partitions 1")
    given(topic, *(b"%d" % number for number in range(10)))
    group = f"{topic}-workers"
    assert call(f"configs alter group {group} --set share.auto.offset.reset=earliest").code == 0
    assert call(f"share-groups reset-offsets {group} --topic {topic} --to-earliest --yes").code == 0
    return group


def start_of(call: Call, group: str) -> int | None:
    [told] = json.loads(call(f"share-groups describe {group} --json").out)
    return told["partitions"][0]["start_offset"] if told["partitions"] else None


def test_groups_are_listed_with_their_states(call: Call, share_group: str) -> None:
    assert call(f"share-groups list {share_group}").cells == [[share_group, "share", "Empty"]]
    assert share_group not in call("share-groups list --state Stable,Dead").out
    rows = json.loads(call("share-groups list --json").out)
    assert {"group": share_group, "protocol": "share", "state": "Empty"} in rows
    assert share_group in call("share-groups --list").lines
    assert [share_group, "Empty"] in call("share-groups --list --state").cells
    assert [share_group, "Empty"] in call("share-groups --list --state empty --timeout 20000").cells
    assert share_group in [row["group"] for row in json.loads(call("share-groups --list --json").out)]
    refused = call("share-groups list --state Rebalancing")
    assert refused.err == "Error: Invalid state 'Rebalancing'. Valid states are: Empty, Stable, Dead\n"


def test_a_description_has_kafkas_columns_in_both_forms(call: Call, topic: str, share_group: str) -> None:
    offsets = call(f"share-groups describe {share_group}")
    assert offsets.lines[1].split() == ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    assert offsets.cells == [[share_group, topic, "0", "0", "10"]]
    assert offsets == call(f"share-groups --describe --group {share_group} --offsets")
    verbose = call(f"share-groups describe {share_group} --verbose")
    assert verbose.lines[1].split()[3:] == EPOCHS
    assert verbose == call(f"share-groups --describe --group {share_group} --verbose")
    state = call(f"share-groups describe {share_group} --state --verbose")
    assert state.err == f"Share group '{share_group}' has no active members.\n"
    assert state.lines[1].split() == [
        "GROUP",
        "COORDINATOR",
        "(ID)",
        "STATE",
        "GROUP-EPOCH",
        "ASSIGNMENT-EPOCH",
        "#MEMBERS",
    ]
    assert state.cells[0][3] == "Empty"
    assert state.cells[0][-1] == "0"
    assert state == call(f"share-groups --describe --group {share_group} --state --verbose")
    assert call(f"share-groups describe {share_group} --members").out == ""
    assert share_group in call("share-groups --describe --all-groups").out
    assert share_group in [each["group"] for each in json.loads(call("share-groups describe --json").out)]


def test_a_member_is_shown_while_it_reads(call: Call, start: Start, topic: str, share_group: str) -> None:
    member = start(f"consume --topic {topic} --group {share_group} --share --max-messages 11")
    assert member.stdout is not None
    assert [member.stdout.readline() for _ in range(10)] == [b"%d\n" % number for number in range(10)]
    [row] = call(f"share-groups --describe --group {share_group} --members --verbose").cells
    assert (row[3], row[4], row[6]) == ("console-share-consumer", "1", f"{topic}:0")
    [told] = json.loads(call(f"share-groups describe {share_group} --members --json").out)
    assert told["members"][0]["assignment"] == [{"topic": topic, "partition": 0}]
    assert "partitions" not in told
    [told] = json.loads(call(f"groups describe {share_group} --json").out)
    assert (told["type"], told["members"][0]["client_id"]) == ("share", "console-share-consumer")
    for refused in (
        f"share-groups delete {share_group}",
        f"share-groups reset-offsets {share_group} --to-latest --yes",
        f"share-groups delete-offsets {share_group} --topic {topic}",
    ):
        assert call(refused).code == 1
    assert "is not EMPTY." in call(f"share-groups --delete --group {share_group}").err
    member.send_signal(signal.SIGTERM)
    member.wait(TIMEOUT_S)
    assert call(f"share-groups describe {share_group}").cells[0][4] == "0"


def test_a_wait_knows_the_lag_of_a_share_group(call: Call, topic: str, share_group: str) -> None:
    waits = f"wait --group {share_group} --timeout 100ms"
    assert call(f"{waits} --lag 10").code == 0
    assert "its lag is 10" in call(f"{waits} --lag 9").err
    assert call(f"{waits} --state Empty --members 0").code == 0
    call(f"share-groups reset-offsets {share_group} --to-latest --yes")
    assert call(f"{waits} --lag 0 --topic {topic}").code == 0
    assert "it has no committed offset" in call(f"wait --group {share_group}x --timeout 100ms --lag 0").err


def test_records_are_accepted_released_and_rejected(call: Call, run: Call, topic: str, share_group: str) -> None:
    read = f"consume --topic {topic} --group {share_group} --share --timeout-ms 60000"
    delivery = "--formatter-property print.delivery=true"
    released = run(f"{read} --max-messages 2 --release {delivery}")
    assert released.lines == ["Delivery:1\t0", "Delivery:1\t1"]
    rejected = run(f"{read} --max-messages 2 --reject {delivery}")
    assert rejected.lines == ["Delivery:2\t0", "Delivery:2\t1"]
    [third] = json.loads(f"[{run(f'{read} --max-messages 1 --json').out}]")
    assert (third["offset"], third["value"], third["delivery_count"]) == (2, "2", 1)
    rest = run(f"{read} --max-messages 7")
    assert (rest.lines, rest.err) == (["3", "4", "5", "6", "7", "8", "9"], "Processed a total of 7 messages\n")
    assert call(f"share-groups describe {share_group}").cells[0][4] == "0"


def test_what_cannot_be_formatted_is_rejected_or_left_to_others(
    run: Call, given: Callable[..., None], topic: str, share_group: str
) -> None:
    given(topic, b"four", b"end")
    numbers = "--value-deserializer IntegerDeserializer --timeout-ms 60000"
    read = f"consume --topic {topic} --group {share_group} --share"
    assert run(f"{read} --max-messages 10 --timeout-ms 60000").lines == [str(number) for number in range(10)]
    failed = run(f"{read} --max-messages 2 {numbers}")
    assert (failed.code, failed.lines) == (1, [str(int.from_bytes(b"four", "big"))])
    again = run(f"{read} --max-messages 1 {numbers} --reject-message-on-error")
    assert (again.code, again.out) == (0, "")
    assert "Size of data received by the deserializer is 3, not 4" in again.err


def test_a_reset_is_shown_and_done_when_somebody_said_so(
    call: Call, bootstrap: str, topic: str, share_group: str
) -> None:
    planned = call(f"share-groups reset-offsets {share_group} --to-latest --dry-run")
    assert planned.cells == [[share_group, topic, "0", "0", "10"]]
    refused = call(f"share-groups reset-offsets {share_group} --to-latest")
    assert refused.code == 1
    assert refused.err.endswith("neither --execute nor --yes was given\n")
    flags = f"share-groups --reset-offsets --group {share_group}"
    assert call(f"{flags} --all-topics --to-latest --dry-run").cells == [[share_group, topic, "0", "10"]]
    assert start_of(call, share_group) == 0
    assert call(f"{flags} --topic {topic}:0 --to-latest --execute").code == 0
    assert start_of(call, share_group) == 10
    early = "--to-datetime 2020-01-01T00:00:00.000"
    assert call(f"share-groups reset-offsets {share_group} {early} --execute --json").code == 0
    assert start_of(call, share_group) == 0
    line = ["share-groups", "reset-offsets", share_group, "--to-latest", "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=b"y\n")
    assert ended == 0
    assert "Reset 1 offset? [y/N]" in shown
    assert start_of(call, share_group) == 10
    assert "share-groups reset-offsets" in call(f"groups reset-offsets {share_group} --to-latest --yes").err


def test_offsets_and_groups_are_deleted(call: Call, bootstrap: str, topic: str, share_group: str) -> None:
    line = ["share-groups", "delete-offsets", share_group, "--topic", topic, "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=b"n\n")
    assert ended == 1
    assert f"{topic}-0 (start offset 0)" in shown
    assert "Delete 1 offset of the share group" in shown
    deleted = call(f"share-groups delete-offsets {share_group} --topic {topic} --json --yes")
    assert json.loads(deleted.out) == [{"topic": topic, "status": "Successful"}]
    again = call(f"share-groups --delete-offsets --group {share_group} --topic {topic}x")
    assert again.code == 1
    assert again.lines[1].split() == ["TOPIC", "STATUS"]
    line = ["share-groups", "delete", share_group, "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=b"n\n")
    assert ended == 1
    assert f"{share_group} (Empty, 0 share partitions)" in shown
    refused = call("share-groups delete --all-groups")
    assert "Nobody can be asked here, and --yes was not given" in refused.err
    gone = call(f"share-groups delete {share_group} --json")
    assert json.loads(gone.out) == [{"group": share_group, "deleted": True, "error": None}]
    assert json.loads(call(f"share-groups delete {share_group} --if-exists --json").out) == []
    missing = call(f"share-groups --delete --group {share_group} --yes")
    assert missing.err.endswith(f"Group '{share_group}' is not a share group.\n")


@pytest.mark.parametrize(
    "line", ["describe {}", "--describe --group {}", "delete {}", "list {}", "delete-offsets {} --topic t"]
)
def test_a_misspelled_group_is_told_with_the_one_that_was_meant(call: Call, share_group: str, line: str) -> None:
    missing = call(f"share-groups {line.format(share_group + 'x')}")
    assert missing.code == 1
    assert missing.err.startswith(f"Error: There is no group '{share_group}x'. Did you mean '{share_group}'")


def test_a_group_of_another_type_is_told_as_that(call: Call, group: str) -> None:
    refused = call(f"share-groups describe {group}")
    assert refused.code == 1
    assert refused.err.startswith(f"Error: '{group}' is a group of the type classic, not of the type share;")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("", "Command must include exactly one action"),
        ("--list --describe", "Command must include exactly one action"),
        ("--describe", "--describe takes one of these options: --all-groups, --group"),
        ("--describe --group a --members --state", "--describe takes at most one of these options"),
        ("--describe --group a --state Empty", "--describe does not take a value for --state"),
        ("--list --group a", "--group cannot be used with --list"),
        ("--list --members", "--members can be used with --describe only"),
        ("--delete --group a --topic t", "--topic can be used with --reset-offsets and --delete-offsets only"),
        ("--delete-offsets --group a", "--delete-offsets takes the following options: --group, --topic"),
        ("--delete-offsets --group a --group b --topic t", "--delete-offsets takes one --group at a time"),
        ("--reset-offsets --group a --all-topics --to-latest", "takes the option: --execute or --dry-run"),
        ("--reset-offsets --all-topics --to-latest --execute", "--reset-offsets takes the option: --group"),
        ("--reset-offsets --group a --to-latest --execute", "takes one of these options: --all-topics, --topic"),
        ("--reset-offsets --group a --all-topics --execute", "exactly one of these options: --to-earliest,"),
        ("--reset-offsets --group a --all-topics --execute --dry-run --to-latest", "only accepts one of"),
        ("--list --yes", "--yes can be used with --delete and --delete-offsets only"),
        ("--delete --group a --state", "--state can be used with --describe and --list only"),
        ("--list --timeout 0", "0 is not in the range"),
        ("delete", "delete takes either names of groups or --all-groups"),
        ("delete a --all-groups", "delete takes either names of groups or --all-groups"),
        ("reset-offsets a", "reset-offsets takes exactly one of these options"),
        ("reset-offsets a --to-latest --dry-run --yes", "--dry-run and --execute exclude each other"),
        ("reset-offsets a --to-datetime never", "'never' is not a date and time"),
        ("delete-offsets a", "Say of which topics: --topic T"),
        ("describe --members --state", "--describe takes at most one of these options"),
    ],
)
def test_flags_that_do_not_fit_are_one_line(call: Call, flags: str, complaint: str) -> None:
    refused = call(f"share-groups {flags}")
    assert (refused.code, refused.out) == (1, "")
    assert complaint in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--reject", "--reject can be given with --share only"),
        ("--release", "--release can be given with --share only"),
        ("--reject-message-on-error", "--reject-message-on-error can be given with --share only"),
        ("--share --reject --release", "At most one of --reject and --release may be specified."),
        ("--share --reject-message-on-error --skip-message-on-error", "At most one of --reject-message-on-error"),
        ("--share --from-beginning", "--from-beginning cannot be given with --share"),
        ("--share --isolation-level read_committed", "--isolation-level cannot be given with --share"),
        ("--share --grep a", "--grep cannot be given with --share"),
        ("--share --header a", "--header cannot be given with --share"),
        ("--share --exit-at-end", "--exit-at-end cannot be given with a group"),
        ("--share --partition 0", "Options group and partition cannot be specified together."),
        ("--share --group a --command-property group.id=b", "--group 'a' and group.id 'b' are not the same"),
    ],
)
def test_flags_of_a_share_consumer_that_do_not_fit_are_one_line(call: Call, flags: str, complaint: str) -> None:
    refused = call(f"consume --topic t {flags}")
    assert (refused.code, refused.out) == (1, "")
    assert complaint in refused.err
    assert refused.err.count("\n") == 1


@pytest.fixture
def perf(call: Call, bootstrap: str) -> Call:
    """`perf("--topic t --num-records 1")`."""
    return lambda flags: call(f"perf share-consume {flags}", "--bootstrap-server", bootstrap, with_server=False)


def test_a_performance_test_reads_as_several_members(perf: Call, topic: str, share_group: str) -> None:
    measured = perf(
        f"--topic {topic} --group {share_group} --num-records 10 --threads 2 --timeout 60000 --show-consumer-stats "
        "--show-detailed-stats --reporting-interval 100 --fetch-size 1000 --socket-buffer-size 1 --print-metrics "
        "--date-format yyyy"
    )
    assert measured.code == 0, measured.err
    header, *lines = measured.lines
    assert header == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
    )
    assert any(line.endswith(" for share consumer 2") for line in lines)
    assert lines[-2].startswith("Share consumer 2 having client id perf-share-consumer-client-2 consumption metrics- ")
    assert lines[-1].split(", ")[5] == "10"


def test_a_performance_test_that_gets_too_little_says_so(perf: Call, topic: str, share_group: str) -> None:
    wanted = f"--topic {topic} --group {share_group} --messages 11 --timeout 0"
    short = perf(wanted)
    assert short.lines[1].startswith("WARNING: Exiting before consuming the expected number of records: timeout (0 ms)")
    told = json.loads(perf(f"{wanted} --hide-header --json").out)
    assert (told["records"], told["complete"], told["error"]) == (0, False, None)
    missing = perf(f"--topic {topic}x --messages 1")
    assert missing.err.startswith(f"Error: Topic '{topic}x' does not exist; create it with: ")
