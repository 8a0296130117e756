"""Forks: a second broker with all that the first one has at that moment, and nothing of what it does later."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from compat_tests.raw_client import PRODUCE_VERSION, RawClient
from compat_tests.waiting import until
from pykbroker.control.savepoints import node_copy, node_cut
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.server.node.composition.parts import NodeParts
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.testing import Broker, BrokerNotRunning, Cluster, NoJournal, SavepointRefused

from .test_broker import address_of, ephemeral_directories

FORKS = int(os.environ.get("PYKBROKER_FORKS", "40"))


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary directories that nobody else has: what is left there is left by the test."""
    path = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def rolls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of a few records is rolled, as one of a gigabyte is."""
    monkeypatch.setattr(node_cut, "COPIED_BYTES", 0)
    monkeypatch.setattr(node_cut, "ROLLED_BYTES", 1)


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def files_of(broker: Broker, pattern: str) -> list[Path]:
    return sorted(Path(broker.nodes[0].config.log_dirs[0]).glob(pattern))


def produce_raw(broker: Broker, topic: str, sequence: int, value: bytes = b"v") -> tuple[ErrorCode, int]:
    records = encode_batch(
        [Record(None, value, (), time.time_ns() // 1_000_000)],
        producer_id=4711,
        producer_epoch=0,
        base_sequence=sequence,
    )
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])],
    )
    with RawClient(address_of(broker)) as client:
        answer, _ = decode(
            ProduceResponse, PRODUCE_VERSION, client.call(encode_request(request, PRODUCE_VERSION, 1, "t")), 4
        )
    (partition,) = answer.responses[0].partition_responses
    return ErrorCode(partition.error_code), partition.base_offset


# What a fork has


def test_neither_sees_what_the_other_one_does(broker: Broker) -> None:
    topic = broker.create_topic("t", partitions=2, configs={"retention.ms": 12345678})
    topic.produce("both", partition=0)
    topic.produce("both", partition=1)
    broker.group("g").commit({("t", 0): 1})
    with broker.fork() as fork:
        assert fork.bootstrap_servers != broker.bootstrap_servers
        assert (fork.log.name, fork.journal.name) == ("pykbroker fork",) * 2, "reports tell it from its source"
        assert fork.topic("t").values() == [b"both", b"both"]
        assert fork.topic("t").configs()["retention.ms"] == "12345678"
        assert fork.group("g").offsets() == broker.group("g").offsets()
        topic.produce("ours", partition=0)
        broker.create_topic("ours")
        broker.group("g").commit({("t", 0): 2})
        fork.topic("t").produce("theirs", partition=0)
        fork.topic("t").alter_configs({"retention.ms": 1})
        fork.create_topic("theirs")
        assert fork.topic("t").values(partition=0) == [b"both", b"theirs"]
        assert topic.values(partition=0) == [b"both", b"ours"]
        assert fork.topics() == ["t", "theirs"]
        assert broker.topics() == ["ours", "t"]
        assert set(fork.group("g").offsets().values()) == {1}
        assert topic.configs()["retention.ms"] == "12345678"
    assert topic.values(partition=0) == [b"both", b"ours"]


def test_a_fork_is_the_same_cluster(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    with broker.fork() as fork:
        other = AdminClient({"bootstrap.servers": fork.bootstrap_servers})
        assert other.list_topics(timeout=10).cluster_id == admin.list_topics(timeout=10).cluster_id
        for path in files_of(broker, "meta.properties"):
            assert (Path(fork.nodes[0].config.log_dirs[0]) / path.name).read_bytes() == path.read_bytes()


def test_a_fork_of_a_fork_outlives_both(broker: Broker, rolls: None) -> None:
    broker.create_topic("t").produce("one")
    fork = broker.fork()
    fork.topic("t").produce("two")
    grandchild = fork.fork()
    broker.close()
    fork.topic("t").produce("three")
    assert fork.topic("t").values() == [b"one", b"two", b"three"]
    fork.close()
    with grandchild:
        grandchild.topic("t").produce("four")
        assert grandchild.topic("t").values() == [b"one", b"two", b"four"]
        for end in (grandchild.stop, grandchild.kill):
            end()
            grandchild.start()
            assert grandchild.topic("t").values() == [b"one", b"two", b"four"]
    with pytest.raises(BrokerNotRunning, match="the fork was closed"):
        grandchild.open()


def test_configurations_of_a_broker_and_of_clients_are_there(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    entry = ConfigEntry("log.retention.ms", "98765432", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(10)
    with broker.fork() as fork:
        other = AdminClient({"bootstrap.servers": fork.bootstrap_servers})
        asked = ConfigResource(ResourceType.BROKER, "1")
        assert other.describe_configs([asked])[asked].result(10)["log.retention.ms"].value == "98765432"


@pytest.mark.parametrize("key", ["log.preallocate", "auto.create.topics.enable"])
def test_whatever_becomes_of_the_files_each_has_its_own(key: str, rolls: None) -> None:
    """Both are killed and recover, and go on in what they share."""
    with Broker({key: True}) as broker:
        topic = broker.create_topic("t")
        topic.produce("one", "two")
        with broker.fork() as fork:
            shared = [path for path in files_of(broker, "t-0/*.log") if path.stat().st_nlink == 2]
            assert shared, "the segment that was rolled"
            for each in (broker, fork):
                each.kill()
                for path in files_of(each, "t-0/*.*index"):
                    path.unlink()  # by which a start builds them anew
                each.start()
            topic.produce("ours")
            fork.topic("t").produce("theirs")
            for each in (broker, fork):
                each.kill()
                each.start()
            assert topic.values() == [b"one", b"two", b"ours"]
            assert fork.topic("t").values() == [b"one", b"two", b"theirs"]


def test_a_log_that_is_cut_off_does_not_change_the_other_one(broker: Broker, rolls: None) -> None:
    """DeleteRecords, and retention behind it."""
    topic = broker.create_topic("t", configs={"segment.bytes": 1048576})
    topic.produce("one", "two")
    with broker.fork() as fork:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (deleted,) = admin.delete_records([TopicPartition("t", 0, 2)]).values()
        assert deleted.result(10).low_watermark == 2
        topic.produce("three")
        topic.delete()
        assert fork.topic("t").values() == [b"one", b"two"]
        assert fork.topic("t").start_offsets() == {0: 0}
    with broker.fork() as fork:
        assert fork.topics() == []


def test_deleted_records_stay_deleted(broker: Broker) -> None:
    topic = broker.create_topic("t")
    topic.produce("one")
    topic.produce("two")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition("t", 0, 1)]).values()
    deleted.result(10)
    with broker.fork() as fork:
        assert fork.topic("t").start_offsets() == {0: 1}
        assert fork.topic("t").values() == [b"two"]
        fork.restart()
        assert fork.topic("t").start_offsets() == {0: 1}


# Clients


@pytest.mark.parametrize("is_rolled", [False, True], ids=["copied", "rolled"])
def test_a_producer_is_known_by_its_sequence(broker: Broker, is_rolled: bool, request: pytest.FixtureRequest) -> None:
    if is_rolled:
        request.getfixturevalue("rolls")
    topic = broker.create_topic("t")
    for sequence in range(3):
        assert produce_raw(broker, topic, sequence) == (ErrorCode.NONE, sequence)
    with broker.fork() as fork:
        assert produce_raw(fork, topic, 2) == (ErrorCode.NONE, 2), "a duplicate, where it was at first"
        assert produce_raw(fork, topic, 4)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce_raw(fork, topic, 3) == (ErrorCode.NONE, 3)
        assert produce_raw(broker, topic, 3, b"ours") == (ErrorCode.NONE, 3)
        assert fork.topic("t").end_offsets() == {0: 4} == topic.end_offsets()


@pytest.mark.parametrize("is_rolled", [False, True], ids=["copied", "rolled"])
def test_an_open_transaction_is_open_and_ends_as_its_producer_wants(
    broker: Broker, is_rolled: bool, request: pytest.FixtureRequest
) -> None:
    if is_rolled:
        request.getfixturevalue("rolls")
    topic = broker.create_topic("t")

    def producer_at(broker: Broker) -> Producer:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx"})
        producer.init_transactions(20)
        producer.begin_transaction()
        return producer

    first = producer_at(broker)
    first.produce(topic, b"before")
    first.commit_transaction(20)
    first.begin_transaction()
    first.produce(topic, b"open")
    assert first.flush(20) == 0
    with broker.fork() as fork:
        assert fork.topic("t").values() == [b"before"]
        assert fork.topic("t").values(read_uncommitted=True) == [b"before", b"open"]
        second = producer_at(fork)  # which aborts what is open there, and has the next epoch
        second.produce(topic, b"theirs")
        second.commit_transaction(20)
        assert fork.topic("t").values() == [b"before", b"theirs"]
        first.commit_transaction(20)
        assert topic.values() == [b"before", b"open"]
        assert fork.topic("t").values() == [b"before", b"theirs"]
        fork.restart()
        assert fork.topic("t").values() == [b"before", b"theirs"]


def test_an_open_transaction_that_nobody_ends_times_out(broker: Broker) -> None:
    topic = broker.create_topic("t")
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx", "transaction.timeout.ms": 3000}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    assert producer.flush(20) == 0
    with broker.fork() as fork:
        fork.topic("t").produce("behind")
        fork.wait_for(topic="t", records=1, timeout=20)
        assert fork.topic("t").values() == [b"behind"]
    topic.produce("here")
    broker.wait_for(topic="t", records=1, timeout=20)
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)
    assert topic.values() == [b"here"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_it_has_committed(broker: Broker, protocol: str) -> None:
    topic = broker.create_topic("t")
    topic.produce("one", "two")

    def consumer_at(broker: Broker) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "group.protocol": protocol,
                "enable.auto.commit": False,
                **({"session.timeout.ms": 500} if protocol == "classic" else {}),
            }
        )
        consumer.subscribe([topic])
        return consumer

    def next_of(consumer: Consumer) -> bytes | None:
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        return message.value()

    config = {"group.consumer.session.timeout.ms": 500, "group.consumer.min.session.timeout.ms": 200}
    with Broker(config) as broker:  # whose members are given up soon where they are not
        topic = broker.create_topic("t")
        topic.produce("one", "two")
        first = consumer_at(broker)
        assert next_of(first) == b"one"
        first.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        with broker.fork() as fork:
            second = consumer_at(fork)
            assert next_of(second) == b"two"
            second.commit(asynchronous=False)
            assert fork.group("g").lag() == 0
            assert broker.group("g").lag() == 1
            second.close()
        assert next_of(first) == b"two"
        first.close()


# A fork of what goes on


class Writers:
    """Threads that write numbers, each to a partition of its own, one behind the other."""

    def __init__(self, broker: Broker, topic: str, partitions: int, *, keys: int | None = None) -> None:
        self.acknowledged = [0] * partitions
        self._broker, self._topic, self._keys = broker, topic, keys
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(each,)) for each in range(partitions)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _write(self, partition: int) -> None:
        producer = Producer(
            {"bootstrap.servers": self._broker.bootstrap_servers, "enable.idempotence": True, "linger.ms": 1}
        )

        def acknowledged(error: object, message: object) -> None:
            assert error is None, error
            self.acknowledged[partition] += 1

        number = 0
        while not self._is_over.is_set():
            for _ in range(5):
                key = None if self._keys is None else str(number % self._keys)
                producer.produce(self._topic, str(number), key, partition=partition, on_delivery=acknowledged)
                number += 1
            producer.poll(0)
            self._is_over.wait(0.02)
        producer.flush(30)


@pytest.mark.parametrize("is_rolled", [False, True], ids=["copied", "rolled"])
def test_a_fork_under_load_is_a_prefix_with_all_that_was_acknowledged(
    broker: Broker, is_rolled: bool, request: pytest.FixtureRequest
) -> None:
    if is_rolled:
        request.getfixturevalue("rolls")
    partitions = 3
    topic = broker.create_topic("t", partitions=partitions)
    with Writers(broker, topic, partitions) as writers:
        for _ in range(20):
            before = list(writers.acknowledged)
            with broker.fork() as fork:
                for partition in range(partitions):
                    numbers = [int(each or b"") for each in fork.topic("t").values(partition=partition)]
                    assert numbers == list(range(len(numbers)))
                    assert len(numbers) >= before[partition]
                    assert fork.topic("t").produce("0", partition=partition) == [(partition, len(numbers))]
        assert writers.acknowledged > before
    for partition in range(partitions):
        count = writers.acknowledged[partition]
        assert [int(each or b"") for each in topic.values(partition=partition)] == list(range(count))


def test_a_commit_in_a_fork_points_at_records_that_are_there(broker: Broker) -> None:
    """Offsets are committed for what was just written: the cut is one moment for all logs."""
    topic = broker.create_topic("t")
    is_over = threading.Event()

    def write_and_commit() -> None:
        while not is_over.is_set():
            ((_, offset),) = topic.produce("x")
            broker.group("g").commit({("t", 0): offset + 1})

    thread = threading.Thread(target=write_and_commit)
    thread.start()
    try:
        broker.wait_for(topic="t", records=5)
        for _ in range(15):
            with broker.fork() as fork:
                (committed,) = fork.group("g").offsets().values()
                (end,) = fork.topic("t").end_offsets().values()
                assert end - 1 <= committed <= end
    finally:
        is_over.set()
        thread.join()


def test_a_fork_of_a_topic_that_is_compacted_meanwhile_has_every_key() -> None:
    keys, partitions = 7, 2
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": 0.01,
        "segment.bytes": 1048576,
        "segment.ms": 20,
        "file.delete.delay.ms": 0,
    }
    with Broker({"log.cleaner.backoff.ms": 1, "log.cleaner.threads": 2}) as broker:
        topic = broker.create_topic("t", partitions=partitions, configs=configs)
        with Writers(broker, topic, partitions, keys=keys) as writers:
            until(lambda: min(topic.end_offsets().values()) >= 50, "each partition has all keys")
            for _ in range(25):
                before = list(writers.acknowledged)
                with broker.fork() as fork:
                    for partition in range(partitions):
                        latest = {
                            each.key: int(each.value or b"") for each in fork.topic("t").records(partition=partition)
                        }
                        (end,) = {fork.topic("t").end_offsets()[partition]}
                        assert end >= before[partition]
                        assert latest == {str(number % keys).encode(): number for number in range(end - keys, end)}
            assert any("cleaned t-" in line for line in broker.log.lines())


def test_topics_that_come_and_go_meanwhile_are_there_or_not(broker: Broker) -> None:
    broker.create_topic("stays").produce("kept")
    is_over = threading.Event()

    def create_and_delete() -> None:
        while not is_over.is_set():
            topic = broker.create_topic("goes", partitions=3)
            topic.produce("x")
            topic.delete()

    thread = threading.Thread(target=create_and_delete)
    thread.start()
    try:
        for _ in range(25):
            with broker.fork() as fork:
                assert fork.topic("stays").values() == [b"kept"]
                if "goes" in fork.topics():
                    assert fork.topic("goes").partition_count() == 3
                    assert fork.topic("goes").values() in ([], [b"x"])
    finally:
        is_over.set()
        thread.join()


def test_a_log_that_loses_segments_during_the_copy_is_copied_anew(
    broker: Broker, rolls: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction in the midst of the copy, in each round but the last."""
    topic = broker.create_topic("t")
    for number in range(3):
        topic.produce(str(number))
        broker.fork().close()  # which rolls
    log = broker.nodes[0].node.parts.broker_role.broker.partitions.logs.directories[0].logs  # type: ignore[union-attr]
    (log,) = [each for at, each in log.items() if at.topic == "t"]
    assert len(log.segments) == 4
    real, rounds = node_copy._write_log, []

    def write(copy: node_copy._Copy, target: str, cut: object) -> None:
        if target.endswith("/t-0"):
            rounds.append(len(log.segments))
            if len(log.segments) > 1:
                log.make_names_durable()
                log.increment_log_start_offset(log.segments[1].base_offset)
                for path in log.put_old_segments_aside(log.log_end_offset, 0):
                    os.remove(path)
        real(copy, target, cut)  # type: ignore[arg-type]

    monkeypatch.setattr(node_copy, "_write_log", write)
    with broker.fork() as fork:
        assert rounds[:1] == [4]
        assert len(rounds) == len(set(rounds)) >= 3
        assert fork.topic("t").values() == []
        assert fork.topic("t").produce("next") == [(0, 3)]


def test_metadata_that_a_snapshot_covers_meanwhile_is_copied_anew(
    broker: Broker, rolls: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records in front of the snapshot go, and the cut has no snapshot that tells the same."""
    broker.create_topic("t").produce("one")
    real, calls = node_copy._renew, []

    async def renew(copy: node_copy._Copy, parts: NodeParts) -> bool:
        if not calls:
            log = parts.node.raft.metadata_log
            await parts.snapshots._write()
            await parts.node.threads.run(log.prepare_cleaning)
            log.begin_at(log.snapshots.ids[-1], parts.node.clock.now_ms())
        calls.append(await real(copy, parts))
        return calls[-1]

    monkeypatch.setattr(node_copy, "_renew", renew)
    with broker.fork() as fork:
        assert calls == [False, True]
        assert fork.topic("t").values() == [b"one"]


def test_a_fork_that_fails_leaves_nothing(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ephemeral_directories()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(node_copy, "write_cut", fail)
        with pytest.raises(SavepointRefused, match=r"the fork cannot be written: .*No space left"):
            broker.fork()
    assert ephemeral_directories() == before
    with broker.fork() as fork:
        assert fork.topics() == []


# Kinds of brokers


def test_a_broker_with_a_directory_and_listeners_of_its_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": [one, two],
        "metadata.log.dir": tmp_path / "metadata",
        "node.id": 7,
    }
    with Broker(config, data_dir=tmp_path / "unused") as broker:
        broker.create_topic("t", partitions=4).produce_all([(str(number), str(number)) for number in range(20)])
        with broker.fork() as fork:
            assert address_of(fork)[1] != port
            assert sorted(fork.topic("t").values()) == sorted(broker.topic("t").values())
            fork.restart()
            assert len(fork.topic("t").values()) == 20
            directories = fork.nodes[0].config.log_dirs
            assert len(directories) == 2
            assert not [path for path in directories if str(tmp_path) in path and Path(path).parent == tmp_path]


def test_clients_of_a_fork_are_told_its_own_address() -> None:
    """Also where the broker has one listener of its own, and is told by which name clients reach it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with Broker({"advertised.listeners": f"PLAINTEXT://localhost:{port}"}, port=port) as broker, broker.fork() as fork:
        assert fork.bootstrap_servers != broker.bootstrap_servers
        (told,) = AdminClient({"bootstrap.servers": fork.bootstrap_servers}).list_topics(timeout=10).brokers.values()
        assert f"{told.host}:{told.port}" == fork.bootstrap_servers


def test_a_port_is_given_to_a_fork_or_refused(broker: Broker) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with broker.fork(port=port) as fork:
        assert address_of(fork)[1] == port
    with (
        Broker({"listeners": "PLAINTEXT://127.0.0.1:0"}) as other,
        pytest.raises(ValueError, match="`listeners` is given"),
    ):
        other.fork(port=port)


def test_a_fork_has_no_journal_where_its_source_has_none() -> None:
    with Broker(journal=False) as broker, broker.fork() as fork, pytest.raises(NoJournal):
        fork.requests("Produce")


def test_a_fork_of_what_began_with_a_savepoint_is_the_same_node(tmp_path: Path) -> None:
    with Broker({"node.id": 7}) as broker:
        broker.create_topic("t").produce("one")
        broker.save(tmp_path / "seven")
    with Broker(savepoint=tmp_path / "seven") as broker, broker.fork() as fork:
        assert fork.node_id == 7
        assert fork.topic("t").values() == [b"one"]


def test_users_log_in_to_a_fork() -> None:
    """Those of the configuration, and those whom the metadata has."""
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    config = {
        "listeners": "USERS://127.0.0.1:0",
        "listener.security.protocol.map": "USERS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "USERS",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f'{plain} username="a" password="secret" user_a="secret";',
        "listener.name.users.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{plain} username="a" password="secret";',
    }
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "bob"}
    with Broker(config, client_properties=client) as broker:
        broker.create_topic("t").produce("one")
        admin = AdminClient(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanisms": "PLAIN",
                "sasl.username": "a",
                "sasl.password": "secret",
            }
        )
        mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        (altered,) = admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("bob", mechanism, b"bobs")]
        ).values()
        altered.result(10)
        with broker.fork() as fork:
            assert fork.topic("t").values() == [b"one"]
            bob = AdminClient({"bootstrap.servers": fork.bootstrap_servers, **own, "sasl.password": "bobs"})
            assert "t" in bob.list_topics(timeout=10).topics


def test_an_entry_is_a_request_or_its_number(broker: Broker) -> None:
    with pytest.raises(TypeError, match="or the number of an entry, not str"):
        broker.fork(at="7")  # type: ignore[arg-type]


def test_coroutines_fork() -> None:
    async def on_asyncio() -> None:
        async with Broker() as broker:
            topic = await broker.create_topic("t")
            await topic.produce("both")
            async with broker.fork() as fork:
                await fork.topic("t").produce("theirs")
                assert await fork.topic("t").values() == [b"both", b"theirs"]
                async with fork.fork() as other:
                    assert await other.topic("t").values() == [b"both", b"theirs"]
            assert await topic.values() == [b"both"]

    async def on_trio() -> None:
        await on_asyncio()

    asyncio.run(on_asyncio())
    trio.run(on_trio)


def test_what_cannot_be_forked_says_why(broker: Broker) -> None:
    broker.stop()
    with pytest.raises(SavepointRefused, match="does not serve"):
        broker.fork()
    broker.close()
    with pytest.raises(BrokerNotRunning, match="not open"):
        broker.fork()
    cluster = Cluster(2)
    for fork in (cluster.fork, cluster.aio.fork):
        with pytest.raises(SavepointRefused, match=r"`Cluster` cannot be forked: .*; fork a `Broker`"):
            fork()
    with pytest.raises(SavepointRefused, match=r"`Cluster` cannot be saved: .*; save a `Broker`"):
        cluster.save("a.savepoint")


def test_a_broker_that_is_being_stopped_is_not_forked(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its logs are closed one by one: a fork would begin without those that are."""
    broker.create_topic("t").produce("one")
    are_closed, go_on = threading.Event(), threading.Event()
    real = LogDirectory._close_logs

    def close(directory: LogDirectory) -> None:
        real(directory)
        are_closed.set()
        assert go_on.wait(20)

    monkeypatch.setattr(LogDirectory, "_close_logs", close)
    thread = threading.Thread(target=broker.stop)
    thread.start()
    try:
        assert are_closed.wait(20)
        with pytest.raises(SavepointRefused, match="does not serve"):
            broker.fork()
    finally:
        go_on.set()
        thread.join()


def test_a_damaged_partition_is_not_forked(broker: Broker, rolls: None) -> None:
    broker.create_topic("t").produce("one")
    broker.fork().close()  # which rolls
    broker.stop()
    path = files_of(broker, "t-0/*.log")[0]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    broker.start()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    while not any("t-0 is quarantined" in line for line in broker.log.lines()):
        consumer.poll(0.1)
    consumer.close()
    with pytest.raises(SavepointRefused, match="t-0 is damaged"):
        broker.fork()


# Many


def test_many_forks_leave_nothing(temporary: Path) -> None:
    """A thousand with PYKBROKER_FORKS=1000."""
    addresses = []
    with Broker() as broker:
        topic = broker.create_topic("t")
        topic.produce("one")
        with broker.fork() as fork:
            fork.topic("t").produce("x")  # whatever is imported is, and Trio's threads are there
        files, threads, directories = descriptors(), threading.active_count(), os.listdir(temporary)
        for _ in range(FORKS):
            with broker.fork() as fork:
                assert fork.topic("t").produce("x") == [(0, 1)]
                addresses.append(address_of(fork))
        assert descriptors() <= files + 2
        assert threading.active_count() <= threads + 1
        assert os.listdir(temporary) == directories
        assert topic.values() == [b"one"]
    assert os.listdir(temporary) == []
    for address in addresses:
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(address)
