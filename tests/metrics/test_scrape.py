"""What a scrape tells of a broker, after clients have produced, consumed and failed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from compat_tests.waiting import until
from pykbroker.cli.main import main
from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.metric_labels import label
from pykbroker.metrics import scrape as scrapes
from pykbroker.metrics.catalog import METRICS, Kind
from pykbroker.metrics.readings import Readings
from pykbroker.metrics.scrape import Scrapes
from pykbroker.server.runtime.histogram import BOUNDS_MS, Histogram
from pykbroker.testing import Broker, Cluster

from .scraping import OPEN_METRICS, expose, read, scrape

OF_TOPICS = "kafka_server_brokertopicmetrics_"
OF_REQUESTS = "kafka_network_requestmetrics_"
WAIT_S = 60


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"min.insync.replicas": "1"}) as broker:
        yield broker


def produce(bootstrap: str, topic: str, count: int, size: int = 100) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(count):
        producer.produce(topic, b"x" * size)
    assert producer.flush(WAIT_S) == 0


def consume(bootstrap: str, topic: str, count: int, group: str) -> None:
    """Read so many records, and commit what was read."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    read_count = 0
    while read_count < count:
        read_count += len(consumer.consume(count - read_count, WAIT_S))
    consumer.commit(offsets=[TopicPartition(topic, 0, count)], asynchronous=False)
    consumer.close()


def test_traffic_is_counted_by_topic(broker: Broker) -> None:
    broker.create_topic("t")
    broker.create_topic("other")
    produce(broker.bootstrap_servers, "t", 500)
    consume(broker.bootstrap_servers, "t", 500, "g")
    scraped = scrape(broker)
    assert scraped.value(f"{OF_TOPICS}messagesin_total", topic="t") == 500
    assert scraped.value(f"{OF_TOPICS}bytesin_total", topic="t") >= 50_000
    assert scraped.value(f"{OF_TOPICS}bytesout_total", topic="t") >= 50_000
    assert scraped.value(f"{OF_TOPICS}messagesin_total", topic="other") == 0
    assert scraped.value(f"{OF_TOPICS}failedproducerequests_total", topic="t") == 0
    assert scraped.value("kafka_log_log_size", topic="t", partition="0") == scraped.value(
        f"{OF_TOPICS}bytesin_total", topic="t"
    )
    assert scraped.value("kafka_log_log_logendoffset", topic="t", partition="0") == 500
    assert scraped.value("pykbroker_partition_highwatermark", topic="t", partition="0") == 500


def test_a_topic_that_is_deleted_is_forgotten(broker: Broker) -> None:
    topic = broker.create_topic("t")
    produce(broker.bootstrap_servers, "t", 1)
    topic.delete()
    assert scrape(broker).get(f"{OF_TOPICS}messagesin_total", topic="t") is None
    broker.create_topic("t")
    assert scrape(broker).value(f"{OF_TOPICS}messagesin_total", topic="t") == 0


def test_requests_are_counted_by_api_and_version_with_their_times(broker: Broker) -> None:
    broker.create_topic("t")
    produce(broker.bootstrap_servers, "t", 10)
    scraped = scrape(broker)
    produced = sum(
        scraped.value(f"{OF_REQUESTS}requests_total", **labels)
        for labels in scraped.of(f"{OF_REQUESTS}requests_total")
        if labels["request"] == "Produce"
    )
    assert produced >= 1
    for name in ("totaltimems", "localtimems", "responsesendtimems"):
        assert scraped.value(f"{OF_REQUESTS}{name}_count", request="Produce") == produced
        assert scraped.value(f"{OF_REQUESTS}{name}_bucket", request="Produce", le="+Inf") == produced
    parts = ("requestqueuetimems", "localtimems", "remotetimems", "responsequeuetimems", "responsesendtimems")
    total = scraped.value(f"{OF_REQUESTS}totaltimems_sum", request="Produce")
    times = [scraped.get(f"{OF_REQUESTS}{name}_sum", request="Produce") or 0.0 for name in parts]
    assert 0 < total == pytest.approx(sum(times))
    assert scraped.value(f"{OF_REQUESTS}requestbytes_total", request="Produce") > 1000


def test_the_wait_of_a_long_poll_is_remote_time(broker: Broker) -> None:
    broker.create_topic("t")
    wait_for_records(broker, "t")
    scraped = scrape(broker)
    assert scraped.value(f"{OF_REQUESTS}localtimems_sum", request="Fetch") < _waited(broker)


def wait_for_records(broker: Broker, topic: str) -> None:
    """Have a Fetch wait at the end of an empty topic until it is answered."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "fetch.wait.max.ms": 300})
    consumer.assign([TopicPartition(topic, 0, 0)])
    until(lambda: consumer.poll(0.1) or _waited(broker) >= 300, "a Fetch that waited")
    consumer.close()


def _waited(broker: Broker) -> float:
    return scrape(broker).get(f"{OF_REQUESTS}remotetimems_sum", request="Fetch") or 0


def test_the_time_for_which_a_client_is_muted_is_throttle_time(broker: Broker) -> None:
    broker.create_topic("t")
    bootstrap = broker.bootstrap_servers
    limit = ["--alter", "--client-defaults", "--add-config", "producer_byte_rate=1000"]
    assert CliRunner().invoke(main, ["quotas", "--bootstrap-server", bootstrap, *limit]).exit_code == 0
    produce(bootstrap, "t", 100)
    until(lambda: scrape(broker).get(f"{OF_REQUESTS}throttletimems_sum", request="Produce"), "a Produce is throttled")
    scraped = scrape(broker)
    produced = scraped.value(f"{OF_REQUESTS}totaltimems_count", request="Produce")
    assert scraped.value(f"{OF_REQUESTS}throttletimems_count", request="Produce") == produced
    assert scraped.get(f"{OF_REQUESTS}throttletimems_count", request="Metadata") is None


def test_settings_that_cannot_be_taken_are_errors_of_metadata(broker: Broker) -> None:
    name = "kafka_server_broker_metadata_metrics_metadata_{}_error_count"
    assert scrape(broker).value(name.format("apply")) == scrape(broker).value(name.format("load")) == 0
    parts = broker.nodes[0].node.parts  # type: ignore[union-attr]
    assert parts is not None
    image = SimpleNamespace(broker_config=lambda _: {"max.connections": "many"}, client_quotas={})
    changes = SimpleNamespace(configs=[(BROKER_RESOURCE, "1")], client_quotas=())
    quotas: Any = parts.connection_quotas[0]

    async def apply() -> None:
        quotas.apply(1, image, changes)

    broker.running_loop().call(apply)
    scraped = scrape(broker)
    assert scraped.value(name.format("apply")) == 1
    assert scraped.value("kafka_controller_kafkacontroller_metadataerrorcount") == 1


def test_errors_are_counted_by_api_and_name(broker: Broker) -> None:
    topic = broker.create_topic("t", configs={"max.message.bytes": 1000})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    errors: list[str] = []
    producer.produce("t", b"x" * 5000, on_delivery=lambda error, message: errors.append(str(error)))
    producer.flush(WAIT_S)
    assert "size too large" in errors[0]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    with pytest.raises(KafkaException):
        consumer.get_watermark_offsets(TopicPartition("t", 7), WAIT_S)
    consumer.close()
    assert topic.end_offsets() == {0: 0}
    scraped = scrape(broker)
    assert scraped.value(f"{OF_REQUESTS}errors_total", request="Produce", error="MESSAGE_TOO_LARGE") == 1
    assert scraped.value(f"{OF_TOPICS}totalproducerequests_total", topic="t") == 1
    assert all(labels["error"] != "NONE" for labels in scraped.of(f"{OF_REQUESTS}errors_total"))


def test_groups_are_shown_with_their_offsets_and_their_lag(broker: Broker) -> None:
    broker.create_topic("t")
    produce(broker.bootstrap_servers, "t", 100)
    consume(broker.bootstrap_servers, "t", 40, "g\n'\"\x1b")
    scraped = scrape(broker)
    shown = label("g\n'\"\x1b")
    assert shown.isprintable()
    assert scraped.value("pykbroker_group_committed_offset", group=shown, topic="t", partition="0") == 40
    assert scraped.value("pykbroker_group_lag", group=shown, topic="t", partition="0") == 60
    assert scraped.value("pykbroker_group_lag_sum", group=shown) == 60


def test_labels_stay_apart_and_short() -> None:
    first, second = "x" * 100_000 + "1", "x" * 100_000 + "2"
    assert label(first) != label(second)
    assert len(label(first)) < 250
    assert label("\ud800").isprintable()
    assert label("orders") == "orders"
    assert label("a\n") != label(r"a\n")


def test_the_sum_of_many_topics_does_not_fall_when_one_is_deleted() -> None:
    with Broker({"metrics.partitions.max": "2"}) as broker:
        topics = {name: broker.create_topic(name) for name in ("a", "b", "c", "d")}
        for name in topics:
            produce(broker.bootstrap_servers, name, 10)
        assert scrape(broker).value(f"{OF_TOPICS}messagesin_total", topic="") == 40
        topics["a"].delete()
        scraped = scrape(broker)
        assert scraped.value("kafka_server_replicamanager_partitioncount") == 3
        assert scraped.value(f"{OF_TOPICS}messagesin_total", topic="") == 40


def test_partitions_and_groups_beyond_the_bound_are_left_out_and_said_so() -> None:
    with Broker({"metrics.partitions.max": "3", "offsets.topic.num.partitions": "1"}) as broker:
        broker.create_topic("t", partitions=4)
        for number in range(4):
            broker.create_topic(f"other-{number}")
        produce(broker.bootstrap_servers, "t", 10)
        scraped = scrape(broker)
        assert scraped.value("pykbroker_left_out", what="partitions") == 8
        assert scraped.value("pykbroker_left_out", what="topics") == 5
        assert not list(scraped.of("kafka_log_log_size"))
        assert list(scraped.of(f"{OF_TOPICS}messagesin_total")) == [{"topic": ""}]
        assert scraped.value(f"{OF_TOPICS}messagesin_total", topic="") == 10
        assert scraped.value("kafka_server_replicamanager_partitioncount") == 8


def test_a_node_that_is_down_shows_as_under_replicated_partitions() -> None:
    with Cluster(3, {"replica.lag.time.max.ms": "1000", "min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("t", partitions=3)
        produce(cluster.bootstrap_servers, "t", 100)
        assert _sum(cluster, (0, 1, 2), "kafka_server_replicamanager_underreplicatedpartitions") == 0
        replicated = f"{OF_TOPICS}replicationbytesin_total"
        assert sum(scrape(cluster, each).value(replicated, topic="t") for each in range(3)) > 10_000
        cluster.broker(3).kill()
        until(
            lambda: _sum(cluster, (0, 1), "kafka_server_replicamanager_underreplicatedpartitions") >= 3,
            "partitions that miss the third replica",
        )
        scraped = [scrape(cluster, each) for each in (0, 1)]
        assert sum(each.value("kafka_server_replicamanager_atminisrpartitioncount") for each in scraped) >= 3
        assert sum(each.value("kafka_server_replicamanager_underminisrpartitioncount") for each in scraped) == 0
        assert {each.value("kafka_controller_kafkacontroller_fencedbrokercount") for each in scraped} == {1}
        assert sum(each.value("kafka_controller_kafkacontroller_activecontrollercount") for each in scraped) == 1
        for each in scraped:
            for labels in each.of("kafka_cluster_partition_insyncreplicascount"):
                if labels["topic"] == "t":
                    assert each.value("kafka_cluster_partition_insyncreplicascount", **labels) == 2
                    assert each.value("kafka_cluster_partition_replicascount", **labels) == 3


def _sum(cluster: Cluster, numbers: tuple[int, ...], name: str) -> float:
    return sum(scrape(cluster, each).value(name) for each in numbers)


def test_changes_of_in_sync_replicas_are_counted() -> None:
    with Cluster(3, {"replica.lag.time.max.ms": "1000"}) as cluster:
        cluster.create_topic("t", partitions=1)
        produce(cluster.bootstrap_servers, "t", 1)
        leader = next(
            each
            for each in range(3)
            if scrape(cluster, each).get("kafka_cluster_partition_replicascount", topic="t", partition="0")
        )
        other = cluster.broker((leader + 1) % 3 + 1)
        other.kill()
        until(
            lambda: (
                scrape(cluster, leader).get("kafka_cluster_partition_underreplicated", topic="t", partition="0") == 1
            ),
            "a smaller ISR",
        )
        other.start()
        until(
            lambda: scrape(cluster, leader).value("kafka_server_replicamanager_isrexpands_total") >= 1,
            "an ISR that has grown",
        )


def test_all_that_is_shown_stands_in_the_catalog_with_its_type_and_labels(broker: Broker) -> None:
    broker.create_topic("t")
    produce(broker.bootstrap_servers, "t", 10)
    consume(broker.bootstrap_servers, "t", 5, "g")
    broker.create_topic("empty")
    wait_for_records(broker, "empty")
    scraped = scrape(broker)
    of_the_library = ("process_", "python_")
    own = {name: kind for name, kind in scraped.families.items() if not name.startswith(of_the_library)}
    assert own == {name: METRICS[name].kind.value for name in own}
    for name in own:
        metric = METRICS[name]
        suffix = {Kind.COUNTER: "_total", Kind.GAUGE: "", Kind.HISTOGRAM: "_sum", Kind.SUMMARY: "_sum"}[metric.kind]
        for labels in scraped.of(name + suffix):
            assert set(labels) == set(metric.labels), name
    assert {"process_resident_memory_bytes", "python_info", "process_cpu_seconds"} <= scraped.families.keys()
    # Those that need a loop that is watched, a full directory of partitions, requests that wait, clients that push or
    # have a quota, or share groups.
    missing = METRICS.keys() - own.keys()
    assert missing <= {
        "pykbroker_loop_delay_ms",
        "pykbroker_loop_holds",
        "pykbroker_loop_longest_hold_ms",
        "pykbroker_gc_seconds",
        "pykbroker_left_out",
        f"{OF_REQUESTS}errors",
        f"{OF_REQUESTS}requestqueuetimems",
        f"{OF_REQUESTS}responsequeuetimems",
        f"{OF_REQUESTS}throttletimems",
        *(name for name in METRICS if name.startswith(("kafka_server_client_metrics_", "pykbroker_client_series"))),
        *(name for name in METRICS if name.startswith(("kafka_server_sharepartitionmetrics_", "pykbroker_share_p"))),
        *(name for name in METRICS if name.startswith("kafka_server_sharegroupmetrics_deadletterqueue")),
        *(name for name in METRICS if name.startswith("kafka_server_quota_")),
        "kafka_server_sharegroupmetrics_requesttopicpartitionsfetchratio",
        "kafka_server_share_coordinator_metrics_last_pruned_offset",
    }


def test_both_formats_say_the_same(broker: Broker) -> None:
    broker.create_topic("t")
    plain, strict = read(expose(broker, accept=""), strictly=False), read(expose(broker))
    assert plain.samples.keys() == strict.samples.keys()


def test_scrapes_at_once_share_one_reading(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    node = broker.nodes[0].node
    assert node is not None
    readings: list[Readings] = []
    actual = scrapes.read_node

    async def counted(*arguments: object) -> Readings:
        found = await actual(*arguments)  # type: ignore[arg-type]
        readings.append(found)
        return found

    monkeypatch.setattr(scrapes, "read_node", counted)

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            shared = Scrapes(node, lambda: None, nursery)
            bodies: list[bytes] = []

            async def ask(encoding: str) -> None:
                bodies.append((await shared.exposition(OPEN_METRICS, encoding)).body)

            async with trio.open_nursery() as asking:
                for _ in range(5):
                    asking.start_soon(ask, "")
            assert len(readings) == 1
            assert len(set(bodies)) == 1
            await ask("gzip")
            assert len(readings) == 2
            assert bodies[-1][:2] == b"\x1f\x8b"

    broker.running_loop().call(both)


def test_a_scraper_that_leaves_ends_no_scrape_of_others(broker: Broker) -> None:
    node = broker.nodes[0].node
    assert node is not None

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            shared = Scrapes(node, lambda: None, nursery)
            leaving = trio.CancelScope()

            async def leave() -> None:
                with leaving:
                    await shared.exposition(OPEN_METRICS, "")

            nursery.start_soon(leave)
            await trio.lowlevel.checkpoint()
            leaving.cancel()
            assert b"kafka_server_replicamanager_partitioncount" in (await shared.exposition(OPEN_METRICS, "")).body

    broker.running_loop().call(main)


def test_what_fails_is_an_error_of_the_scrape_and_no_end_of_the_node(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = broker.nodes[0].node
    assert node is not None

    async def fails(*arguments: object) -> Readings:
        raise KeyError("a fault in the metrics")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            shared = Scrapes(node, lambda: None, nursery)
            with monkeypatch.context() as patched:
                patched.setattr(scrapes, "read_node", fails)
                with pytest.raises(scrapes.ScrapeFailed):
                    await shared.exposition("", "")
            assert (await shared.exposition("", "")).body

    broker.running_loop().call(main)
    assert "a fault in the metrics" in caplog.text


def test_a_histogram_puts_a_time_below_its_bound() -> None:
    for number, bound_ms in enumerate(BOUNDS_MS):
        histogram = Histogram()
        histogram.record(int(bound_ms * 1e6) - 1)
        histogram.record(int(bound_ms * 1e6))
        assert histogram.counts[number] == 1
        assert histogram.counts[number + 1] == 1
    histogram = Histogram()
    for time_ns in (-5, 0, 1, 10**15):
        histogram.record(time_ns)
    assert (histogram.counts[0], histogram.counts[-1], sum(histogram.counts)) == (3, 1, 4)
    assert math.isclose(BOUNDS_MS[3], 1.0)
    assert histogram.copy().counts == histogram.counts
