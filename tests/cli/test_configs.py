"""`pykbroker configs` against a broker."""

import json
import re
from collections.abc import Callable

import pytest

from pykbroker.cli import described_configs, output
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


def test_own_configs_are_shown_and_with_all_the_defaults_too(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --config retention.ms=60000")
    own = call(f"configs --describe --entity-type topics --entity-name {topic}")
    title, line = own.lines
    assert title == f"Dynamic configs for topic {topic} are:"
    assert line.startswith("  retention.ms=60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=60000")
    title, *lines = call(f"configs --describe --topic {topic} --all").lines
    assert title == f"All configs for topic {topic} are:"
    assert len(lines) > 25
    assert "  cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}" in lines


def test_configs_are_set_and_deleted(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --config retention.ms=60000")
    altered = call(
        f"configs --alter --topic {topic} --add-config cleanup.policy=[compact,delete],segment.ms=70000 "
        "--delete-config retention.ms"
    )
    assert altered == Outcome(0, f"Completed updating config for topic {topic}.\n", "")
    lines = call(f"configs --describe --topic {topic}").lines[1:]
    assert [line.split(" sensitive")[0] for line in lines] == ["  cleanup.policy=compact,delete", "  segment.ms=70000"]


def test_a_brokers_configs_are_shown(call: Call) -> None:
    lines = call("configs --describe --entity-type brokers").lines
    assert lines[0].startswith("Dynamic configs for broker ")
    assert "Default configs for brokers in the cluster are:" in lines
    broker = lines[0].removeprefix("Dynamic configs for broker ").removesuffix(" are:")
    every = call(f"configs --describe --broker {broker} --all")
    assert every.lines[0] == f"All configs for broker {broker} are:"
    assert any(line.startswith("  num.partitions=1 ") for line in every.lines)


def test_what_does_not_exist_is_one_line(call: Call, topic: str) -> None:
    for action in ("--describe", "--alter --add-config retention.ms=1"):
        missing = call(f"configs {action} --topic {topic}")
        assert missing.code == 1
        assert missing.err.startswith(f"Error: Topic '{topic}' does not exist")
    assert call("configs --describe --broker 4711").err.startswith("Error: There is no broker 4711")


def test_a_config_that_is_refused_changes_nothing(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic}")
    refused = call(f"configs --alter --topic {topic} --add-config segment.ms=70000,foo=1")
    assert refused.code == 1
    assert refused.err == "Error: Unknown topic config name: foo\n"
    assert call(f"configs --describe --topic {topic}").lines == [f"Dynamic configs for topic {topic} are:"]


def test_what_a_config_means_is_shown_where_it_is_asked_for(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --config retention.ms=60000")
    _, row, meaning = call(f"configs --describe --topic {topic} --explain").lines
    assert row.startswith("  retention.ms=60000 ")
    assert meaning == "    How long records are kept; -1 for ever."
    assert call(f"configs --alter --topic {topic} --add-config retention.ms=1 --explain").code == 1


def test_a_broker_tells_where_it_is_set(call: Call) -> None:
    lines = call("configs --describe --broker 1 --all --explain").lines
    at = next(i for i, line in enumerate(lines) if line.startswith("  listeners="))
    assert re.fullmatch(
        r" {4}The addresses that the node listens on.* Set by \S+/server.properties:\d+\.", lines[at + 1]
    )
    at = next(i for i, line in enumerate(lines) if line.startswith("  num.io.threads="))
    assert lines[at + 1] == "    Kafka acts on this key; in pykbroker it has no effect."


def test_a_terminal_shows_what_a_broker_was_started_with(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (described_configs, output):
        monkeypatch.setattr(module, "stdout_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    call("configs --alter --broker 1 --add-config background.threads=11")
    lines = call("configs --describe --broker 1").lines
    assert lines[0] == "Configs that are set for broker 1 are:"
    rows = {line.split()[0]: line for line in lines[3:] if line.strip()}
    assert rows["listeners"].split()[-1].rpartition("/")[2].startswith("server.properties:")
    assert "DYNAMIC_BROKER_CONFIG" in rows["background.threads"]
    assert rows["background.threads"].rstrip().endswith("no effect")
    assert "num.partitions" not in rows
    call("configs --alter --broker 1 --delete-config background.threads")


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("topics --create --topic {topic}-2 --config retention.sm=1", "retention.ms"),
        ("configs --alter --topic {topic} --add-config clean.policy=compact", "cleanup.policy"),
        ("configs --alter --group g --add-config consumer.session.timeout=1", "consumer.session.timeout.ms"),
    ],
)
def test_a_key_that_is_refused_is_answered_with_the_one_that_was_meant(
    call: Call, topic: str, command: str, meant: str
) -> None:
    call(f"topics --create --topic {topic}")
    done = call(command.format(topic=topic))
    assert done.code == 1
    assert done.err.endswith(f" (did you mean {meant}?)\n")
    assert done.err.count("\n") == 1


def test_a_key_of_a_broker_that_nobody_reads_is_set_with_a_warning(call: Call) -> None:
    done = call("configs --alter --broker 1 --add-config log.retention.hour=1")
    assert (done.code, done.out) == (0, "Completed updating config for broker 1.\n")
    assert done.err == "WARN: log.retention.hour is a key that nobody reads; did you mean log.retention.hours?\n"
    call("configs --alter --broker 1 --delete-config log.retention.hour")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("num.replica.fetchers=2", ""),
        ("background.threads=8", "WARN: background.threads: has no effect in pykbroker\n"),
    ],
)
def test_a_change_on_which_nothing_acts_is_made_with_a_warning(call: Call, change: str, says: str) -> None:
    key = change.partition("=")[0]
    done = call(f"configs --alter --broker 1 --add-config {change}")
    assert (done.code, done.err) == (0, says)
    assert call(f"configs --alter --broker 1 --delete-config {key}").err == ""


def test_a_refusal_for_another_reason_is_not_about_keys(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic}")
    again = f"topics --create --topic {topic} --config retention.sm=1"
    assert call(again).err == f"Error: Topic '{topic}' already exists.\n"
    assert call(f"{again} --if-not-exists").code == 0


def test_a_config_of_a_group_comes_from_what_kafkas_tool_names(call: Call, name: Callable[[str], str]) -> None:
    group, key = name("group"), "consumer.session.timeout.ms"
    assert call(f"configs --alter --group {group} --add-config {key}=50000").code == 0
    described = call(f"configs --describe --group {group}")
    assert f"{key}=50000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{key}=50000, " in described.out
    [entity] = json.loads(call(f"configs --describe --group {group} --json").out)
    assert entity["configs"][0]["source"] == "DYNAMIC_GROUP_CONFIG"
