"""Kafka's tools by their names, and the commands that do what they do."""

from __future__ import annotations

import click
import pytest

from pykbroker.cli.main import main
from pykbroker.container.tools import TOOLS, UnknownTool, command_of


def test_every_tool_has_a_command_that_exists() -> None:
    context = click.Context(main)
    for words in TOOLS.values():
        command: click.Command | None = main
        for word in words.split():
            assert isinstance(command, click.Group), words
            command = command.get_command(context, word)
        assert command is not None, words


@pytest.mark.parametrize(
    ("told", "command"),
    [
        ("kafka-topics.sh --list", "topics --list"),
        ("kafka-topics --list", "topics --list"),
        ("kafka-groups.sh --list --share", "groups --all-types --list --share"),
        ("kafka-share-groups.sh --list --state", "share-groups --list --state"),
        ("kafka-streams-groups.sh --list", "streams-groups --list"),
        (
            "kafka-console-share-consumer.sh --topic t --consumer-config c",
            "consume --share --topic t --command-config c",
        ),
        ("kafka-share-consumer-perf-test.sh --topic t", "perf share-consume --topic t"),
        ("kafka-consumer-groups.sh --validate-regex a.*", "groups --validate-regex a.*"),
        ("kafka-console-producer.sh --broker-list a:1 --topic t", "produce --bootstrap-server a:1 --topic t"),
        ("kafka-log-dirs.sh --describe --broker-list 1,2", "log-dirs --describe --broker-list 1,2"),
        ("kafka-reassign-partitions.sh --broker-list=1,2", "reassign --broker-list=1,2"),
        ("kafka-producer-perf-test.sh --producer.config c", "perf produce --command-config c"),
        ("kafka-console-consumer.sh --consumer.config=c", "consume --command-config=c"),
        ("kafka-cluster.sh cluster-id --bootstrap-server a:1", "brokers cluster-id --bootstrap-server a:1"),
        ("kafka-cluster.sh list-endpoints", "brokers list"),
        (
            "kafka-cluster.sh unregister --id 3 --bootstrap-server a:1",
            "brokers unregister 3 --bootstrap-server a:1 --yes",
        ),
        ("kafka-cluster.sh unregister --id=3", "brokers unregister 3 --yes"),
        ("kafka-dump-log.sh --files a,b --print-data-log", "dump --files a,b --print-data-log"),
        ("kafka-storage.sh random-uuid", "format --random-uuid"),
        ("kafka-storage.sh format -t x -c y", "format -t x -c y"),
        ("kafka-server-start.sh -daemon p --override a=b", "start p --override a=b"),
    ],
)
def test_a_tool_is_a_command(told: str, command: str) -> None:
    tool, *arguments = told.split()
    assert command_of(tool, arguments) == command.split()


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ("kafka-mirror-maker.sh", "kafka-mirror-maker.sh has no command here; there are kafka-acls, "),
        ("kafka-topics.sh --zookeeper z:2181 --list", "kafka-topics.sh: --zookeeper is gone since Kafka 3; "),
        ("kafka-storage.sh info", "kafka-storage: format and random-uuid are served"),
        ("kafka-cluster.sh", "kafka-cluster: cluster-id, list-endpoints and unregister are served"),
        ("kafka-storage.sh", "kafka-storage: format and random-uuid are served"),
    ],
)
def test_what_no_command_does_is_one_line(told: str, complaint: str) -> None:
    tool, *arguments = told.split()
    with pytest.raises(UnknownTool) as error:
        command_of(tool, arguments)
    assert str(error.value).startswith(complaint)
