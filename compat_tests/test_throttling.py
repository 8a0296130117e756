"""Clients beyond their quotas: the answer says for how long they are throttled, and nothing more is served meanwhile.

What a broker's clock has a say in is compared as a yes or no: whether an answer is throttled at all.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.schema import Message

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker
from .conftest import FreshBroker
from .quota_requests import set_quotas
from .topics import create_topic
from .waiting import until
from .wire import SILENCE_S, Silent, Wire

PRODUCE, FETCH = 9, 12
RECORD_BYTES = 60_000
STRANGER, SCOUT = "127.0.0.2", "127.0.0.3"
"""Other addresses of this machine."""


def produce(topic: str, size: int = RECORD_BYTES, acks: int = 1) -> ProduceRequest:
    records = encode_batch(
        [Record(key=None, value=b"x" * size, headers=(), timestamp=int(time.time() * 1000), offset=0)]
    )
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch(topic: str, max_bytes: int = 1 << 20, **session: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
        session_epoch=session.pop("session_epoch", -1),
        **session,
    )


def is_throttled(response: Any) -> bool:
    return bool(response.throttle_time_ms > 0)


@dataclass(frozen=True)
class Measured:
    """A client id that nobody else has. Where it is muted, it comes again with another connection."""

    broker: Broker
    client_id: str

    def limit(self, **values: float | None) -> None:
        set_quotas(self.broker, {"client-id": self.client_id}, values)

    def ask(self, request: Message, version: int) -> Any:
        with Wire(self.broker.address) as wire:
            return self.ask_by(wire, request, version)

    def ask_by(self, wire: Wire, request: Message, version: int) -> Any:
        return wire.call(request, version, client_id=self.client_id)

    def ensure_muted(self, wire: Wire) -> None:
        with pytest.raises(Silent):
            wire.call(MetadataRequest(topics=[]), 9, client_id=self.client_id, deadline_s=SILENCE_S)


@pytest.fixture
def client(broker: Broker, unique: Callable[[str], str]) -> Iterator[Measured]:
    measured = Measured(broker, unique("client"))
    yield measured
    rates = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    measured.limit(**dict.fromkeys(rates))


@pytest.fixture
def other(broker: Broker, unique: Callable[[str], str]) -> Measured:
    """A client without quotas."""
    return Measured(broker, unique("other"))


VERSIONS = ApiVersionsRequest(client_software_name="a", client_software_version="1")


def test_a_producer_is_throttled_when_its_bytes_are_more_than_its_windows_hold(
    client: Measured, other: Measured, topic: str, answers: TestAnswers
) -> None:
    create_topic(client.broker, topic)
    client.limit(producer_byte_rate=10_000)
    with Wire(client.broker.address) as wire:
        first, second = (client.ask_by(wire, produce(topic), PRODUCE) for _ in range(2))
        third = client.ask_by(wire, VERSIONS, 3)
    answers.same("appended", [each.responses[0].partition_responses[0].error_code for each in (first, second)])
    answers.same("throttled", [is_throttled(each) for each in (first, second, third)])
    answers.same("others", is_throttled(other.ask(produce(topic), PRODUCE)))
    client.limit(producer_byte_rate=10_000_000)
    answers.same("with more", is_throttled(client.ask(produce(topic), PRODUCE)))


def test_a_muted_connection_gets_nothing_and_another_one_does(
    client: Measured, topic: str, answers: TestAnswers
) -> None:
    create_topic(client.broker, topic)
    client.limit(producer_byte_rate=100)
    with Wire(client.broker.address) as wire:
        throttled = client.ask_by(wire, produce(topic), PRODUCE)
        answers.same("longer than a while", throttled.throttle_time_ms > 10 * SILENCE_S * 1000)
        client.ensure_muted(wire)
        answers.same("another connection", client.ask(VERSIONS, 3).error_code)


def test_a_producer_that_wants_no_answer_is_muted(
    client: Measured, other: Measured, topic: str, answers: TestAnswers
) -> None:
    create_topic(client.broker, topic)
    client.limit(producer_byte_rate=100)
    with Wire(client.broker.address) as wire:
        wire.send(produce(topic, acks=0), PRODUCE, client_id=client.client_id)
        client.ensure_muted(wire)

    def stored() -> int:
        return len(other.ask(fetch(topic), FETCH).responses[0].partitions[0].records or b"")

    until(lambda: stored() > 0, "the records are stored")
    answers.same("stored", stored())


def test_a_throttled_fetch_is_empty_and_costs_nothing(
    client: Measured, other: Measured, topic: str, answers: TestAnswers
) -> None:
    create_topic(client.broker, topic)
    for _ in range(3):
        other.ask(produce(topic), PRODUCE)
    client.limit(consumer_byte_rate=7_000)
    seen = [client.ask(fetch(topic, RECORD_BYTES), FETCH) for _ in range(3)]
    answers.same("one after the other", [(is_throttled(each), len(each.responses)) for each in seen])
    opened = other.ask(fetch(topic, session_epoch=0), FETCH)
    going_on = fetch(topic, RECORD_BYTES, session_id=opened.session_id, session_epoch=1)
    response = client.ask(going_on, FETCH)
    answers.same("in a session", (is_throttled(response), response.session_id == opened.session_id, response.responses))
    response = client.ask(fetch(topic, session_epoch=0), FETCH)
    answers.same("a new session", (is_throttled(response), response.session_id, response.responses))


def test_a_client_has_its_share_of_the_time(client: Measured, answers: TestAnswers) -> None:
    client.limit(request_percentage=0.000_01)
    requests: dict[str, tuple[Message, int]] = {
        "ApiVersions": (VERSIONS, 3),
        "Metadata": (MetadataRequest(topics=[]), 9),
        "FindCoordinator": (FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4),
    }
    for name, (request, version) in requests.items():
        throttled_ms = [client.ask(request, version).throttle_time_ms for _ in range(3)]
        answers.same(name, [each > 0 for each in throttled_ms[1:]])
        assert max(throttled_ms) <= 1000, "one window at most"
    client.limit(request_percentage=100_000)
    until(lambda: not is_throttled(client.ask(MetadataRequest(topics=[]), 9)), "there is enough for all")


def creation(name: str, partitions: int, *, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=validate_only)


def creations(*topics: tuple[str, int]) -> CreateTopicsRequest:
    asked = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics]
    return CreateTopicsRequest(topics=asked, timeout_ms=30_000)


def growth(name: str, count: int) -> CreatePartitionsRequest:
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[wanted], timeout_ms=30_000)


def outcome(response: Any) -> tuple[list[tuple[str, str, str | None]], bool]:
    rows = getattr(response, "topics", None) or getattr(response, "results", None) or response.responses
    shown = [(row.name, ErrorCode(row.error_code).name, getattr(row, "error_message", None)) for row in rows]
    return sorted(shown), is_throttled(response)


def test_changes_of_partitions_are_refused_to_newer_clients_and_throttle_older_ones(
    client: Measured, unique: Callable[[str], str], answers: TestAnswers
) -> None:
    names = {each: unique(each) for each in ("old", "a", "b", "c", "d", "e", "f", "g")}
    create_topic(client.broker, names["old"], 2)
    letters = {name: letter for letter, name in names.items()}

    def same(question: str, request: Message, version: int) -> None:
        rows, throttled = outcome(client.ask(request, version))
        shown = [
            (letters[name], code, None if text is None else text.replace(name, letters[name]))
            for name, code, text in rows
        ]
        answers.same(question, (shown, throttled))

    client.limit(controller_mutation_rate=0.01)
    same("the bucket may be overdrawn", creation(names["a"], 3), 7)
    same("then no more is created", creation(names["b"], 1), 7)
    same("not even to try", creation(names["c"], 1, validate_only=True), 7)
    same("what is wrong anyway is told first", creation(names["old"], 1), 7)
    same("an older client is throttled", creation(names["d"], 1), 5)
    same("no more partitions", growth(names["old"], 4), 3)
    same("an older client gets them", growth(names["old"], 4), 2)
    same("nothing is deleted", deletion(DeleteTopicState(name=names["a"])), 6)
    same("nor by name", DeleteTopicsRequest(topic_names=[names["a"]], timeout_ms=30_000), 5)
    same("an older client deletes", DeleteTopicsRequest(topic_names=[names["a"]], timeout_ms=30_000), 4)
    with Wire(client.broker.address) as wire:
        response = client.ask_by(wire, creation(names["e"], 1), 7)
        answers.same("minutes", 5 < response.throttle_time_ms / 60_000 < 20)
        client.ensure_muted(wire)
    client.limit(controller_mutation_rate=1_000_000)
    same("one request", creations((names["f"], 2), (names["g"], 3)), 7)


def deletion(*topics: DeleteTopicState) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=list(topics), timeout_ms=30_000)


def test_of_many_topics_those_come_through_that_come_first(
    client: Measured, unique: Callable[[str], str], answers: TestAnswers
) -> None:
    client.limit(controller_mutation_rate=0.2)
    asked = creations(*((unique(letter), count) for letter, count in (("a", 1), ("b", 2), ("c", 1), ("d", 1))))
    rows, throttled = outcome(client.ask(asked, 7))
    answers.same("created", ([code for _, code, _ in rows], throttled))


def test_topics_that_metadata_creates_count_as_others_do(
    client: Measured, other: Measured, unique: Callable[[str], str], answers: TestAnswers
) -> None:
    def code(asking: Measured, topic: str) -> str:
        response = asking.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
        return ErrorCode(response.topics[0].error_code).name

    def exists(topic: str) -> bool:
        question = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        return ErrorCode(other.ask(question, 9).topics[0].error_code) is ErrorCode.NONE

    first, second, others = unique("first"), unique("second"), unique("others")
    client.limit(controller_mutation_rate=0.01)
    answers.same("the first is created", code(client, first))
    until(lambda: exists(first), "the bucket may be overdrawn")
    answers.same("the second is not", code(client, second))
    code(other, others)
    until(lambda: exists(others), "whoever has no quota is not kept from it")
    answers.same("and nobody says so", (code(client, second), exists(second)))
    client.limit(controller_mutation_rate=1_000_000)
    until(lambda: code(client, second) == "NONE", "there is enough for all")


# Connections


def knock(broker: Broker, source: str = STRANGER) -> socket.socket:
    """A connection that has asked for versions."""
    connection = socket.create_connection(broker.address, timeout=60, source_address=(source, 0))
    connection.sendall(encode_request(VERSIONS, 3, 1, "knocking"))
    return connection


def is_let_in(connection: socket.socket) -> bool:
    try:
        return len(connection.recv(4)) == 4
    except ConnectionResetError:
        return False


@contextmanager
def knocking(broker: Broker, count: int, source: str = STRANGER) -> Iterator[list[bool]]:
    connections = [knock(broker, source) for _ in range(count)]
    try:
        yield [is_let_in(each) for each in connections]
    finally:
        for each in connections:
            each.close()


def test_an_address_opens_no_more_connections_in_a_second_than_its_quota_allows(
    broker: Broker, answers: TestAnswers
) -> None:
    for address in (STRANGER, SCOUT):
        set_quotas(broker, {"ip": address}, {"connection_creation_rate": 1})
    until(lambda: False in first_let_in(broker, 14, SCOUT), "the quotas are in force")
    with knocking(broker, 14) as let_in:
        answers.same("its own", let_in)
    for address in (SCOUT, STRANGER):
        set_quotas(broker, {"ip": address}, {"connection_creation_rate": None})
    until(lambda: False not in first_let_in(broker, 14, SCOUT), "the quotas are gone")
    with knocking(broker, 14) as let_in:
        answers.same("without it", let_in)


def test_an_address_has_a_limit_of_its_own(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    own = fresh_broker({"max.connections.per.ip.overrides": f"{STRANGER}:2,10.0.0.1:1"})
    with knocking(own, 4) as let_in:
        answers.same("two", let_in)
    set_broker_config(own, "max.connections.per.ip.overrides", f"{STRANGER}:3")
    until(lambda: first_let_in(own, 4) == [True, True, True, False], "three are let in")


def first_let_in(broker: Broker, count: int, source: str = STRANGER) -> list[bool]:
    with knocking(broker, count, source) as let_in:
        return let_in


def set_broker_config(broker: Broker, name: str, value: str, node: str = "") -> tuple[int, str | None]:
    config = IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=4, resource_name=node, configs=[config])
    with Wire(broker.address) as wire:
        response: Any = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    [row] = response.responses
    return row.error_code, row.error_message


def test_limits_of_connections_change_at_run_time_as_with_kafka(
    fresh_broker: FreshBroker, answers: TestAnswers
) -> None:
    own = fresh_broker({})
    settings = [
        ("max.connections", "500"),
        ("max.connections", "-1"),
        ("max.connections.per.ip", "400"),
        ("max.connection.creation.rate", "1000"),
        ("max.connection.creation.rate", "fast"),
        ("max.connections.per.ip.overrides", "10.0.0.1:5"),
        ("listener.name.plaintext.max.connections", "300"),
        ("listener.name.plaintext.max.connection.creation.rate", "900"),
        ("quota.window.num", "5"),
    ]
    for name, value in settings:
        for node in ("", "1"):
            code, _ = set_broker_config(own, name, value, node)
            answers.same(f"{name}={value} of {node or 'all'}", ErrorCode(code).name)


# Stock clients


def test_librdkafka_hears_of_throttling(client: Measured, topic: str) -> None:
    create_topic(client.broker, topic)
    heard: list[float] = []
    client.limit(producer_byte_rate=20_000, consumer_byte_rate=20_000)
    common = {"bootstrap.servers": client.broker.bootstrap, "client.id": client.client_id}

    def hear(event: Any) -> None:
        heard.append(event.throttle_time)

    producer = Producer({**common, "linger.ms": 0, "batch.num.messages": 1, "throttle_cb": hear})
    for _ in range(4):
        producer.produce(topic, b"x" * RECORD_BYTES)
        producer.flush(60)
    until(lambda: producer.poll(0.1) >= 0 and any(each > 0 for each in heard), "the producer has heard of it")
    heard.clear()
    consumer = Consumer({**common, "group.id": "g", "fetch.message.max.bytes": RECORD_BYTES, "throttle_cb": hear})
    consumer.assign([ConfluentPartition(topic, 0, 0)])
    read: list[Any] = []

    def has_read_all() -> bool:
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None
            read.append(message)
        return len(read) == 4 and any(each > 0 for each in heard)

    until(has_read_all, "the consumer has all, and has heard of it")
    consumer.close()


@pytest.mark.java
def test_a_java_producer_is_throttled_and_says_so(client: Measured, topic: str) -> None:
    create_topic(client.broker, topic)
    client.limit(producer_byte_rate=100_000)
    properties = (f"bootstrap.servers={client.broker.bootstrap}", f"client.id={client.client_id}")
    done = run_tool(
        *(Tool.PRODUCER_PERFORMANCE, "--topic", topic, "--num-records", "115", "--record-size", "10000"),
        *("--throughput", "-1", "--print-metrics", "--producer-props", *properties),
    )
    [line] = [line for line in done.lines if "produce-throttle-time-max" in line]
    assert float(line.rpartition(":")[2]) > 0, line
