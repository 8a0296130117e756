"""Faults between a broker and stock clients: what is asked for comes about, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kafka.errors
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from kafka import KafkaConsumer, KafkaProducer

from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.groups import HeartbeatRequest
from pykbroker.testing import Broker, BrokerNotRunning, Cluster, Topic

SCRIPT = """\
seed = 11

[[fault]]
name = "now and then"
api = "Produce"
chance = 0.4
error = "NOT_LEADER_OR_FOLLOWER"

[[fault]]
api = "Produce"
every = 5
cut = true
"""


@pytest.fixture(autouse=True)
def _no_faults_are_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "broker" in request.fixturenames:
        request.getfixturevalue("broker").faults.clear()


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> Topic:
    return broker.create_topic(request.node.name.replace("[", ".").replace("]", "").replace(" ", "."))


def producer_of(broker: Broker, **options: Any) -> Producer:
    quick = {"retry.backoff.ms": 5, "reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 50, "linger.ms": 0}
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **quick, **options})


def send(producer: Producer, topic: str, value: bytes = b"x", timeout: float = 20) -> KafkaError | None:
    """Send one record, and return the error that its callback had."""
    found: list[KafkaError | None] = []
    producer.produce(topic, value, callback=lambda error, _: found.append(error))
    assert producer.flush(timeout) == 0
    return found[0]


@pytest.mark.parametrize("error", ["INVALID_RECORD", "TOPIC_AUTHORIZATION_FAILED", "MESSAGE_TOO_LARGE"])
def test_producers_have_the_error_of_kafka(broker: Broker, topic: Topic, error: str) -> None:
    with broker.faults.add(api="Produce", topic=topic, error=error) as fault:
        failure = send(producer_of(broker), topic)
        assert failure is not None
        assert failure.code() == getattr(KafkaError, error.replace("MESSAGE_TOO_LARGE", "MSG_SIZE_TOO_LARGE"), 87)
        other = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        with other, pytest.raises(kafka.errors.BrokerResponseError) as raised:
            other.send(topic, b"x").get(20)
        assert raised.value.errno == failure.code()
        assert fault.taken == fault.fitted == 2
    assert send(producer_of(broker), topic, b"now") is None
    assert topic.values() == [b"now"]


def test_a_producer_goes_on_behind_errors_that_pass(broker: Broker, topic: Topic) -> None:
    fault = broker.faults.add(api="Produce", topic=topic, first=2, error="NOT_LEADER_OR_FOLLOWER")
    assert send(producer_of(broker), topic) is None
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5) as other:
        other.send(topic, b"y").get(20)
    assert (fault.fitted, fault.taken) == (4, 2)
    assert topic.values() == [b"x", b"y"]


def test_a_retry_behind_a_lost_answer_is_a_duplicate_without_idempotence_and_none_with_it(
    broker: Broker, topic: Topic
) -> None:
    for is_idempotent in (False, True):
        with broker.faults.add(api="Produce", topic=topic, nth=1, drop="after") as fault:
            producer = producer_of(broker, **{"enable.idempotence": is_idempotent})
            assert send(producer, topic, str(is_idempotent).encode()) is None
            assert fault.taken == 1
    assert topic.values() == [b"False", b"False", b"True"]


def test_a_request_that_is_lost_is_not_carried_out(broker: Broker, topic: Topic) -> None:
    broker.faults.add(api="Produce", topic=topic, drop="before")
    failure = send(producer_of(broker, **{"message.timeout.ms": 500}), topic)
    assert failure is not None
    assert topic.values() == []


def test_an_answer_that_is_cut_is_as_if_there_were_none(broker: Broker, topic: Topic) -> None:
    with broker.faults.add(api="Produce", topic=topic, nth=1, cut=True) as fault:
        assert send(producer_of(broker), topic) is None
        assert fault.fitted == 2
    with broker.faults.add(api="Fetch", topic=topic, nth=1, cut=True) as fault:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=20_000,
            reconnect_backoff_ms=5,
        )
        assert next(consumer).value == b"x"
        consumer.close()
        assert fault.taken == 1


def test_a_consumer_starts_over_where_its_offset_is_out_of_range(broker: Broker, topic: Topic) -> None:
    topic.produce("a")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen: list[bytes | None] = []
    while len(seen) < 1:
        message = consumer.poll(20)
        assert message is not None
        if message.error() is None:
            seen.append(message.value())
    fault = broker.faults.add(api="Fetch", topic=topic, nth=1, error="OFFSET_OUT_OF_RANGE")
    while len(seen) < 2:
        message = consumer.poll(20)
        assert message is not None
        if message.error() is None:
            seen.append(message.value())
    consumer.close()
    assert seen == [b"a", b"a"]
    assert fault.taken == 1


def test_an_incremental_fetch_is_known_by_the_topics_of_its_session(broker: Broker, topic: Topic) -> None:
    """It names none, and its error stands in all partitions of the session."""
    topic.produce("a")
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
        consumer_timeout_ms=20_000,
    )
    assert next(consumer).value == b"a"
    fault = broker.faults.add(api="Fetch", topic=topic, skip=2, times=2, error="NOT_LEADER_OR_FOLLOWER")
    others = broker.faults.add(api="Fetch", topic="others", cut=True)
    asked = threading.Thread(target=lambda: topic.produce("b") if fault.wait_taken(2) is None else None)
    asked.start()
    assert next(consumer).value == b"b"
    asked.join()
    consumer.close()
    assert (others.fitted, fault.taken) == (0, 2)


@pytest.mark.parametrize("library", ["confluent", "kafka-python"])
def test_a_client_whose_first_question_is_of_a_later_version_asks_again(
    broker: Broker, topic: Topic, library: str
) -> None:
    with broker.faults.add(api="ApiVersions", client_id=library, nth=1, error="UNSUPPORTED_VERSION") as fault:
        if library == "confluent":
            assert send(producer_of(broker, **{"client.id": library}), topic) is None
        else:
            with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=library) as producer:
                producer.send(topic, b"x").get(20)
        assert fault.taken == 1
        assert fault.fitted > 1
    assert topic.values() == [b"x"]
    (first, *_) = broker.requests("ApiVersions", client_id=library, error="UNSUPPORTED_VERSION")
    assert first.outcome == "answered"


@pytest.mark.parametrize(
    ("api", "error", "ask"),
    [
        (
            "CreateTopics",
            "POLICY_VIOLATION",
            lambda admin, c: admin.create_topics([NewTopic("t9", 1)])["t9"].result(20),
        ),
        ("DeleteTopics", "TOPIC_AUTHORIZATION_FAILED", lambda admin, c: admin.delete_topics(["t9"])["t9"].result(20)),
        (
            "DescribeConfigs",
            "TOPIC_AUTHORIZATION_FAILED",
            lambda admin, c: next(iter(admin.describe_configs([ConfigResource("topic", "t8")]).values())).result(20),
        ),
        ("DeleteGroups", "NON_EMPTY_GROUP", lambda admin, c: admin.delete_consumer_groups(["g9"])["g9"].result(20)),
        (
            "OffsetFetch",
            "GROUP_AUTHORIZATION_FAILED",
            lambda admin, c: c.committed([TopicPartition("t9", 0)], 20)[0].error,
        ),
        (
            "OffsetCommit",
            "GROUP_AUTHORIZATION_FAILED",
            lambda admin, c: c.commit(offsets=[TopicPartition("t9", 0, 1)], asynchronous=False),
        ),
        (
            "ListOffsets",
            "TOPIC_AUTHORIZATION_FAILED",
            lambda admin, c: c.get_watermark_offsets(TopicPartition("t8", 0), 20),
        ),
    ],
)
def test_every_kind_of_answer_is_understood(
    broker: Broker, api: str, error: str, ask: Callable[[AdminClient, Consumer], Any]
) -> None:
    if not any(each == "t8" for each in broker.topics()):
        broker.create_topic("t8")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    consumer = Consumer({**settings, "group.id": "g9"})
    with broker.faults.add(api=api, error=error) as fault:
        try:
            answer = ask(AdminClient(settings), consumer)
        except KafkaException as raised:
            answer = raised.args[0]
        assert answer.code() == getattr(KafkaError, error)
        assert fault.taken >= 1
    consumer.close()


def test_a_delay_is_before_the_request_is_carried_out_and_a_hold_behind_it(broker: Broker, topic: Topic) -> None:
    producer = producer_of(broker)
    with broker.faults.add(api="Produce", topic=topic, delay="300ms") as fault:
        began = time.monotonic()
        producer.produce(topic, b"late")
        producer.poll(0)
        fault.wait_taken()
        assert producer.flush(20) == 0
        assert time.monotonic() - began >= 0.3
    with broker.faults.add(api="Produce", topic=topic, hold="300ms") as fault:
        producer.produce(topic, b"there")
        producer.poll(0)
        broker.wait_for(topic=topic, records=2)
        assert producer.flush(20) == 0
        assert fault.taken == 1


def test_an_answer_is_held_until_the_test_lets_it_go(broker: Broker, topic: Topic) -> None:
    producer = producer_of(broker)
    fault = broker.faults.hold(api="Produce", topic=topic, until="go")
    producer.produce(topic, b"x")
    producer.poll(0)
    broker.wait_for(topic=topic, records=1)
    assert (len(producer), broker.faults.held) == (1, 1)
    with pytest.raises(ValueError, match=r"no fault holds until 'gone' is released \(did you mean go\?\)"):
        broker.faults.release("gone")
    broker.faults.release("go")
    assert producer.flush(20) == 0
    assert (fault.taken, fault.timed_out, broker.faults.held) == (1, 0, 0)


def test_one_client_goes_before_another_whatever_their_speed(broker: Broker, topic: Topic) -> None:
    until = broker.faults.answered(api="Produce", client_id="second", topic=topic)
    fault = broker.faults.hold(api="Produce", client_id="first", topic=topic, until=until, held="request")
    first = producer_of(broker, **{"client.id": "first"})
    first.produce(topic, b"first")
    first.poll(0)
    fault.wait_taken()
    assert topic.values() == []
    assert send(producer_of(broker, **{"client.id": "second"}), topic, b"second") is None
    assert first.flush(20) == 0
    assert topic.values() == [b"second", b"first"]


def test_a_client_that_leaves_meanwhile_has_its_request_carried_out_later(broker: Broker, topic: Topic) -> None:
    fault = broker.faults.hold(api="Produce", topic=topic, until="go", held="request")
    producer = producer_of(broker, **{"message.timeout.ms": 300})
    producer.produce(topic, b"zombie")
    fault.wait_taken()
    producer.flush(20)
    del producer
    assert topic.values() == []
    broker.faults.release("go")
    broker.wait_for(topic=topic, records=1)
    assert topic.values() == [b"zombie"]


@pytest.mark.parametrize("held", ["request", "answer"])
def test_a_stop_waits_for_nothing_that_is_held_and_faults_outlive_it(held: str) -> None:
    with Broker() as broker:
        topic = broker.create_topic("orders")
        fault = broker.faults.hold(api="Produce", until="never", held=held, timeout="1h")
        producer = producer_of(broker)
        producer.produce(topic, b"x")
        producer.poll(0)
        fault.wait_taken()
        began = time.monotonic()
        broker.stop()
        assert time.monotonic() - began < 2
        broker.start()
        if held == "request":
            fault.wait_taken(2)
            broker.faults.clear()
        assert producer.flush(20) == 0
        assert topic.values() == [b"x"]


def test_a_kill_ends_what_is_held() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        fault = broker.faults.hold(api="Produce", until="never", timeout="1h")
        producer = producer_of(broker)
        producer.produce("orders", b"x")
        producer.poll(0)
        fault.wait_taken()
        broker.kill()
        assert broker.faults.held == 0
        fault.remove()
        broker.start()
        assert producer.flush(20) == 0


def test_a_producer_without_acknowledgements_is_cut_off_as_by_kafka(broker: Broker, topic: Topic) -> None:
    with broker.faults.add(api="Produce", topic=topic, error="NOT_LEADER_OR_FOLLOWER") as fault:
        producer = producer_of(broker, acks=0)
        producer.produce(topic, b"lost")
        producer.flush(20)
        fault.wait_taken()
        assert topic.values() == []
    with broker.faults.add(api="Produce", topic=topic, delay="50ms"):
        producer.produce(topic, b"late")
        assert producer.flush(20) == 0
        broker.wait_for(topic=topic, records=1)


def test_what_a_client_that_logs_in_sends_before_is_left_alone_and_the_rest_is_not() -> None:
    config = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=u password=p user_u=p;"
        ),
    }
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    with Broker(config, client_properties=own) as broker:
        broker.create_topic("orders")
        anything = broker.faults.add(delay="1ms")
        fault = broker.faults.add(api="Produce", nth=1, cut=True)
        assert send(producer_of(broker, **login), "orders") is None
        assert fault.taken == 1
        assert "SaslHandshake" not in {each.api for each in broker.faults.taken}
        assert anything.taken > 3
        with pytest.raises(ValueError, match="no fault reaches SaslAuthenticate"):
            broker.faults.add(api="SaslAuthenticate", cut=True)


def test_a_script_is_played_again_fault_by_fault(tmp_path: Path) -> None:
    def run(script: str | Path) -> tuple[list[Any], list[bytes | None]]:
        with Broker() as broker:
            broker.create_topic("orders")
            broker.faults.load(script)
            producer = producer_of(broker, **{"client.id": "app", "max.in.flight": 1})
            for number in range(30):
                assert send(producer, "orders", b"%d" % number) is None
            return list(broker.faults.taken), broker.topic("orders").values()

    first, values = run(SCRIPT)
    file = tmp_path / "faults.toml"
    file.write_text(SCRIPT)
    again, same_values = run(file)
    assert first == again
    assert values == same_values
    assert {each.rule for each in first} == {"now and then", "fault 1"}
    others, _ = run(SCRIPT.replace("11", "12"))
    assert others != first


def test_a_mistake_is_one_line(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no API 'Produse' \(did you mean Produce\?\)"):
        broker.faults.add(api="Produse", cut=True)
    with pytest.raises(ValueError, match=r"a fault has no 'topik' \(did you mean topic\?\)"):
        broker.faults.add(api="Produce", topik="x", cut=True)  # type: ignore[call-arg]
    file = tmp_path / "faults.toml"
    file.write_text('\n[[fault]]\napi = "Produce"\nerror = "NOT_LEADER"\n')
    with pytest.raises(ValueError, match=r"faults.toml, line 4, \[\[fault\]\] 1: .*did you mean"):
        broker.faults.load(file)
    with pytest.raises(ValueError, match="'seed' is a whole number from 0 on, not -1"):
        broker.faults.seed = -1
    fault = broker.faults.add(api="Produce", cut=True)
    with pytest.raises(TimeoutError, match="to come about 1 times; it did 0 times, and 0 were meant"):
        fault.wait_taken(timeout=0.05)


def test_a_full_disk_refuses_records_and_takes_them_when_there_is_room(broker: Broker, topic: Topic) -> None:
    topic.produce("before")
    other = broker.create_topic(f"{topic}.other")
    with broker.faults.disk(error="ENOSPC", topic=topic) as fault:
        failure = send(producer_of(broker, retries=0), topic)
        assert failure is not None
        assert failure.code() == 56  # KAFKA_STORAGE_ERROR
        assert fault.taken == 1
        assert topic.values() == [b"before"]
        other.produce("others are written")
    assert send(producer_of(broker), topic, b"after") is None
    assert topic.values() == [b"before", b"after"]


def test_reads_that_fail_reach_consumers_though_they_are_sent_by_the_system(tmp_path: Path) -> None:
    """And take the directory offline, as Kafka's does: here the second of two."""
    with Broker({"log.dirs": f"{tmp_path}/one,{tmp_path}/two"}) as broker:
        topics = [broker.create_topic(f"t{number}") for number in range(2)]
        for each in topics:
            each.produce("x" * 100_000)
        (bad,) = [each for each in topics if (tmp_path / "two" / f"{each}-0").is_dir()]
        (good,) = [each for each in topics if each != bad]
        fault = broker.faults.disk(error="EIO", op="read", path=f"{tmp_path}/two")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "log_level": 0})
        consumer.assign([TopicPartition(bad, 0, 0)])
        fault_comes = threading.Thread(target=fault.wait_taken)
        fault_comes.start()
        while fault_comes.is_alive():
            message = consumer.poll(0.1)
            assert message is None or message.error() is not None
        consumer.close()
        assert fault.taken
        assert len(good.values()) == 1
        assert any("offline" in line for line in broker.log.lines())


def test_faults_end_with_their_broker() -> None:
    with Broker() as broker:
        fault = broker.faults.add(api="Produce", cut=True)
        broker.close()
        fault.__exit__(None, None, None)
        with pytest.raises(BrokerNotRunning):
            broker.faults.add(api="Produce", cut=True)
    assert repr(fault) == "<fault 'fault 1': 0 of 0>"
    with Broker() as broker:
        assert broker.faults.taken == []


def test_a_raw_client_sees_a_connection_that_ends(broker: Broker) -> None:
    broker.faults.add(api="Heartbeat", client_id="raw", nth=2, cut=True)
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    frame = encode_request(HeartbeatRequest(group_id="g"), 4, 7, "raw")
    with socket.create_connection((host, int(port)), 20) as client:
        client.sendall(frame)
        whole = client.recv(1000)
        client.sendall(frame)
        part = b""
        while piece := client.recv(1000):
            part += piece
    assert 4 < len(part) < len(whole)
    assert whole.startswith(part)


def test_each_broker_of_a_cluster_has_its_own_and_its_followers_are_left_alone() -> None:
    with Cluster(brokers=2) as cluster:
        topic = cluster.create_topic("orders")
        faults = [broker.faults.add(api="Fetch", drop="before") for broker in cluster.brokers]
        topic.produce("replicated")
        assert topic.values() == [b"replicated"]
        assert [fault.fitted for fault in faults] == [0, 0]
        followers = [broker.faults.add(api="Fetch", client_id="broker-*", delay="1ms") for broker in cluster.brokers]
        topic.produce("more")
        assert any(fault.taken for fault in followers)
        one, other = (broker.faults for broker in cluster.brokers)
        for until in (other.seen(api="Fetch"), other.answered(api="Fetch")):
            with pytest.raises(ValueError, match="'until' is about another broker"):
                one.hold(api="Produce", until=until)
            with pytest.raises(ValueError, match="'until' is about another broker"):
                one.add(api="Produce", until=until)
        one.hold(api="Produce", until=cluster.broker(1).faults.seen(api="Fetch"))


def test_coroutines_have_the_same() -> None:
    async def main() -> None:
        async with Broker() as broker:
            topic = await broker.create_topic("orders")
            broker.faults.seed = 3
            assert broker.faults.seed == 3
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5) as producer:
                async with await broker.faults.add(api="Produce", nth=1, error="NOT_LEADER_OR_FOLLOWER") as fault:
                    await producer.send_and_wait(topic, b"x")
                    assert (fault.name, fault.fitted, fault.taken) == ("fault 1", 2, 1)
                hold = await broker.faults.hold(api="Produce", until=broker.faults.seen(api="Metadata", client_id="me"))
                await hold.remove()
                named = await broker.faults.hold(api="Produce", until="go")
                sending = asyncio.ensure_future(producer.send_and_wait(topic, b"y"))
                await named.wait_taken()
                assert broker.faults.held == 1
                await broker.faults.release("go")
                await sending
                (loaded,) = await broker.faults.load('[[disk]]\nerror = "ENOSPC"\ntopic = "orders"\nnth = 1\n')
                await producer.send_and_wait(topic, b"z")
                assert loaded.taken == 1
                await broker.faults.clear()
                assert broker.faults.taken == []
            assert await broker.topic("orders").values() == [b"x", b"y", b"z"]

    asyncio.run(main())
