"""Who may ask and push when, and who is remembered; `compat_tests/telemetry` has what Kafka answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import count

import pytest

from pykbroker.long_work import whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.telemetry import GetTelemetrySubscriptionsRequest
from pykbroker.telemetry.client_instances import Client, ClientInstance
from tests.telemetry.pushes import INTERVAL_MS, SOMEBODY, Telemetry, gauge, pushing

ONE, OTHER = b"1" * 16, b"2" * 16
TOO_EARLY = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def test_a_client_without_an_id_gets_one_of_its_own(telemetry: Telemetry) -> None:
    ids = {bytes(telemetry.get(bytes(16)).client_instance_id) for _ in range(50)}
    assert len(ids) == 50
    assert bytes(16) not in ids


def test_a_push_is_taken_once_in_an_interval(telemetry: Telemetry) -> None:
    subscription = telemetry.get(ONE).subscription_id
    assert isinstance(telemetry.check(ONE, subscription), ClientInstance)
    telemetry.now_ms += INTERVAL_MS - 1
    assert telemetry.check(ONE, subscription) == TOO_EARLY
    telemetry.now_ms += 1
    assert isinstance(telemetry.check(ONE, subscription), ClientInstance)
    assert telemetry.clients.counts.throttled == 1


def test_the_shortest_interval_of_all_subscriptions_counts(telemetry: Telemetry) -> None:
    telemetry.subscribe("slow", metrics="a", interval_ms="5000")
    telemetry.subscribe("quick", metrics="b", interval_ms="1000")
    asked = telemetry.get(ONE)
    assert (asked.requested_metrics, asked.push_interval_ms) == (["a", "b"], 1000)


def test_a_subscription_with_patterns_that_re2_has_not_matches_nobody(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry.subscribe("of-kafka\n", metrics="a", match="client_id=some(?=body).*")
    telemetry.subscribe("other", metrics="b")
    assert telemetry.get(ONE).requested_metrics == ["b"]
    assert telemetry.get(OTHER).requested_metrics == ["b"]
    assert [each.getMessage() for each in caplog.records] == [
        "client metrics 'of-kafka\\n' match no client of this broker: "
        "Illegal client matching pattern: client_id=some(?=body).*"
    ]


def test_what_changes_between_two_turns_is_heard_of_with_the_next_request(telemetry: Telemetry) -> None:
    for number in range(3):
        telemetry.subscribe(f"s{number}", metrics=f"m{number}")
    request = GetTelemetrySubscriptionsRequest(client_instance_id=ONE)
    work = telemetry.clients.subscribe(request, SOMEBODY, telemetry.now_ms)
    next(work)
    telemetry.subscribe("s1", metrics=None)
    telemetry.subscribe("s2", metrics="other")
    whole(work)
    assert telemetry.get(ONE).requested_metrics == ["other", "m0"]


def test_long_names_are_cut_and_a_client_without_a_port_matches_no_port(telemetry: Telemetry) -> None:
    telemetry.subscribe("port", metrics="port", match="client_source_port=.*")
    telemetry.subscribe("long", metrics="long", match="client_id=x{256}")
    asked = telemetry.get(ONE, Client("x" * 30_000, "y" * 30_000, "z" * 30_000, "::1", None))
    assert asked.requested_metrics == ["long"]
    found = telemetry.clients.instances.get(ONE)
    assert found is not None
    assert max(map(len, (found.client.client_id, found.client.software_name, found.client.software_version))) == 256


def test_the_client_that_was_heard_of_least_recently_is_forgotten_first() -> None:
    telemetry = Telemetry(most_instances=3)
    ids = [bytes([number]) * 16 for number in range(1, 5)]
    for each in ids[:3]:
        telemetry.get(each)
    telemetry.get(ids[0])  # too early, and heard of
    telemetry.get(ids[3])
    assert len(telemetry.clients.instances) == 3
    assert telemetry.get(ids[0]).error_code == TOO_EARLY
    assert telemetry.get(ids[1]).error_code == ErrorCode.NONE, "it had been forgotten"


def test_a_silent_client_is_forgotten_after_three_intervals_and_a_minute_at_least(telemetry: Telemetry) -> None:
    telemetry.subscribe("quick", metrics="*", interval_ms="100", match="client_id=quick")
    telemetry.get(ONE)
    telemetry.get(OTHER, dataclasses.replace(SOMEBODY, client_id="quick"))
    telemetry.now_ms += 59_999
    telemetry.expire()
    assert len(telemetry.clients.instances) == 2
    telemetry.now_ms += 1
    telemetry.expire()
    assert telemetry.clients.instances.get(OTHER) is None
    telemetry.now_ms += 3 * INTERVAL_MS - 60_000
    telemetry.expire()
    assert len(telemetry.clients.instances) == 0


def test_what_a_client_pushed_is_there_for_two_minutes_after_it_has_left(telemetry: Telemetry) -> None:
    telemetry.subscribe("all", metrics="*")
    telemetry.push(ONE, pushing(gauge("a", 1)))
    telemetry.clients.left(ONE, telemetry.now_ms)
    assert len(telemetry.clients.instances) == 0
    telemetry.now_ms += 119_999
    telemetry.expire()
    assert telemetry.values(ONE) == {"kafka_client_a": 1}
    telemetry.now_ms += 1
    telemetry.expire()
    assert telemetry.values(ONE) == {}
    assert (telemetry.clients.metrics.series_count, telemetry.clients.metrics.size_bytes) == (0, 0)


@pytest.mark.parametrize("most", [1, 10, 100])
def test_no_more_series_are_kept_than_may_be(most: int) -> None:
    telemetry, numbers = Telemetry(most_series=most), count(1)
    telemetry.subscribe("all", metrics="*", interval_ms="100")
    new_id: Callable[[], bytes] = lambda: next(numbers).to_bytes(16, "little")  # noqa: E731
    for _ in range(12):
        telemetry.push(new_id(), pushing(*(gauge(f"m{each}", 1) for each in range(most))))
    metrics = telemetry.clients.metrics
    assert metrics.series_count == most
    assert metrics.left_out > 0
    first = next(iter(metrics.clients))
    telemetry.push(first, pushing(gauge("m0", 2)))
    assert telemetry.values(first) == {"kafka_client_m0": 2}, "who is there goes on"
    telemetry.now_ms += 10 * INTERVAL_MS
    telemetry.expire()
    assert (metrics.series_count, metrics.size_bytes, len(metrics.clients)) == (0, 0, 0)


def test_no_more_bytes_are_kept_than_may_be() -> None:
    telemetry = Telemetry(most_series=100_000)
    telemetry.subscribe("all", metrics="*", interval_ms="100")
    metrics = telemetry.clients.metrics
    metrics._most_bytes = 100_000
    for number in range(20):
        long = {f"label{each}": f"{each}" + "x" * 190 for each in range(16)}
        telemetry.push(
            bytes([number]) * 16 if number else OTHER, pushing(*(gauge(f"m{each}", 1, **long) for each in range(9)))
        )
    assert 50_000 < metrics.size_bytes <= 100_000
