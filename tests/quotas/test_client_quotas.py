"""Clients are measured in bounded memory, and throttled by the quota that holds for them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.client_rates import ClientRates
from pykbroker.quotas.connection_rates import UNLIMITED, AddressConnectionRates, ConnectionRate
from pykbroker.quotas.controller_mutations import ControllerMutations
from pykbroker.quotas.entities import ClientQuotaEntity
from pykbroker.quotas.rate import MOST_THROTTLE_MS, QuotaWindows, Rate
from pykbroker.quotas.token_bucket import TokenBucket
from pykbroker.quotas.tracked import TrackedSensors

BOB: ClientQuotaEntity = frozenset({("user", "bob")})
ANY_CLIENT: ClientQuotaEntity = frozenset({("client-id", None)})
WINDOWS = QuotaWindows()


def rates(entity: ClientQuotaEntity, limit: float, **options: int) -> ClientRates:
    found = ClientRates(WINDOWS, **options)
    found.set_limit(entity, limit)
    return found


def test_a_client_over_its_rate_waits_until_the_average_is_back() -> None:
    quota = rates(BOB, 100.0)
    assert quota.record("bob", "c", 1000, 5_000) == 0
    assert quota.record("bob", "d", 500, 5_000) == 5_000, "1,500 units at 100 a second take 15 seconds, 10 have gone by"
    assert quota.record("eve", "c", 10**9, 5_000) == 0, "nothing limits others"
    assert quota.record("bob", "c", 0, 16_000) == 0, "eleven windows later it is forgotten"


def test_what_is_taken_back_does_not_count() -> None:
    quota = rates(BOB, 100.0)
    assert quota.record("bob", "c", 5_000, 0) > 0
    quota.take_back("bob", "c", 5_000, 0)
    quota.take_back("eve", "c", 5_000, 0)
    assert quota.record("bob", "c", 1_000, 0) == 0


def test_what_was_counted_is_told_and_how_often_and_long_clients_were_throttled() -> None:
    quota = rates(BOB, 100.0)
    assert not quota.told(0)
    assert quota.record("bob", "c", 1_000, 0) == 0
    throttled_ms = quota.record("bob", "d", 500, 0), quota.record("bob", "c", 1_000, 0)
    quota.take_back("bob", "c", 1_000, 0)
    quota.record("eve", "c", 1_000, 0)
    (told,) = quota.told(0)
    assert (told.labels, told.total) == (("bob", ""), 1_500)
    assert (told.throttles, told.throttled_ms) == (2, sum(throttled_ms))
    assert not quota.told(3_600_000), "after an hour of rest, as in Kafka"
    quota.set_limit(BOB, None)
    assert not quota.told(0)


@given(st.lists(st.tuples(st.text(max_size=3), st.text("ab\n", max_size=300)), max_size=20))
def test_each_client_that_is_told_of_has_short_labels_of_its_own(clients: list[tuple[str, str]]) -> None:
    quota = rates(frozenset({("user", None), ("client-id", None)}), 100.0)
    for user, client_id in clients:
        quota.record(user, client_id, 1, 0)
    labels = [told.labels for told in quota.told(0)]
    assert len(set(labels)) == len(labels) == len({(user, client_id) for user, client_id in clients if client_id})
    assert all(len(each) < 250 and "\n" not in each for pair in labels for each in pair)


def test_no_more_at_once_than_all_windows_but_one_allow() -> None:
    quota = rates(BOB, 100.0)
    assert quota.most_at_once("bob", "c", 0) == 1_000
    assert quota.most_at_once("eve", "c", 0) == math.inf


def test_a_changed_quota_holds_for_what_was_measured_before_it() -> None:
    quota = rates(BOB, 1000.0)
    assert quota.record("bob", "c", 5_000, 0) == 0
    quota.set_limit(BOB, 100.0)
    assert quota.record("bob", "c", 0, 0) == 40_000
    quota.set_limit(BOB, None)
    assert not quota.is_set
    assert (quota.record("bob", "c", 10**9, 0), quota.tracked_count) == (0, 0)


def test_a_throttle_time_has_a_longest_value() -> None:
    assert rates(BOB, 0.001).record("bob", "c", 1e12, 0) == MOST_THROTTLE_MS
    assert rates(BOB, 1.0, most_throttle_ms=1000).record("bob", "c", 1e6, 0) == 1000


def test_a_limit_of_nothing_is_no_division_by_zero() -> None:
    rate, bucket = Rate(WINDOWS), TokenBucket(WINDOWS)
    rate.record(1, 0)
    bucket.take(1, 0.0, 0)
    assert rate.throttle_ms(0.0, 0) == bucket.throttle_ms(0.0, 0) == MOST_THROTTLE_MS


def test_memory_is_bounded_however_many_client_ids_there_are() -> None:
    quota = rates(ANY_CLIENT, 10.0, most_clients=100)
    quota.record("bob", "steady", 1_000, 0)
    for number in range(1_000):
        quota.record("bob", f"client {number}", 1.0, number)
        if not number % 50:
            quota.record("bob", "steady", 0.0, number)
    assert quota.tracked_count <= 100
    assert quota.record("bob", "steady", 0.0, 1_000) > 0, "who is active keeps its rate"


def test_a_long_client_id_is_kept_as_its_digest() -> None:
    quota = rates(ANY_CLIENT, 10.0)
    long = "x" * 30_000
    assert quota.record("bob", long, 500.0, 0) > 0
    assert quota.record("bob", long, 0.0, 0) > 0
    assert quota.record("bob", long + "y", 0.0, 0) == 0
    kept = quota._clients
    assert not kept._remembered
    assert all(len(name) <= 256 for scope in kept._sensors._sensors for name in scope)


def test_a_sensor_goes_after_an_hour_of_rest() -> None:
    sensors: TrackedSensors[str, ConnectionRate] = TrackedSensors(lambda: ConnectionRate(WINDOWS))
    old = sensors.get("old", 0)
    sensors.get("younger", 3_000_000)
    sensors.get("new", 3_600_000)
    assert len(sensors) == 2
    assert sensors.get("old", 3_600_001) is not old


def test_only_what_is_set_is_set() -> None:
    quotas = ClientQuotas(WINDOWS, WINDOWS)
    assert not quotas.is_set
    quotas.change(BOB, {"producer_byte_rate": 5.0, "nonsense": 1.0})
    assert (quotas.is_set, quotas.produce.is_set, quotas.fetch.is_set) == (True, True, False)
    quotas.change(BOB, {"consumer_byte_rate": 5.0, "controller_mutation_rate": 1.0, "request_percentage": 1.0})
    assert (quotas.produce.is_set, quotas.fetch.is_set, quotas.request.is_set) == (False, True, True)
    assert quotas.mutations.is_set
    quotas.change(BOB, None)
    assert not quotas.is_set
    quotas.change(frozenset({("ip", "10.0.0.1")}), {"connection_creation_rate": 1.0})
    assert not quotas.is_set


def mutations(limit: float) -> ControllerMutations:
    found = ControllerMutations(WINDOWS)
    found.set_limit(BOB, limit)
    return found


def test_a_strict_request_may_overdraw_once_and_is_refused_then() -> None:
    quotas = mutations(1.0)
    first = quotas.quota_of("bob", "c", 0, is_strict=True)
    assert first is not None
    assert first.admits(12, 0), "the bucket holds 11"
    assert first.throttle_ms(0) == 0
    assert not first.admits(1, 0)
    assert first.throttle_ms(0) == 1_000
    assert first.throttle_ms(400) == 600
    assert first.throttle_ms(5_000) == 0
    later = quotas.quota_of("bob", "other", 1_000, is_strict=True)
    assert later is not None
    assert later.admits(1, 1_000)


def test_an_older_request_does_all_that_it_asks_for_and_is_throttled() -> None:
    quota = mutations(2.0).quota_of("bob", "c", 0, is_strict=False)
    assert quota is not None
    assert quota.admits(22, 0)
    assert quota.throttle_ms(0) == 0
    assert quota.admits(10, 0)
    assert quota.throttle_ms(0) == 5_000


@pytest.mark.parametrize(("is_strict", "counted"), [(True, 12), (False, 15)])
def test_a_request_is_told_of_as_throttled_once(is_strict: bool, counted: int) -> None:
    quotas = mutations(1.0)
    quota = quotas.quota_of("bob", "c", 0, is_strict=is_strict)
    assert quota is not None
    for partitions in (12, 2, 1):
        quota.admits(partitions, 0)
    (told,) = quotas.told(0)
    assert (told.total, told.throttles, told.throttled_ms) == (counted, 1, quota.throttle_ms(0))


def test_nobody_else_has_a_quota_of_mutations() -> None:
    assert mutations(1.0).quota_of("eve", "c", 0, is_strict=True) is None


@pytest.mark.parametrize("limit", [1.0, 5.0])
def test_connections_beyond_the_rate_wait_no_longer_than_a_window(limit: float) -> None:
    rate = ConnectionRate(WINDOWS, limit)
    waits = [rate.record(0) for _ in range(int(limit) * 10 + 3)]
    assert waits[: int(limit) * 10] == [0] * int(limit) * 10
    assert all(0 < wait <= 1000 for wait in waits[int(limit) * 10 :])
    assert ConnectionRate(WINDOWS).record(0) == 0


def test_a_refused_connection_of_an_address_does_not_count() -> None:
    rates = AddressConnectionRates(WINDOWS)
    assert not rates.is_set
    rates.set_limit("10.0.0.1", 1.0)
    assert rates.is_set
    assert [rates.record("10.0.0.1", 0) > 0 for _ in range(14)] == [False] * 10 + [True] * 4
    assert rates._tracked.get("10.0.0.1", 0)._rate.measure(0) == 1.0
    assert rates.record("10.0.0.1", 11_000) == 0
    assert rates.record("10.0.0.2", 0) == 0
    rates.set_limit("10.0.0.1", UNLIMITED)
    rates.set_limit(None, 0.1)
    assert rates.record("10.0.0.2", 0) == 0
    assert rates.record("10.0.0.2", 0) > 0
    assert rates.record("10.0.0.1", 0) == 0


def test_addresses_are_tracked_in_bounded_memory() -> None:
    rates = AddressConnectionRates(WINDOWS, most_addresses=10)
    rates.set_limit(None, 1.0)
    for number in range(1_000):
        rates.record(f"10.0.{number // 250}.{number % 250}", number)
    assert len(rates._tracked) <= 10
