"""Stock clients push to pykbroker: librdkafka and Java's, with Kafka's tools for the subscriptions."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.apache_kafka.tools import Tool, run_tool, tool_command
from compat_tests.brokers import BrokerProcess
from compat_tests.test_api_versions import advertised
from compat_tests.topics import create_topic
from compat_tests.waiting import DEADLINE_S, until
from pykbroker.metrics.catalog import METRICS
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.records.compression import Compression, compress

from .page import Page
from .pushing_client import PushingClient, alter_subscription, counter, gauges

pytestmark = pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")

CLIENT_METRICS_TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
MEBIBYTE = 1 << 20
TOO_EARLY = 89


@pytest.fixture
def client_id(unique: Callable[[str], str]) -> str:
    return unique("client")


@pytest.fixture
def subscription(receiver: BrokerProcess, unique: Callable[[str], str], client_id: str) -> Iterator[str]:
    """All metrics of the test's client, ten times a second."""
    name = unique("subscription")
    alter_subscription(receiver.address, name, metrics="*", interval_ms="100", match=f"client_id={client_id}")
    until(lambda: ApiKey.PUSH_TELEMETRY in advertised(receiver), "clients are offered to push")
    yield name
    alter_subscription(receiver.address, name, metrics=None, interval_ms=None, match=None)


def test_what_librdkafka_pushes_is_shown(
    receiver: BrokerProcess, page: Page, subscription: str, client_id: str, topic: str
) -> None:
    create_topic(receiver, topic)
    common = {"bootstrap.servers": receiver.bootstrap, "client.id": client_id}
    producer = Producer(common)
    consumer = Consumer({**common, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    wanted = {
        "kafka_client_producer_record_queue_time_avg",
        "kafka_client_producer_connection_creation_total",
        "kafka_client_consumer_coordinator_assigned_partitions",
    }

    def are_shown() -> bool:
        producer.produce(topic, b"x")
        producer.poll(0.05)
        consumer.poll(0.05)
        found = page.of_client(client_id)
        return found.keys() >= wanted and any(
            each.value == 1 for each in found["kafka_client_consumer_coordinator_assigned_partitions"]
        )

    until(are_shown, "the page has what the clients push")
    found = page.of_client(client_id)
    [assigned] = found["kafka_client_consumer_coordinator_assigned_partitions"]
    assert assigned.labels["group_id"] == topic
    assert assigned.labels["client_software_name"] == "confluent-kafka-python"
    [of_producer] = found["kafka_client_producer_connection_creation_total"]
    assert of_producer.labels["client_instance_id"] != assigned.labels["client_instance_id"]
    assert producer.flush(DEADLINE_S) == 0
    consumer.close()


@pytest.mark.java
def test_what_javas_clients_push_is_shown(
    receiver: BrokerProcess, page: Page, subscription: str, client_id: str, topic: str
) -> None:
    create_topic(receiver, topic)
    arguments = ("--bootstrap-server", receiver.bootstrap, "--topic", topic)
    of_client = ("--command-property", f"client.id={client_id}")

    def value(name: str) -> float | None:
        """Of the client as a whole, and not of one of its topics."""
        samples = page.of_client(client_id).get(name, ())
        assert all(each.labels["client_software_name"] == "apache-kafka-java" for each in samples)
        return next((each.value for each in samples if "topic" not in each.labels), None)

    sent, consumed = (
        "kafka_client_producer_record_send_total",
        "kafka_client_consumer_fetch_manager_records_consumed_total",
    )
    with running(Tool.CONSOLE_PRODUCER, *arguments, *of_client) as producer:

        def has_shown(name: str) -> bool:
            """What a push says that comes too early is lost, and no later one repeats it."""
            assert producer.stdin is not None
            producer.stdin.write(b"a line\n")
            producer.stdin.flush()
            return (value(name) or 0) > 0

        until(partial(has_shown, sent), "what the producer sends is shown")
        with running(Tool.CONSOLE_CONSUMER, *arguments, *of_client):
            until(partial(has_shown, consumed), "what the consumer reads is shown")
            [sample] = [each for each in page.of_client(client_id)[consumed] if "topic" not in each.labels]
            assert sample.labels["group_id"].startswith("console-consumer-")


@contextmanager
def running(tool: Tool, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A tool of Kafka's until it is no longer needed."""
    command = tool_command(tool, *arguments)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


@pytest.mark.java
def test_kafkas_tools_set_list_describe_and_delete_subscriptions(
    receiver: BrokerProcess, unique: Callable[[str], str]
) -> None:
    name, other = unique("subscription"), unique("other")
    server = ("--bootstrap-server", receiver.bootstrap)

    def client_metrics(*arguments: str) -> str:
        return run_tool(CLIENT_METRICS_TOOL, *server, *arguments).stdout  # type: ignore[arg-type]

    client_metrics(
        *("--alter", "--name", name, "--metrics", "org.apache.kafka.producer.,a", "--interval", "5000"),
        *("--match", "client_id=a.*,client_software_name=b"),
    )
    entity = ("--entity-type", "client-metrics", "--entity-name")
    run_tool(Tool.CONFIGS, *server, "--alter", *entity, other, "--add-config", "interval.ms=1000,metrics=[a,b]")
    until(lambda: {name, other} <= set(client_metrics("--list").split()), "both are listed")
    described = client_metrics("--describe", "--name", name)
    assert "interval.ms=5000" in described
    assert "metrics=org.apache.kafka.producer.,a" in described
    assert "metrics=a,b" in run_tool(Tool.CONFIGS, *server, "--describe", *entity, other).stdout
    for each in (name, other):
        client_metrics("--delete", "--name", each)
    until(lambda: not {name, other} & set(client_metrics("--list").split()), "both are gone")


def test_what_is_refused_is_counted_and_leaves_the_page_as_it_was(
    receiver: BrokerProcess, page: Page, subscription: str, client_id: str
) -> None:
    name = "kafka_server_client_metrics_{}"
    counts = [name.format(each) for each in ("plugin_error_total", "unknown_subscription_request_total")]
    before = [page.value(each) for each in counts]
    with PushingClient(receiver.address, client_id=client_id) as client:
        asked = client.get()
        instance, subscription_id = bytes(asked.client_instance_id), asked.subscription_id
        good = counter("org.apache.kafka.producer.some.total", 5).SerializeToString()
        bomb = compress(Compression.ZSTD, gauges([("a" * 100 * MEBIBYTE, 1, {})]).SerializeToString())
        for metrics, compression, code in ((b"\xff" * 100, 0, 87), (bomb, 4, 87), (good, 0, 0)):
            push = partial(client.push, instance, subscription_id, metrics, compression=compression)
            until(partial(is_answered, push, code), "its time has come")
        [shown] = page.of_client(client_id)["kafka_client_producer_some_total"]
        assert shown.value == 5
        until(lambda: client.push(instance, 1, good) == 117, "its time has come")
    assert [page.value(each) - was for each, was in zip(counts, before, strict=True)] == [2, 1]


def is_answered(push: Callable[[], int], code: int) -> bool:
    """Push once; a push that comes too early is to be repeated, and no other answer than this one is right."""
    found = push()
    assert found in (code, TOO_EARLY)
    return found == code


def test_a_client_that_has_left_is_counted_no_more(receiver: BrokerProcess, page: Page) -> None:
    before = page.value("kafka_server_client_metrics_instance_count")
    with PushingClient(receiver.address) as client:
        client.get()
        assert page.value("kafka_server_client_metrics_instance_count") == before + 1
    until(lambda: page.value("kafka_server_client_metrics_instance_count") == before, "it is forgotten")
    of_telemetry = ("kafka_server_client_metrics_", "pykbroker_client_series")
    expected = {each.shown_name for each in METRICS.values() if each.name.startswith(of_telemetry)}
    shown = {sample.name.removesuffix("_count").removesuffix("_sum") for sample in page.samples()}
    assert {name.removesuffix("_count") for name in expected} <= shown


def test_subscriptions_stay_through_a_restart(receiver: BrokerProcess, subscription: str, client_id: str) -> None:
    receiver.stop()
    receiver.start()

    def asked() -> list[str]:
        with PushingClient(receiver.address, client_id=client_id) as client:
            metrics: list[str] = client.get().requested_metrics
            return metrics

    until(lambda: asked() == ["*"], "the subscription is known")


def test_clients_are_not_asked_where_nothing_is_subscribed_to(receiver: BrokerProcess) -> None:
    """librdkafka logs a line for each client that is asked."""
    asked = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert not asked & advertised(receiver).keys()
    alter_subscription(receiver.address, "all", metrics="*")
    until(lambda: asked <= advertised(receiver).keys(), "clients are asked")
    alter_subscription(receiver.address, "all", metrics=None)
    until(lambda: not asked & advertised(receiver).keys(), "clients are asked no more")
