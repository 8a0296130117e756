"""`pykbroker verify` on directories that brokers leave behind: both brokers', stopped and killed."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition

from pykbroker.cli.main import main

from .apache_kafka.broker import ApacheKafka
from .apache_kafka.tools import Tool, run_tool
from .brokers import BrokerProcess, Pykbroker
from .clients import CODECS, READERS, Message, write_with_confluent
from .conftest import watch_log
from .topics import create_topic, wait_for_leaders
from .waiting import DEADLINE_S, until

NOW = int(time.time() * 1000)
SEGMENT_BYTES = 1 << 20
SETTINGS = {
    "log.segment.bytes": str(SEGMENT_BYTES),
    "log.index.interval.bytes": "4096",
    "log.cleaner.backoff.ms": "200",
}
TABLE = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture
def used(fresh_process: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A broker with every codec, rolled segments, headers, tombstones, committed offsets, a compacted topic."""
    broker = fresh_process(SETTINGS)
    create_topic(broker, "kept", 2)
    create_topic(broker, "table", 1, TABLE)
    for codec in CODECS:
        messages = [
            Message(b"%d " % number * 300, b"key %d" % number, (("h", b"x"),), NOW + number, number % 2)
            for number in range(1500)
        ]
        write_with_confluent(broker.bootstrap, "kept", messages, codec=codec, idempotent=codec != "none")
    for round in range(3):
        at = NOW + 1000 * round
        table = [Message(None if each % 5 == 0 else b"value", b"key %d" % (each % 7), (), at) for each in range(50)]
        write_with_confluent(broker.bootstrap, "table", table)
    checkpoint = broker.data_directory / "cleaner-offset-checkpoint"
    until(lambda: checkpoint.exists() and "\ntable 0 " in checkpoint.read_text(), "the table is compacted")
    if broker.kind != "pykbroker":
        write_transactions(broker)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="the-group")
    consumer.assign([TopicPartition("kept", 0)])
    consumer.seek(TopicPartition("kept", 0), 7)
    consumer.commit()
    consumer.close()
    return broker


def write_transactions(broker: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "the-producer"})
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        producer.produce("kept", b"in a transaction", partition=0)
        producer.flush(DEADLINE_S)
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, [command, *map(str, arguments)])


def assert_sound(broker: BrokerProcess) -> None:
    result = run("verify", "--deep", broker.data_directory)
    assert result.exit_code == 0, result.output
    assert "no metadata log" not in result.stdout
    assert result.stdout.endswith(": sound\n")
    segments = sorted(broker.data_directory.glob("kept-0/*.log"))
    assert len(segments) > 1
    assert f"- {broker.data_directory}/kept-0" not in result.stdout


def test_what_a_broker_leaves_is_sound(used: BrokerProcess) -> None:
    used.stop()
    assert_sound(used)
    dumped = run("dump", "--deep-iteration", "--only-findings", used.data_directory)
    assert dumped.exit_code == 0, dumped.output


def test_what_a_killed_broker_leaves_is_sound(used: BrokerProcess) -> None:
    """Its indexes end in the zeros that Kafka fills them with, and the last entries may not be there yet."""
    used.kill()
    result = run("verify", "--deep", used.data_directory)
    assert result.exit_code == 0, result.output


def test_a_directory_in_use_is_refused(fresh_process: Callable[..., BrokerProcess]) -> None:
    broker = fresh_process()
    result = run("verify", broker.data_directory)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: the log directory {broker.data_directory} is in use by ")
    assert result.stderr.endswith(": stop the broker first\n")
    assert result.output.count("\n") == 1


@pytest.mark.java
def test_a_salvaged_directory_is_served_by_both_brokers(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A batch in the middle and the last one are damaged: the others stay where they are, and no offset comes again."""
    data = tmp_path / "data"
    broker: BrokerProcess = Pykbroker(tmp_path / "first", {"node.id": "1", "log.dirs": str(data)})
    broker.start()
    create_topic(broker, "kept")
    for number in range(10):
        write_with_confluent(broker.bootstrap, "kept", [Message(b"%d.%d" % (number, each)) for each in range(5)])
    broker.stop()
    (segment,) = data.glob("kept-0/*.log")
    batches = [json.loads(line) for line in run("dump", "--json", segment).stdout.splitlines()[1:]]
    changed = bytearray(segment.read_bytes())
    gone: set[int] = set()
    for batch in (batches[len(batches) // 2], batches[-1]):
        changed[batch["position"] + 70] ^= 1
        gone |= set(range(batch["base_offset"], batch["last_offset"] + 1))
    segment.write_bytes(changed)
    assert run("verify", data).exit_code == 1
    salvaged = run("verify", "--salvage", data)
    assert salvaged.exit_code == 0, salvaged.output
    tool = run_tool(Tool.DUMP_LOG_SEGMENTS, "--deep-iteration", "--files", str(segment)).stdout
    assert "isvalid: false" not in tool
    expected = [offset for offset in range(50) if offset not in gone]
    for broker in (
        ApacheKafka(tmp_path / "second", {"log.dirs": str(data)}, is_formatted=True),
        Pykbroker(tmp_path / "third", {"node.id": "1", "log.dirs": str(data)}),
    ):
        watch_log(request.node, broker)
        broker.start()
        try:
            wait_for_leaders(broker, "kept", 1)
            for read in READERS.values():
                assert [each.offset for each in read(broker.bootstrap, "kept", 1, len(expected))] == expected
            (stored,) = write_with_confluent(broker.bootstrap, "kept", [Message(b"more")])
            assert stored.offset == max(expected[-1] + 1, 50)
            expected.append(stored.offset)
        finally:
            broker.stop()
    assert run("verify", data).exit_code == 0
