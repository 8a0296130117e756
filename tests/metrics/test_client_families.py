"""What clients push, on the page: as Prometheus reads it, whatever they call it and however many they are."""

from __future__ import annotations

import dataclasses
from itertools import count

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from pykbroker.metrics.catalog import METRICS
from pykbroker.metrics.client_families import client_families
from pykbroker.metrics.readings import Readings
from pykbroker.metrics.scrape import _Written
from pykbroker.telemetry.series_names import PREFIX
from tests.metrics.scraping import OPEN_METRICS, Scraped, read
from tests.telemetry.pushes import SOMEBODY, Telemetry, counter, gauge, histogram, pushing

ONE, OTHER = b"1" * 16, b"2" * 16
OF_ONE = {
    "client_instance_id": "MTExMTExMTExMTExMTExMQ",
    "client_id": "somebody",
    "client_software_name": "test",
    "client_software_version": "1.0",
}
HOSTILE = 'a"} 1\n# EOF\n\\x\u2028\x1b[2J\x00' + "ü" * 500


def telemetry(most_series: int = 1000) -> Telemetry:
    made = Telemetry(most_series=most_series, most_instances=16_384)
    made.subscribe("all", metrics="*", interval_ms="100")
    return made


def page(pushed: Telemetry, accept: str = OPEN_METRICS) -> str:
    readings = Readings()
    readings.clients = list(pushed.clients.metrics.clients.values())
    encoder, _ = choose_encoder(accept)
    text: bytes = encoder(_Written(readings, CollectorRegistry()))
    return text.decode()


def scraped(pushed: Telemetry) -> Scraped:
    """The page in both formats says the same."""
    found = read(page(pushed))
    assert read(page(pushed, "text/plain"), strictly=False).samples == found.samples
    return found


def test_series_are_shown_with_the_labels_of_their_client() -> None:
    pushed = telemetry()
    pushed.push(
        ONE,
        pushing(
            gauge("org.apache.kafka.producer.request.latency.avg", 1.5, node="1"),
            counter("org.apache.kafka.producer.record.send.total", 7),
            histogram("h", [0.5, 2], [1, 0, 5], 9.5),
        ),
    )
    pushed.push(OTHER, pushing(gauge("org.apache.kafka.producer.request.latency.avg", 2)))
    found = scraped(pushed)
    assert found.families == {
        "kafka_client_producer_request_latency_avg": "gauge",
        "kafka_client_producer_record_send": "counter",
        "kafka_client_h": "histogram",
    }
    assert found.value("kafka_client_producer_request_latency_avg", node="1", **OF_ONE) == 1.5
    assert len(list(found.of("kafka_client_producer_request_latency_avg"))) == 2
    assert found.value("kafka_client_producer_record_send_total", **OF_ONE) == 7
    buckets = [found.value("kafka_client_h_bucket", le=le, **OF_ONE) for le in ("0.5", "2.0", "+Inf")]
    assert buckets == [1, 1, 6]
    assert (found.value("kafka_client_h_count", **OF_ONE), found.value("kafka_client_h_sum", **OF_ONE)) == (6, 9.5)


def test_hostile_names_and_labels_are_lines_of_their_own() -> None:
    pushed = telemetry()
    somebody = dataclasses.replace(SOMEBODY, client_id=HOSTILE, software_name=HOSTILE)
    pushed.push(
        ONE,
        pushing(
            gauge(HOSTILE[:400], 1, **{HOSTILE: HOSTILE, "le": "1", "client_id": "of somebody else"}),
            counter(f"b{HOSTILE[:300]}", 1),
            gauge("", 5),
        ),
        somebody,
    )
    found = scraped(pushed)
    assert len(found.samples) == 3
    shown = page(pushed)
    assert all(line.isprintable() for line in shown.splitlines())
    assert max(map(len, shown.splitlines())) < 2_500
    for name, labels in found.samples:
        assert name.startswith(PREFIX)
        assert dict(labels)["client_instance_id"] == OF_ONE["client_instance_id"]
        assert dict(labels)["client_id"] != "of somebody else"


def test_names_that_want_the_same_samples_do_not_meet() -> None:
    pushed = telemetry()
    pushed.push(ONE, pushing(gauge("x", 1), counter("x", 2), gauge("x.total", 3), gauge("y_count", 4)))
    pushed.push(OTHER, pushing(histogram("y", [1], [1, 1], 5), gauge("x", 6), gauge("x...", 7)))
    found = scraped(pushed)
    assert {
        name: value for (name, labels), value in found.samples.items() if OF_ONE.items() <= dict(labels).items()
    } == {
        "kafka_client_x": 1,
        "kafka_client_x_total": 3,
        "kafka_client_y_count": 4,
    }
    assert [labels["client_instance_id"] for labels in found.of("kafka_client_x")] == [
        OF_ONE["client_instance_id"],
        "MjIyMjIyMjIyMjIyMjIyMg",
    ]


def test_no_metric_of_the_broker_has_a_name_that_a_client_may_take() -> None:
    assert not [name for name in METRICS if name.startswith(PREFIX)]


def test_sixteen_thousand_clients_are_as_many_lines_as_may_be() -> None:
    pushed, numbers = telemetry(most_series=10_000), count(1)
    for _ in range(16_384):
        pushed.push(next(numbers).to_bytes(16, "little"), pushing(gauge("a", 1), gauge("b", 1)))
    families = list(client_families(list(pushed.clients.metrics.clients.values())))
    assert sum(len(family.samples) for family in families) == 10_000
    assert pushed.clients.metrics.left_out == 2 * 16_384 - 10_000
    assert len(pushed.clients.instances) == 16_384
