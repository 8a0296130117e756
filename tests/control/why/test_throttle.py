"""Which quotas apply to a client, by Kafka's precedence, and whether it is throttled."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

import pytest

from pykbroker.client.quotas import alter_quotas
from pykbroker.control.why.precedence import precedence
from pykbroker.quotas.entities import ClientQuotaEntity
from pykbroker.quotas.limits import QuotaLimits
from pykbroker.testing import Broker

from .conftest import Clients, eventually


def set_quota(broker: Broker, entity: Iterable[tuple[str, str | None]], **quotas: float) -> None:
    broker.call(alter_quotas, frozenset(entity), quotas, [])


def test_no_quota(broker: Broker, name: str) -> None:
    answer = broker.why.throttle(name)

    assert (answer.reason, answer.quotas) == ("no-quota", ())
    assert answer.verdict == f"No quota applies to client {name} of user ANONYMOUS."


def test_the_quota_that_names_the_client_most_closely_wins() -> None:
    with Broker() as own:
        set_quota(own, [("client-id", "app")], producer_byte_rate=1000)
        set_quota(own, [("user", "ANONYMOUS")], producer_byte_rate=5000)

        answer = own.why.throttle("app")

        (quota,) = answer.quotas
        assert (answer.reason, quota.entity, quota.limit) == ("within-quota", "user ANONYMOUS", 5000)
        assert quota.passed_over == ("client-id app with 1000",)
        assert own.why.throttle("app", user="other").quotas[0].entity == "client-id app"
        assert own.why.throttle("else", user="other").reason == "no-quota"


@pytest.mark.parametrize("client_id", ["app", ""])
def test_the_precedence_is_that_of_the_quotas_themselves(client_id: str) -> None:
    entities: list[ClientQuotaEntity] = precedence("alice", client_id)
    assert len(entities) == (8 if client_id else 2)
    limits = QuotaLimits()
    for limit, entity in reversed(list(enumerate(entities, 1))):
        limits.set(entity, float(limit))
        found = limits.find("alice", client_id)
        assert found is not None
        assert found.limit == limit


def test_a_producer_beyond_its_quota(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    set_quota(broker, [("client-id", name)], producer_byte_rate=10_000)
    producer = clients.producer(client_id=name)
    for _ in range(20):
        producer.produce(topic, b"x" * 50_000)
    producer.poll(0)

    answer = eventually(
        lambda: (producer.poll(0.01), broker.why.throttle(name))[1], lambda it: it.reason == "throttled"
    )

    (quota,) = answer.quotas
    assert quota.rate is not None
    assert quota.rate > 10_000
    assert quota.throttle_ms > 0
    assert f"is throttled by producer_byte_rate of client-id {name}" in answer.verdict
    producer.purge()


def test_a_quota_on_changes_of_the_metadata(broker: Broker, name: str) -> None:
    set_quota(broker, [("client-id", name)], controller_mutation_rate=1)

    answer = broker.why.throttle(name)

    assert [each.key for each in answer.quotas] == ["controller_mutation_rate"]
    assert answer.reason == "within-quota"


def test_a_limit_that_is_none(broker: Broker, name: str) -> None:
    set_quota(broker, [("client-id", name)], request_percentage=math.inf)

    answer = broker.why.throttle(name)

    assert json.loads(json.dumps(answer.to_json(), allow_nan=False))["quotas"][0]["limit"] is None
    assert f"client-id {name}  -  " in str(answer)
