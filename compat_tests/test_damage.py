"""Files damaged while a broker was down: pykbroker quarantines one partition, Apache Kafka serves or loses it.

pykbroker must start, serve the other partitions, and not the damaged ones; nothing is written over, and no offset is
given out twice. What Apache Kafka 4.3.1 does is written down where it is the same every time and costs little.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from pykbroker.java_hash import abs_java_hash
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records

from .apache_kafka.broker import ApacheKafka
from .brokers import Broker, BrokerProcess, Pykbroker
from .topics import create_topic, wait_for_leaders
from .waiting import DEADLINE_S, until
from .wire import Wire

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
BATCHES = 40
LATEST = -1
HIGH_WATERMARKS = "replication-offset-checkpoint"
SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": "200", "log.initial.task.delay.ms": "0"}


Damage = Callable[[Path], None]


def write(broker: Broker, topic: str, first: int, count: int) -> None:
    """One batch each."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 0})
    for number in range(first, first + count):
        producer.produce(topic, value=b"value %d" % number, partition=0)
        assert producer.flush(DEADLINE_S) == 0


def fetch(broker: Broker, topic: str, offset: int) -> tuple[int, list[bytes | None]]:
    """The error, and the values of the records."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic=topic, partitions=[asked])]
    )
    with Wire(broker.address) as wire:
        answer = wire.call(request, 12)
    assert isinstance(answer, FetchResponse)
    [data] = answer.responses[0].partitions
    batches = iter_batches(data.records or b"", allow_partial=True)
    return data.error_code, [record.value for batch in batches for record in iter_records(batch)]


def produced(broker: Broker, topic: str) -> tuple[int, int]:
    """The error and the offset."""
    data = PartitionProduceData(index=0, records=encode_batch([Record(b"k", b"v")]))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    with Wire(broker.address) as wire:
        answer = wire.call(request, 9)
    assert isinstance(answer, ProduceResponse)
    [found] = answer.responses[0].partition_responses
    return found.error_code, found.base_offset


def latest(broker: Broker, topic: str) -> tuple[int, int]:
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    with Wire(broker.address) as wire:
        answer = wire.call(request, 7)
    assert isinstance(answer, ListOffsetsResponse)
    [found] = answer.topics[0].partitions
    return found.error_code, found.offset


def read_all(broker: Broker, topic: str) -> tuple[int, list[bytes | None]]:
    """Until something is wrong or nothing is left."""
    found: list[bytes | None] = []
    while True:
        error, values = fetch(broker, topic, len(found))
        if error or not values:
            return error, found
        found += values


def values(count: int = BATCHES) -> list[bytes]:
    return [b"value %d" % number for number in range(count)]


def prepare(broker: BrokerProcess, topics: Sequence[str]) -> None:
    for topic in topics:
        create_topic(broker, topic)
        write(broker, topic, 0, BATCHES)
    checkpoint = broker.data_directory / HIGH_WATERMARKS
    wanted = {f"{topic} 0 {BATCHES}" for topic in topics}
    until(lambda: wanted <= set(checkpoint.read_text().splitlines()), "the high watermarks are written down")


def log_file(directory: Path) -> Path:
    return directory / f"{0:020d}.log"


def flip(path: Path, position: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= bit
    path.write_bytes(data)


def batch_positions(path: Path) -> list[int]:
    data = path.read_bytes()
    positions, at = [], 0
    while at + 12 <= len(data) and (size := int.from_bytes(data[at + 8 : at + 12], "big")):
        positions.append(at)
        at += 12 + size
    return positions


def middle(directory: Path) -> int:
    positions = batch_positions(log_file(directory))
    assert len(positions) == BATCHES
    return positions[BATCHES // 2]


def flipped_in_a_batch(directory: Path) -> None:
    flip(log_file(directory), middle(directory) + 70)


def flipped_in_a_base_offset(directory: Path) -> None:
    flip(log_file(directory), middle(directory), 0x40)


def flipped_in_a_leader_epoch(directory: Path) -> None:
    flip(log_file(directory), middle(directory) + 15, 2)


def flipped_in_a_length(directory: Path) -> None:
    flip(log_file(directory), middle(directory) + 10)


def without_its_data_file(directory: Path) -> None:
    log_file(directory).unlink()


def without_its_directory(directory: Path) -> None:
    shutil.rmtree(directory)


def cut_off_in_the_middle(directory: Path) -> None:
    position = middle(directory)
    with log_file(directory).open("r+b") as file:
        file.truncate(position)


def garbage_in_the_indexes(directory: Path) -> None:
    for suffix in (".index", ".timeindex"):
        log_file(directory).with_suffix(suffix).write_bytes(b"ABCDEFGHIJKLMNOPQRSTUVWX")


def zeros_behind_the_end(directory: Path) -> None:
    with log_file(directory).open("ab") as file:
        file.write(bytes(37))


def only_the_data_file_left(directory: Path) -> None:
    for path in directory.iterdir():
        if path != log_file(directory):
            path.unlink()


HOPELESS: list[Damage] = [
    flipped_in_a_batch,
    flipped_in_a_base_offset,
    flipped_in_a_leader_epoch,
    flipped_in_a_length,
    without_its_data_file,
    without_its_directory,
    cut_off_in_the_middle,
]
HARMLESS: list[Damage] = [garbage_in_the_indexes, zeros_behind_the_end, only_the_data_file_left]


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_what_is_damaged_is_quarantined_and_everything_else_goes_on(tmp_path: Path, clean: bool) -> None:
    """R17 to R21, each in a partition of its own."""
    broker = Pykbroker(tmp_path / "broker", SETTINGS)
    broker.start()
    prepare(broker, ["sound", *(each.__name__ for each in HOPELESS + HARMLESS)])
    broker.stop() if clean else broker.kill()
    for each in HOPELESS + HARMLESS:
        each(broker.data_directory / f"{each.__name__}-0")
    left = {
        path: path.read_bytes() for each in HOPELESS for path in broker.data_directory.glob(f"{each.__name__}-0/*.log")
    }
    try:
        for restart in range(2):
            broker.start()
            for each in HOPELESS:
                error, found = read_all(broker, each.__name__)
                assert error == STORAGE_ERROR, each
                assert found == values(len(found)), each
                assert latest(broker, each.__name__)[0] == STORAGE_ERROR, each
                assert produced(broker, each.__name__) == (STORAGE_ERROR, -1), each
            for name in ("sound", *(each.__name__ for each in HARMLESS)):
                assert read_all(broker, name) == (0, values(BATCHES + restart)), name
                write(broker, name, BATCHES + restart, 1)
                assert latest(broker, name) == (0, BATCHES + restart + 1), name
            broker.stop()
            assert {path: path.read_bytes() for path in left} == left
        for each in HOPELESS:
            lines = [line for line in broker.log_text().splitlines() if f"{each.__name__}-0 is quarantined" in line]
            assert len(lines) == 2, each
            assert str(broker.data_directory / f"{each.__name__}-0") in lines[0]
    finally:
        broker.close()
    assert "Traceback" not in broker.log_text()


def commit(broker: Broker, group: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group)
    partition = TopicPartition("sound", 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(7, "", -1)})
    consumer.close()


def committed(broker: Broker, group: str) -> tuple[int, list[int]]:
    """The error, and the offset where there is one."""
    asked = OffsetFetchRequestTopic(name="sound", partition_indexes=[0])
    with Wire(broker.address) as wire:
        answer = wire.call(OffsetFetchRequest(group_id=group, topics=[asked]), 5)
    assert isinstance(answer, OffsetFetchResponse)
    return answer.error_code, [each.committed_offset for topic in answer.topics for each in topic.partitions]


def offsets_directory(broker: BrokerProcess, group: str) -> Path:
    return broker.data_directory / f"__consumer_offsets-{abs_java_hash(group) % 50}"


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_damage_in_committed_offsets_concerns_the_groups_of_its_partition(tmp_path: Path, clean: bool) -> None:
    broker = Pykbroker(tmp_path / "broker", SETTINGS)
    broker.start()
    try:
        create_topic(broker, "sound")
        commit(broker, "hurt")
        commit(broker, "well")
        broker.stop() if clean else broker.kill()
        path = log_file(offsets_directory(broker, "hurt"))
        flip(path, path.stat().st_size - 3)
        broker.start()
        until(lambda: committed(broker, "well") == (ErrorCode.NONE, [7]), "the groups are loaded")
        until(lambda: "is quarantined" in broker.log_text(), "the damage is found")
        assert committed(broker, "hurt")[0] == ErrorCode.NOT_COORDINATOR
        assert f"{path} is damaged at position 0" in broker.log_text()
    finally:
        broker.close()
    assert "Traceback" not in broker.log_text()


@pytest.mark.java
def test_apache_kafka_forgets_what_is_behind_a_flipped_bit(tmp_path: Path) -> None:
    """R17: twenty acknowledged records are gone, and their offsets are given out once more."""
    kafka = ApacheKafka(tmp_path / "kafka", SETTINGS)
    kafka.start()
    try:
        prepare(kafka, ["hurt"])
        kafka.kill()
        flipped_in_a_batch(kafka.data_directory / "hurt-0")
        kafka.start()
        wait_for_leaders(kafka, "hurt", 1)
        assert read_all(kafka, "hurt") == (0, values(BATCHES // 2))
        assert produced(kafka, "hurt") == (0, BATCHES // 2)
    finally:
        kafka.close()
