"""The catalogue fails, instances are stopped and killed: no order is lost."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from orders.ledger import Ledger

PROJECT = Path(__file__).parents[1]
pytestmark = pytest.mark.anyio


def an_order(number):
    return {"id": f"{number:03}", "customer": "ada", "lines": [{"article": "book", "quantity": 1}]}


async def test_an_outage_of_the_catalogue_is_waited_out(kafka, settings, shop, start, catalogue):
    await start()
    catalogue.failures = 2
    for number in range(3):
        await shop.publish(an_order(number), settings.orders, key=b"ada")

    await kafka.wait_for(group=settings.pricing_group, lag=0)
    records = await kafka.topic(settings.priced).records()
    assert [json.loads(record.value)["id"] for record in records] == ["000", "001", "002"]
    assert await kafka.topic(settings.dead_letters).records() == []


async def test_an_order_that_fails_too_often_is_put_aside(kafka, settings, shop, start, catalogue):
    await start()
    catalogue.failures = settings.max_attempts
    for number in range(2):
        await shop.publish(an_order(number), settings.orders, key=b"ada")

    await kafka.wait_for(group=settings.pricing_group, lag=0)
    (dead,) = await kafka.topic(settings.dead_letters).records()
    assert json.loads(dead.value)["id"] == "000"
    assert dict(dead.headers)["reason"] == b"catalogue down, 3 attempts: no answer"
    (priced,) = await kafka.topic(settings.priced).records()
    assert json.loads(priced.value)["id"] == "001"


async def test_a_stopped_instance_has_committed_what_it_has_done(kafka, settings, shop, start):
    broker = await start()
    for number in range(5):
        await shop.publish(an_order(number), settings.orders, key=b"ada")
    await kafka.wait_for(topic=settings.priced, records=5)
    await broker.stop()

    broker = await start()
    await shop.publish(an_order(5), settings.orders, key=b"ada")
    await kafka.wait_for(topic=settings.priced, records=6)
    records = await kafka.topic(settings.priced).records()
    assert [json.loads(record.value)["id"] for record in records] == [f"{number:03}" for number in range(6)]


async def test_a_killed_instance_loses_nothing(kafka, settings, shop, start, ledger, tmp_path):
    (tmp_path / "catalogue.json").write_text('{"book": "12.50"}')
    variables = {
        "KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "ORDERS_PREFIX": settings.prefix,
        "ORDERS_SESSION_TIMEOUT_MS": str(settings.session_timeout_ms),
        "ORDERS_HEARTBEAT_INTERVAL_MS": str(settings.heartbeat_interval_ms),
    }
    command = [sys.executable, "-m", "orders", tmp_path / "catalogue.json", tmp_path / "ledger.db"]
    process = await asyncio.create_subprocess_exec(*command, cwd=PROJECT, env=os.environ | variables)
    for number in range(50):
        await shop.publish(an_order(number), settings.orders, key=b"ada")
    await kafka.wait_for(topic=settings.priced, records=1)
    process.kill()
    await process.wait()
    for number in range(50, 100):
        await shop.publish(an_order(number), settings.orders, key=b"ada")

    await start()
    await kafka.wait_for(group=settings.pricing_group, topic=settings.orders, lag=0)
    await kafka.wait_for(group=settings.ledger_group, topic=settings.priced, lag=0)
    records = await kafka.topic(settings.priced).records()
    assert {json.loads(record.value)["id"] for record in records} == {f"{number:03}" for number in range(100)}
    in_both = ledger.orders() + Ledger(tmp_path / "ledger.db").orders()
    assert set(in_both) == {f"{number:03}" for number in range(100)}
