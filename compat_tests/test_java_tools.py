"""Apache Kafka's own command-line tools, each against both brokers."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool, tool_command
from .brokers import Broker
from .clients import Message, read_with_confluent, write_with_confluent
from .conftest import FreshBroker
from .topics import create_topic
from .waiting import until

pytestmark = pytest.mark.java

RECORDS = 20_000


def tool(name: Tool, broker: Broker, *arguments: str, **options: object) -> str:
    return run_tool(name, "--bootstrap-server", broker.bootstrap, *arguments, **options).stdout  # type: ignore[arg-type]


def test_topic_command_creates_describes_alters_lists_and_deletes(
    broker: Broker, topic: str, answers: TestAnswers
) -> None:
    configs = ("--config", "retention.ms=60000", "--config", "cleanup.policy=compact")
    created = tool(Tool.TOPICS, broker, "--create", "--topic", topic, "--partitions", "2", *configs)
    assert created.splitlines()[-1] == f"Created topic {topic}."
    described = tool(Tool.TOPICS, broker, "--describe", "--topic", topic)
    assert "PartitionCount: 2\tReplicationFactor: 1" in described
    assert re.search(r"Configs: .*cleanup.policy=compact", described)
    assert re.search(r"Configs: .*retention.ms=60000", described)
    rows = [re.sub(r"^.*\tPartition:", "Partition:", line) for line in described.splitlines()[1:]]
    answers.same("partitions", rows)
    tool(Tool.TOPICS, broker, "--alter", "--topic", topic, "--partitions", "4")
    assert topic in tool(Tool.TOPICS, broker, "--list").splitlines()
    assert "PartitionCount: 4" in tool(Tool.TOPICS, broker, "--describe", "--topic", topic)
    tool(Tool.TOPICS, broker, "--delete", "--topic", topic)
    until(lambda: topic not in tool(Tool.TOPICS, broker, "--list").splitlines(), "the topic is gone")


def test_topic_command_says_what_is_wrong(broker: Broker, topic: str, answers: TestAnswers) -> None:
    run_tool(Tool.TOPICS, "--bootstrap-server", broker.bootstrap, "--create", "--topic", topic)
    attempts = {
        "exists": ("--create", "--topic", topic),
        "replicas": ("--create", "--topic", f"{topic}-2", "--replication-factor", "3"),
        "config": ("--create", "--topic", f"{topic}-3", "--config", "retention.ms=x"),
        "unknown": ("--describe", "--topic", f"{topic}-4"),
    }
    errors = {}
    for name, arguments in attempts.items():
        output = run_tool(Tool.TOPICS, "--bootstrap-server", broker.bootstrap, *arguments, allowed=(1,))
        errors[name] = sorted(set(re.findall(r"\b(?:\w+\.)*(\w+Exception)\b", output.stdout + output.stderr)))
    answers.same("exceptions", errors)


def test_config_command_describes(broker: Broker, topic: str, answers: TestAnswers) -> None:
    create_topic(broker, topic, 1, {"retention.ms": "60000"})
    described = tool(Tool.CONFIGS, broker, "--describe", "--entity-type", "topics", "--entity-name", topic, "--all")
    lines = [line.strip() for line in described.splitlines()[1:]]
    answers.expect("how many", len(lines), 33)
    assert any(line.startswith("retention.ms=60000 sensitive=false") for line in lines)
    answers.same("lines", sorted(lines))
    of_broker = tool(Tool.CONFIGS, broker, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    assert re.search(r"^\s*node\.id=1 ", of_broker, re.MULTILINE)


def test_config_command_changes_a_topic(broker: Broker, topic: str) -> None:
    create_topic(broker, topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tool(Tool.CONFIGS, broker, "--alter", *entity, "--add-config", "retention.ms=99000,max.message.bytes=5000")
    until(lambda: "retention.ms=99000" in tool(Tool.CONFIGS, broker, "--describe", *entity), "the config is shown")
    tool(Tool.CONFIGS, broker, "--alter", *entity, "--delete-config", "retention.ms")
    until(lambda: "retention.ms" not in tool(Tool.CONFIGS, broker, "--describe", *entity), "the config is gone")
    assert "max.message.bytes=5000" in tool(Tool.CONFIGS, broker, "--describe", *entity)


def test_api_versions_command_understands_the_broker(broker: Broker) -> None:
    printed = tool(Tool.API_VERSIONS, broker)
    assert f"{broker.bootstrap} (id: 1 rack: null isFenced: false) -> (" in printed
    assert "Produce(0): 0 to 13 [usable: 13]" in printed
    assert "Fetch(1): 4 to 18 [usable: 18]" in printed


def test_the_performance_tools_write_and_read(broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 3)
    written = tool(
        Tool.PRODUCER_PERFORMANCE,
        broker,
        *("--topic", topic, "--num-records", str(RECORDS), "--record-size", "200", "--throughput", "-1"),
        *("--command-property", "acks=all", "compression.type=lz4"),
    )
    assert f"{RECORDS} records sent" in written
    offsets = tool(Tool.GET_OFFSETS, broker, "--topic", topic, "--time", "-1")
    assert sum(int(line.rsplit(":", 1)[1]) for line in offsets.splitlines()) == RECORDS
    read = tool(
        Tool.CONSUMER_PERFORMANCE, broker, "--topic", topic, "--num-records", str(RECORDS), "--timeout", "120000"
    )
    names, values = (line.split(", ") for line in read.strip().splitlines()[-2:])
    assert int(dict(zip(names, values, strict=False))["data.consumed.in.nMsg"]) == RECORDS


def test_the_verifiable_clients_agree(broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 2)
    produced = tool(Tool.VERIFIABLE_PRODUCER, broker, "--topic", topic, "--max-messages", "3000", "--acks", "-1")
    events = [json.loads(line) for line in produced.splitlines()]
    acknowledged = [event for event in events if event["name"] == "producer_send_success"]
    assert len(acknowledged) == 3000
    consumed = tool(
        Tool.VERIFIABLE_CONSUMER,
        broker,
        *("--topic", topic, "--group-id", topic, "--max-messages", "3000", "--reset-policy", "earliest"),
        "--verbose",
    )
    events = [json.loads(line) for line in consumed.splitlines()]
    values = [int(event["value"]) for event in events if event["name"] == "record_data"]
    assert sorted(values) == list(range(3000))
    committed = [event for event in events if event["name"] == "offsets_committed"]
    assert committed
    assert all(event["success"] for event in committed)


def test_consumer_group_command_shows_resets_and_deletes(broker: Broker, topic: str, answers: TestAnswers) -> None:
    create_topic(broker, topic, 2)
    messages = [Message(b"%d" % number, partition=number % 2) for number in range(20)]
    write_with_confluent(broker.bootstrap, topic, messages)
    group = f"group-of-{topic}"
    read = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "20", "--timeout-ms", "120000")
    assert sorted(map(int, tool(Tool.CONSOLE_CONSUMER, broker, *read).split())) == list(range(20))
    assert group in tool(Tool.CONSUMER_GROUPS, broker, "--list").splitlines()
    state = tool(Tool.CONSUMER_GROUPS, broker, "--describe", "--group", group, "--state")
    assert re.search(rf"{re.escape(group)}\s+{broker.bootstrap}\s+\(1\)\s+-?\s*Empty\s+0", state), state
    assert lag(broker, group) == {0: (10, 10, 0), 1: (10, 10, 0)}
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    tool(Tool.CONSUMER_GROUPS, broker, *reset, "--to-offset", "4", "--execute")
    assert lag(broker, group) == {0: (4, 10, 6), 1: (4, 10, 6)}
    tool(Tool.CONSUMER_GROUPS, broker, *reset, "--shift-by", "-100", "--execute")
    assert lag(broker, group) == {0: (0, 10, 10), 1: (0, 10, 10)}
    tool(Tool.CONSUMER_GROUPS, broker, *reset, "--to-latest", "--execute")
    assert lag(broker, group) == {0: (10, 10, 0), 1: (10, 10, 0)}
    deleted = tool(Tool.CONSUMER_GROUPS, broker, "--delete", "--group", group)
    answers.same("deletion", deleted.replace(topic, "TOPIC"))
    assert group not in tool(Tool.CONSUMER_GROUPS, broker, "--list").splitlines()


def lag(broker: Broker, group: str) -> dict[int, tuple[int, int, int]]:
    """Committed offset, log end and lag, by partition, as ConsumerGroupCommand shows them."""
    rows = tool(Tool.CONSUMER_GROUPS, broker, "--describe", "--group", group).split("\n")
    found = [line.split() for line in rows if line.startswith(group)]
    return {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in found}


def test_consumer_group_command_shows_live_members(broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 2)
    write_with_confluent(broker.bootstrap, topic, [Message(b"x")])
    group = f"group-of-{topic}"
    command = tool_command(
        Tool.CONSOLE_CONSUMER,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group, "--from-beginning"),
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == b"x\n"
        members = tool(Tool.CONSUMER_GROUPS, broker, "--describe", "--group", group, "--members", "--verbose")
        assert re.search(rf"{re.escape(group)}\s+console-consumer\S+\s+/127.0.0.1\s+console-consumer\s+2", members), (
            members
        )
        refused = run_tool(
            Tool.CONSUMER_GROUPS,
            *("--bootstrap-server", broker.bootstrap, "--delete", "--group", group),
            allowed=(0, 1),
        )
        assert "NotEmptyException" in refused.stdout + refused.stderr or "not empty" in refused.stdout
        consumer.terminate()


def test_the_console_producer_s_idempotent_default_writes(broker: Broker, topic: str) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(1000))
    run_tool(Tool.CONSOLE_PRODUCER, "--bootstrap-server", broker.bootstrap, "--topic", topic, stdin=lines)
    found = read_with_confluent(broker.bootstrap, topic, 1, 1000)
    assert [each.message.value for each in found] == lines.splitlines()


def test_dump_log_segments_reads_every_file(fresh_broker: FreshBroker, topic: str) -> None:
    """Segments, indexes, committed offsets and the metadata log, after a clean stop."""
    broker = fresh_broker({"log.segment.bytes": "1048576", "log.index.interval.bytes": "1024"})
    create_topic(broker, topic)
    messages = [Message(b"%d " % number * 20, b"key", (("h", b"v"),)) for number in range(20_000)]
    write_with_confluent(broker.bootstrap, topic, messages, codec="none")
    read_as_group(broker, topic)
    broker.stop()
    data = broker.data_directory  # type: ignore[attr-defined]
    segments = sorted((data / f"{topic}-0").glob("*.log"))
    assert len(segments) > 1
    assert offsets_in(segments) == list(range(20_000))
    for kind in ("index", "timeindex"):
        for file in sorted((data / f"{topic}-0").glob(f"*.{kind}")):
            printed = run_tool(Tool.DUMP_LOG_SEGMENTS, "--files", str(file), "--index-sanity-check").stdout
            assert "passed sanity check" in printed or "is empty" in printed, printed
        whole = run_tool(
            Tool.DUMP_LOG_SEGMENTS, "--files", str(segments[0].with_suffix(f".{kind}")), "--verify-index-only"
        ).stdout
        assert "Found" not in whole, whole
    filled = max(data.glob("__consumer_offsets-*/*.log"), key=lambda path: path.stat().st_size)
    printed = run_tool(Tool.DUMP_LOG_SEGMENTS, "--offsets-decoder", "--files", str(filled)).stdout
    assert f'"group":"dumped","topic":"{topic}","partition":0' in printed
    assert '"offset":20000' in printed
    metadata = sorted((data / "__cluster_metadata-0").glob("*.log"))[0]
    printed = run_tool(Tool.DUMP_LOG_SEGMENTS, "--cluster-metadata-decoder", "--files", str(metadata)).stdout
    assert f'"name":"{topic}"' in printed
    for record in ("REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "FEATURE_LEVEL_RECORD"):
        assert f'"type":"{record}"' in printed


def read_as_group(broker: Broker, topic: str) -> None:
    run_tool(
        Tool.CONSOLE_CONSUMER,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", "dumped", "--from-beginning"),
        *("--max-messages", "20000", "--timeout-ms", "120000"),
    )


def offsets_in(segments: list[Path]) -> list[int]:
    files = ",".join(map(str, segments))
    printed = run_tool(Tool.DUMP_LOG_SEGMENTS, "--print-data-log", "--deep-iteration", "--files", files).stdout
    assert "isvalid: false" not in printed
    return [int(found) for found in re.findall(r"^\| offset: (\d+) ", printed, re.MULTILINE)]
