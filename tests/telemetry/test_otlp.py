"""What pushes say, read within bounds; hostile ones are left out or refused, and none takes long."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

from pykbroker.telemetry.otlp import read_push
from pykbroker.telemetry.series import SeriesKind
from pykbroker.telemetry.series_names import label_name, series_name
from pykbroker.telemetry.wire_fields import FieldRoom, MalformedPush, length_delimited
from tests.telemetry.pushes import (
    CUMULATIVE,
    Telemetry,
    counter,
    gauge,
    histogram,
    pushing,
    read,
    values,
)

ONE = b"1" * 16


def test_each_kind_of_metric_becomes_a_series_with_labels() -> None:
    data = pushing(
        gauge("org.apache.kafka.producer.request.latency.avg", 1.5, **{"node.id": "3", "client_id": "other"}),
        counter("org.apache.kafka.consumer.connection.creation.total", 7),
        counter("my.level", -7, is_monotonic=False),
        histogram("h", [1, 2], [1, 0, 5], 9.5),
    )
    summary = Metric(name="s")
    summary.summary.data_points.add(count=3, sum=4.5)
    exponential = Metric(name="e")
    exponential.exponential_histogram.data_points.add(count=3, sum=4.5, scale=2)
    data.resource_metrics[0].scope_metrics[0].metrics.extend([summary, exponential, Metric(name="none")])
    data.resource_metrics[0].resource.attributes.add(key="group_id").value.string_value = "g"
    found = {(key.name, key.kind, key.labels): value for key, value in read(data).series.items()}
    group = ("group_id", "g")
    assert {key: (value.number, value.count, value.counts) for key, value in found.items()} == {
        (
            "kafka_client_producer_request_latency_avg",
            SeriesKind.GAUGE,
            (("attribute_client_id", "other"), group, ("node_id", "3")),
        ): (1.5, 0, ()),
        ("kafka_client_consumer_connection_creation", SeriesKind.COUNTER, (group,)): (7, 0, ()),
        ("kafka_client_my_level", SeriesKind.GAUGE, (group,)): (-7, 0, ()),
        ("kafka_client_h", SeriesKind.HISTOGRAM, (group,)): (9.5, 6, (1, 0, 5)),
        ("kafka_client_s", SeriesKind.SUMMARY, (group,)): (4.5, 3, ()),
        ("kafka_client_e", SeriesKind.SUMMARY, (group,)): (4.5, 3, ()),
    }


def test_sums_of_deltas_go_on_and_totals_and_gauges_are_replaced() -> None:
    telemetry = Telemetry()
    telemetry.subscribe("all", metrics="*", interval_ms="100")
    for number in (1, 2, 3):
        telemetry.push(
            ONE,
            pushing(
                counter("delta.total", number),
                counter("whole.total", 10 * number, temporality=CUMULATIVE),
                gauge("level", number),
                histogram("h", [1], [number, 1], number),
            ),
        )
    assert telemetry.values(ONE) == {
        "kafka_client_delta": 6,
        "kafka_client_whole": 30,
        "kafka_client_level": 3,
        "kafka_client_h": 6,
    }
    [counts] = [each.counts for key, each in telemetry.clients.metrics.series_of(ONE).items() if each.counts]
    assert counts == (6, 3)
    telemetry.push(ONE, pushing(histogram("h", [1, 2], [1, 1, 1], 1)))
    assert telemetry.values(ONE) == {"kafka_client_h": 1}, "other buckets begin anew, and what is not pushed is gone"


def test_only_metrics_that_are_asked_for_are_kept() -> None:
    telemetry = Telemetry()
    telemetry.subscribe("some", metrics="org.apache.kafka.producer.,a", interval_ms="100")
    telemetry.push(ONE, pushing(gauge("org.apache.kafka.producer.x", 1), gauge("ab", 2), gauge("b", 3)))
    assert telemetry.values(ONE) == {"kafka_client_producer_x": 1, "kafka_client_ab": 2}


def test_what_nobody_asked_for_is_not_kept() -> None:
    telemetry = Telemetry()
    telemetry.push(ONE, pushing(gauge("a", 1)))
    assert telemetry.clients.metrics.series_count == 0


@pytest.mark.parametrize("number", [-1.0, math.nan, math.inf])
def test_what_is_counted_is_a_number_from_nothing_on(number: float) -> None:
    assert read(pushing(counter("c", number), histogram("h", [1], [1, 1], number))).series == {}
    assert len(read(pushing(gauge("g", number))).series) == 1


@pytest.mark.parametrize(
    ("bounds", "counts"), [([2, 1], [1, 1, 1]), ([1, 1], [1, 1, 1]), ([1], [1, 1, 1]), ([math.nan], [1, 1])]
)
def test_a_histogram_without_sense_is_left_out(bounds: list[float], counts: list[int]) -> None:
    assert read(pushing(histogram("h", bounds, counts, 1))).series == {}


def test_a_histogram_without_buckets_counts_all() -> None:
    metric = Metric(name="h")
    metric.histogram.data_points.add(count=5, sum=2)
    [value] = values(read(pushing(metric))).values()
    assert (value.bounds, value.counts) == ((), (5,))


def test_names_and_labels_are_prometheus_s_and_bounded() -> None:
    assert series_name("org.apache.kafka.a..b-c") == "kafka_client_a_b_c"
    assert series_name("") == "kafka_client_"
    assert series_name("kafka_server_x\n") == "kafka_client_kafka_server_x"
    assert series_name("a.total", is_counter=True) == "kafka_client_a"
    long = [series_name("x" * 400 + end) for end in "ab"]
    assert len(set(long)) == 2
    assert max(map(len, long)) < 200
    assert [label_name(each) for each in ("node.id", "le", "__name__", "9", "")] == [
        "node_id",
        "attribute_le",
        "name",
        "attribute_9",
        "attribute_",
    ]


def test_each_metric_may_have_a_resource_of_its_own_as_javas_clients_do_it() -> None:
    data = MetricsData()
    for number in range(300):
        resource = data.resource_metrics.add()
        resource.resource.attributes.add(key="group_id").value.string_value = f"g{number % 2}"
        resource.scope_metrics.add().metrics.append(gauge(f"m{number}", number))
    found = read(data).series
    assert len(found) == 300
    assert {key.labels for key in found} == {(("group_id", "g0"),), (("group_id", "g1"),)}


def test_a_push_of_more_series_than_have_room_is_cut_and_counted() -> None:
    pushed = read(pushing(*(gauge(f"m{each}", 1) for each in range(30))), most_series=10)
    assert (len(pushed.series), pushed.left_out) == (10, 20)


def test_points_beyond_a_bound_are_left_out_though_they_are_of_one_series() -> None:
    many = [Metric(name=f"m{number}") for number in range(4)]
    for each in many:
        for _ in range(9_000):
            each.gauge.data_points.add(as_double=1)
    pushed = read(pushing(*many))
    assert list(values(pushed)) == ["kafka_client_m0", "kafka_client_m1"]
    assert pushed.left_out == 2


def test_a_metric_that_is_too_large_is_left_out_and_others_are_not() -> None:
    large = Metric(name="large")
    for number in range(10_000):
        large.gauge.data_points.add(as_double=number).attributes.add(key="n").value.int_value = number
    pushed = read(pushing(gauge("before", 1), large, gauge("behind", 1)))
    assert list(values(pushed)) == ["kafka_client_before", "kafka_client_behind"]
    assert pushed.left_out == 1


def field(number: int, content: bytes) -> bytes:
    size, tail = len(content), bytearray()
    while True:
        size, byte = size >> 7, size & 127
        tail.append(byte | (128 if size else 0))
        if not size:
            return bytes([number << 3 | 2]) + bytes(tail) + content


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\0" * 500_000,
        field(1, b"\x12\0" * 500_000),
        field(1, field(2, b"\x12\0" * 500_000)),
        field(1, field(2, field(2, field(1, b"a") + field(5, b"\x0a\0" * 400_000)))),
        field(1, field(1, b"\x0a\0" * 400_000)),
        field(1, b"\x78\0" * 500_000),
    ],
    ids=["resources", "scopes", "metrics", "points", "attributes", "other fields"],
)
def test_a_mebibyte_of_empty_parts_is_read_within_bounds(data: bytes) -> None:
    assert read_push(data, lambda _: True, 1000).series == {}


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 3, b"\x0a\x05ab", b"\x0a", b"\x0f", b"\x00\x00", b"\x0d\0", field(1, field(2, field(2, b"\xff")))],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedPush):
        read_push(data, lambda _: True, 1000)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_push(data, lambda _: True, 1000)
    except MalformedPush:
        pass


@given(st.integers(0, 1 << 32))
def test_a_push_with_any_byte_changed_is_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(pushing(gauge("g", 1, a="b"), counter("c", 1), histogram("h", [1], [1, 1], 1)).SerializeToString())
    data[rng.randrange(len(data))] = rng.randrange(256)
    try:
        read_push(data, lambda _: True, 1000)
    except MalformedPush:
        pass


def test_fields_beyond_the_room_are_not_looked_at() -> None:
    room = FieldRoom(3)
    assert len(list(length_delimited(memoryview(field(1, b"a") * 5), 1, room))) == 3
    assert room.left_out
    assert list(length_delimited(memoryview(field(1, b"a")), 1, room)) == []


@given(st.lists(st.tuples(st.integers(1, 15), st.binary(max_size=300)), max_size=10))
def test_fields_come_out_as_they_went_in(fields: list[tuple[int, bytes]]) -> None:
    data = b"".join(field(number, content) for number, content in fields)
    for wanted in range(1, 16):
        found = [bytes(each) for each in length_delimited(memoryview(data), wanted, FieldRoom())]
        assert found == [content for number, content in fields if number == wanted]


def test_the_fields_that_are_followed_are_those_of_the_declarations() -> None:
    assert MetricsData.DESCRIPTOR.fields_by_name["resource_metrics"].number == 1
    resource = MetricsData.DESCRIPTOR.fields_by_name["resource_metrics"].message_type
    assert (resource.fields_by_name["resource"].number, resource.fields_by_name["scope_metrics"].number) == (1, 2)
    assert resource.fields_by_name["scope_metrics"].message_type.fields_by_name["metrics"].number == 2
