"""`--json` of every command whose result a program wants: one document on standard output, and nothing else there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
from click.testing import CliRunner

from pykbroker.cli.main import main
from pykbroker.cli.two_forms import Words
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]

WITHOUT: Final = {
    "start": "runs until it is stopped; --port-file says where, --log-format json is for its lines",
    "container": "runs a node, as start does",
    "cluster": "runs nodes until it is stopped; its --port-file says where",
    "completion": "prints a shell's script",
    "kafka": "runs another command, whose flags follow its name",
    "ctl": "answers in JSON always",
    "log-dirs": "prints the JSON of kafka-log-dirs; its word describe has it",
    "offsets": "prints the lines of kafka-get-offsets; its word list has it",
    "reassign": "prints the texts of kafka-reassign-partitions; its words have it",
}
"""Commands that have no `--json`, by their names, and why."""


def acting(command: click.Command, names: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Return the commands that do something themselves, which groups of words do not."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from acting(inner, (*names, name))
    is_only_a_group = isinstance(command, click.Group) and (
        not command.invoke_without_command or type(command) is Words
    )
    if not is_only_a_group:
        yield " ".join(names), command


def test_every_command_has_json_or_a_reason_not_to() -> None:
    without = [
        name
        for name, command in acting(main)
        if not any("--json" in each.opts for each in command.params) and not name.startswith("ctl ")
    ]
    assert set(without) == set(WITHOUT) - {"ctl"}


@pytest.fixture
def changed(call: Call) -> Callable[..., Any]:
    """`changed("topics create t")` as JSON, where nothing is said on standard error."""

    def invoke(words: str) -> Any:
        outcome = call(f"{words} --json")
        assert (outcome.code, outcome.err) == (0, ""), outcome
        return json.loads(outcome.out)

    return invoke


def test_changes_of_topics_are_told_in_json(changed: Callable[..., Any], topic: str) -> None:
    assert changed(f"topics create {topic} {topic}b") == [
        {"topic": topic, "created": True},
        {"topic": f"{topic}b", "created": True},
    ]
    assert changed(f"topics create {topic} --if-not-exists") == [{"topic": topic, "created": False}]
    assert changed(f"topics --create --topic {topic} --if-not-exists") == [{"topic": topic, "created": False}]
    assert changed(f"topics alter {topic} --partitions 2 --config retention.ms=1 --delete-config segment.ms") == [
        {"topic": topic, "partitions": 2},
        {"topic": topic, "configs_set": ["retention.ms"], "configs_deleted": ["segment.ms"]},
    ]
    assert changed(f"topics delete {topic} {topic}b --yes") == [
        {"topic": topic, "deleted": True},
        {"topic": f"{topic}b", "deleted": True},
    ]
    assert changed(f"topics delete {topic} --if-exists") == []


def test_what_was_done_before_a_failure_is_told(call: Call, topic: str) -> None:
    call(f"topics create {topic}b")
    failed = call(f"topics create {topic}a {topic}b {topic}c --json")
    assert (failed.code, failed.err) == (1, f"Error: Topic '{topic}b' already exists.\n")
    assert json.loads(failed.out) == [{"topic": f"{topic}a", "created": True}]
    assert call(f"topics create {topic}b --json") == Outcome(1, "", failed.err)


def test_changes_of_configs_and_quotas_are_told_in_json(changed: Callable[..., Any], topic: str) -> None:
    changed(f"topics create {topic}")
    row = {"type": "topic", "name": topic, "set": ["retention.ms"], "deleted": []}
    assert changed(f"configs alter topic {topic} --set retention.ms=9") == [row]
    assert changed(f"configs --alter --topic {topic} --delete-config retention.ms") == [
        {**row, "set": [], "deleted": ["retention.ms"]}
    ]
    of_user: dict[str, Any] = {"entity": {"user": topic}, "set": {}, "deleted": []}
    assert changed(f"quotas set --user {topic} producer_byte_rate=5") == [{**of_user, "set": {"producer_byte_rate": 5}}]
    assert changed(f"quotas --alter --user {topic} --add-config consumer_byte_rate=6") == [
        {**of_user, "set": {"consumer_byte_rate": 6}}
    ]
    [deleted] = changed(f"quotas delete --user {topic} --yes")
    assert sorted(deleted["deleted"]) == ["consumer_byte_rate", "producer_byte_rate"]


def test_changes_of_users_are_told_in_json_without_passwords(
    changed: Callable[..., Any], name: Callable[[str], str], tmp_path: Path
) -> None:
    user, password = name("user"), tmp_path / "password"
    password.write_text("very-secret\n")
    row: dict[str, Any] = {"user": user, "set": ["SCRAM-SHA-512"], "deleted": []}
    assert changed(f"users create {user} --password-file {password}") == [row]
    assert changed(f"users alter {user} --password-file {password}") == [row]
    assert changed(f"users --alter --user {user} --add-config SCRAM-SHA-512=[] --password-file {password}") == [row]
    assert changed(f"users delete {user} --yes") == [{"user": user, "deleted": ["SCRAM-SHA-512"]}]


def test_deletions_of_groups_are_told_in_json(changed: Callable[..., Any], call: Call, group: str) -> None:
    assert changed(f"groups delete {group} --yes") == [{"group": group, "deleted": True, "error": None}]
    assert changed(f"groups delete {group} --if-exists") == []
    missing = call(f"groups --delete --group {group} --json")
    [row] = json.loads(missing.out)
    assert (missing.code, row["group"], row["deleted"]) == (1, group, False)
    assert row["error"] in missing.err


def test_changes_of_share_groups_are_told_in_json(changed: Callable[..., Any], call: Call, topic: str) -> None:
    call(f"topics create {topic}")
    reset = f"share-groups reset-offsets {topic} --topic {topic} --to-earliest --yes"
    assert changed(reset) == [{"group": topic, "topic": topic, "partition": 0, "current_offset": None, "new_offset": 0}]
    assert changed(f"share-groups delete-offsets {topic} --topic {topic}") == [{"topic": topic, "status": "Successful"}]
    assert changed(f"share-groups delete {topic}") == [{"group": topic, "deleted": True, "error": None}]
    for words in ("share-groups --delete --group", "streams-groups --delete --group"):
        missing = call(f"{words} {topic} --json")
        [row] = json.loads(missing.out)
        assert (missing.code, row["group"], row["deleted"]) == (1, topic, False)
        assert row["error"] in missing.err


def test_a_wait_tells_what_came_true_and_how_long_it_took(changed: Callable[..., Any], call: Call, topic: str) -> None:
    call(f"topics create {topic}")
    [waited] = changed(f"wait --topic {topic} --partitions 1")
    assert waited.pop("waited_ms") >= 0
    assert waited == {"topic": topic, "partitions": 1}
    late = call("wait --topic no-such-topic --timeout 100ms --json")
    assert (late.code, late.out) == (1, "")


def test_changes_of_features_are_told_in_json(changed: Callable[..., Any], call: Call) -> None:
    assert changed("features upgrade --feature transaction.version=2 --dry-run") == [
        {"feature": "transaction.version", "level": 2, "changed": False, "error": None}
    ]
    refused = call("features upgrade --feature transaction.version=99 --json")
    assert refused.code == 1
    assert [each["changed"] for each in json.loads(refused.out)] == [False]


def test_a_probe_is_json_as_well(bootstrap: str, tmp_path: Path) -> None:
    file = tmp_path / "theirs.toml"
    probed = CliRunner().invoke(main, ["probe", bootstrap, "--json", "--output", str(file)])
    assert probed.exit_code == 0
    assert len(json.loads(probed.stdout)) > 1
    assert file.read_text().splitlines()


def test_a_format_tells_its_directories(tmp_path: Path) -> None:
    def formatted(*arguments: str) -> Any:
        done = CliRunner().invoke(main, ["format", *arguments, "--json"])
        assert (done.exit_code, done.stderr) == (0, "")
        return json.loads(done.stdout)

    [made] = formatted("--random-uuid")
    directory = tmp_path / "logs"
    arguments = ("-t", made["cluster_id"], "--override", f"log.dirs={directory}", "-g")
    row = {"directory": str(directory), "cluster_id": made["cluster_id"], "formatted": True}
    assert formatted(*arguments) == [row]
    assert formatted(*arguments) == [{**row, "formatted": False}]
