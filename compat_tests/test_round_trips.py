"""What one client writes, every client reads: codecs, headers, keys, tombstones, timestamps, acks, idempotence."""

import json
import subprocess
import time
from collections.abc import Callable

import pytest

from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker
from .clients import CODECS, READERS, WRITERS, Message, Stored, Writer
from .topics import create_topic
from .waiting import DEADLINE_S

T0 = int(time.time() * 1000) - 3_600_000
"""An hour ago: old enough to tell from the broker's time, young enough for every retention."""
PARTITIONS = 2

CreateTopic = Callable[..., str]

MESSAGES = [
    Message(b"plain", timestamp_ms=T0),
    Message(b"with a key", b"key", timestamp_ms=T0 + 1),
    Message(None, b"tombstone", timestamp_ms=T0 + 2),
    Message(b"", b"", timestamp_ms=T0 + 3),
    Message(b"older than the one before", b"k", timestamp_ms=T0 - 1000),
    Message(b"headers", b"k", (("a", b"1"), ("b", b""), ("a", b"2"), ("ünï", b"\xff\x00")), T0 + 4),
    Message(bytes(range(256)) * 400, b"\x00\xff binary", timestamp_ms=T0 + 6),
    Message(b"in the other partition", b"k", timestamp_ms=T0 + 7, partition=1),
    *(Message(b"row %d " % number * 10, b"%d" % number, timestamp_ms=T0 + 100 + number) for number in range(200)),
]

NULL_HEADER = Message(b"a header without a value", b"k", (("none", None),), T0 + 5)


def messages_for(writer: str) -> list[Message]:
    """kafka-python refuses to send a header that is null; it can read one."""
    return MESSAGES if writer == "kafka-python" else [*MESSAGES, NULL_HEADER]


@pytest.fixture
def new_topic(broker: Broker, topic: str) -> CreateTopic:
    def create(partitions: int = PARTITIONS, **configs: str) -> str:
        create_topic(broker, topic, partitions, {key.replace("_", "."): value for key, value in configs.items()})
        return topic

    return create


def in_order(stored: list[Stored]) -> list[Stored]:
    return sorted(stored, key=lambda each: (each.message.partition, each.offset))


def assert_all_read(broker: Broker, topic: str, written: list[Stored]) -> None:
    for name, read in READERS.items():
        found = read(broker.bootstrap, topic, PARTITIONS, len(written))
        assert found == in_order(written), f"read by {name}"


@pytest.mark.parametrize("writer", WRITERS)
def test_every_reader_reads_what_a_client_wrote_in_every_codec(
    broker: Broker, new_topic: CreateTopic, writer: str
) -> None:
    topic = new_topic()
    written = []
    for codec in CODECS:
        stored = WRITERS[writer](broker.bootstrap, topic, messages_for(writer), codec=codec)
        written += stored
    assert [each.offset for each in in_order(written) if each.message.partition == 1] == list(range(len(CODECS)))
    assert_all_read(broker, topic, written)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_are_there_whatever_acks_the_producer_waits_for(
    broker: Broker, new_topic: CreateTopic, writer: str, acks: int | str
) -> None:
    topic = new_topic()
    stored = WRITERS[writer](broker.bootstrap, topic, messages_for(writer), acks=acks)
    found = READERS[writer](broker.bootstrap, topic, PARTITIONS, len(messages_for(writer)))
    assert sorted(each.message.timestamp_ms for each in found) == sorted(
        each.timestamp_ms for each in messages_for(writer)
    )
    if acks != 0:
        assert found == in_order(stored)


@pytest.mark.parametrize("writer", WRITERS)
def test_an_idempotent_producer_writes_each_record_once(broker: Broker, new_topic: CreateTopic, writer: str) -> None:
    topic = new_topic()
    written = WRITERS[writer](broker.bootstrap, topic, messages_for(writer), idempotent=True)
    assert_all_read(broker, topic, written)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_log_s_own_time_is_stored_and_answered(broker: Broker, new_topic: CreateTopic, writer: str) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    write: Writer = WRITERS[writer]
    write(broker.bootstrap, topic, MESSAGES[:4])
    times = {
        name: [each.message.timestamp_ms for each in read(broker.bootstrap, topic, 1, 4)]
        for name, read in READERS.items()
    }
    assert len({tuple(read) for read in times.values()}) == 1, times
    assert all(time > T0 + 3_000_000 for time in times[writer]), "the producer's time was kept"


def test_a_produce_answer_carries_the_log_s_own_time(broker: Broker, new_topic: CreateTopic) -> None:
    from kafka import KafkaProducer

    topic = new_topic(message_timestamp_type="LogAppendTime")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    answer = producer.send(topic, b"x", timestamp_ms=T0, partition=0).get(DEADLINE_S)
    producer.close()
    (found,) = READERS["kafka-python"](broker.bootstrap, topic, 1, 1)
    assert answer.timestamp == found.message.timestamp_ms
    assert answer.timestamp > T0 + 3_000_000


def test_a_large_message_passes_where_the_topic_alone_allows_it(broker: Broker, new_topic: CreateTopic) -> None:
    topic = new_topic(max_message_bytes=str(8 * 2**20))
    from kafka import KafkaProducer

    value = bytes(range(256)) * (6 * 2**20 // 256)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, max_request_size=16 * 2**20)
    assert producer.send(topic, value, partition=0).get(DEADLINE_S).offset == 0
    producer.close()
    for name, read in READERS.items():
        (found,) = read(broker.bootstrap, topic, 1, 1)
        assert found.message.value == value, name


def test_a_message_above_the_topic_s_limit_is_refused(broker: Broker, new_topic: CreateTopic) -> None:
    from kafka import KafkaProducer
    from kafka.errors import MessageSizeTooLargeError

    topic = new_topic(max_message_bytes="10000")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, bytes(20_000), partition=0).get(DEADLINE_S)
    producer.close()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)  # the refusal was fatal to the idempotent one
    assert producer.send(topic, bytes(5_000), partition=0).get(DEADLINE_S).offset == 0
    producer.close()


@pytest.mark.kcat
@pytest.mark.parametrize("codec", CODECS)
def test_kcat_writes_and_reads(broker: Broker, new_topic: CreateTopic, codec: str) -> None:
    topic = new_topic()
    lines = b"".join(b"key-%d:value %d\n" % (number, number) for number in range(500))
    kcat = ["kcat", "-b", broker.bootstrap, "-t", topic]
    subprocess.run(
        [*kcat, "-P", "-K:", "-p", "0", "-z", codec, "-H", "source=kcat"], input=lines, check=True, timeout=60
    )
    read = subprocess.run(
        [*kcat, "-C", "-e", "-q", "-o", "beginning", "-J"], capture_output=True, check=True, timeout=DEADLINE_S
    )
    found = [json.loads(line) for line in read.stdout.splitlines()]
    assert [(each["key"], each["payload"], each["offset"]) for each in found] == [
        (f"key-{number}", f"value {number}", number) for number in range(500)
    ]
    assert found[0]["headers"] == ["source", "kcat"]
    assert len(READERS["confluent-kafka"](broker.bootstrap, topic, PARTITIONS, 500)) == 500


@pytest.mark.java
@pytest.mark.parametrize("writer", WRITERS)
def test_java_console_consumer_prints_what_a_client_wrote(broker: Broker, new_topic: CreateTopic, writer: str) -> None:
    topic = new_topic()
    for codec in CODECS:
        WRITERS[writer](broker.bootstrap, topic, MESSAGES[:6], codec=codec)
    shown = ("print.key", "print.headers", "print.timestamp", "print.offset", "print.partition")
    output = run_tool(
        Tool.CONSOLE_CONSUMER,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(6 * len(CODECS)), "--timeout-ms", "120000"),
        *(argument for name in shown for argument in ("--formatter-property", f"{name}=true")),
    )
    lines = output.stdout_bytes.split(b"\n")
    assert lines[0] == b"CreateTime:%d\tPartition:0\tOffset:0\tNO_HEADERS\tnull\tplain" % T0
    assert lines[2] == b"CreateTime:%d\tPartition:0\tOffset:2\tNO_HEADERS\ttombstone\tnull" % (T0 + 2)
    assert lines[5].startswith(b"CreateTime:%d\tPartition:0\tOffset:5\ta:1,b:,a:2," % (T0 + 4))
    assert len(lines) == 6 * len(CODECS) + 1


@pytest.mark.java
def test_every_client_reads_what_the_java_console_producer_wrote(broker: Broker, new_topic: CreateTopic) -> None:
    topic = new_topic(1)
    for codec in ("none", "zstd", "snappy"):
        run_tool(
            Tool.CONSOLE_PRODUCER,
            *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--compression-codec", codec),
            *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
            *("--reader-property", "null.marker=NULL"),
            stdin=b"h1:v1,h2:v2\tkey\tvalue\nh1:v1\tgone\tNULL\n",
        )
    for name, read in READERS.items():
        found = [each.message for each in read(broker.bootstrap, topic, 1, 6)]
        assert [(each.key, each.value) for each in found] == [(b"key", b"value"), (b"gone", None)] * 3, name
        assert found[0].headers == (("h1", b"v1"), ("h2", b"v2")), name
