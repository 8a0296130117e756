"""Priced orders are entered in batches, each of them once."""

from decimal import Decimal

import pytest

pytestmark = pytest.mark.anyio


async def publish_orders(shop, settings, count):
    for number in range(count):
        order = {"id": f"{number:03}", "customer": "ada", "lines": [{"article": "pen", "quantity": 1}]}
        await shop.publish(order, settings.orders, key=b"ada")


async def test_orders_are_entered(kafka, settings, shop, start, ledger):
    await start()
    await publish_orders(shop, settings, 10)

    await kafka.wait_for(topic=settings.priced, records=10)
    await kafka.wait_for(group=settings.ledger_group, lag=0)
    assert ledger.orders() == [f"{number:03}" for number in range(10)]
    assert ledger.turnover("ada") == Decimal("12.00")


async def test_what_has_piled_up_is_entered_in_batches(kafka, settings, shop, start, ledger):
    broker = await start()
    await publish_orders(shop, settings, 60)
    await kafka.wait_for(topic=settings.priced, records=60)
    await kafka.wait_for(group=settings.ledger_group, lag=0)
    await broker.stop()
    seen = len(ledger.batches())

    await rewind(kafka, settings)
    await start()
    await kafka.wait_for(group=settings.ledger_group, lag=0)
    assert sum(ledger.batches()[seen:]) == 60
    assert len(ledger.batches()[seen:]) < 10


async def test_orders_that_come_again_are_entered_once(kafka, settings, shop, start, ledger):
    broker = await start()
    await publish_orders(shop, settings, 10)
    await kafka.wait_for(topic=settings.priced, records=10)
    await kafka.wait_for(group=settings.ledger_group, lag=0)
    await broker.stop()

    await rewind(kafka, settings)
    await start()
    await kafka.wait_for(group=settings.ledger_group, lag=0)
    assert sum(ledger.batches()) == 20
    assert ledger.turnover("ada") == Decimal("12.00")


async def rewind(kafka, settings):
    offsets = {(settings.priced, partition): 0 for partition in range(3)}
    await kafka.group(settings.ledger_group).commit(offsets)
