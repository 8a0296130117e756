"""Priced orders are entered in batches, each of them once."""

from decimal import Decimal

import pytest
from before.helpers import commit_offsets, read_records, wait_for_lag

pytestmark = pytest.mark.anyio


async def publish_orders(shop, settings, count):
    for number in range(count):
        order = {"id": f"{number:03}", "customer": "ada", "lines": [{"article": "pen", "quantity": 1}]}
        await shop.publish(order, settings.orders, key=b"ada")


async def test_orders_are_entered(bootstrap_servers, settings, shop, start, ledger):
    await start()
    await publish_orders(shop, settings, 10)

    await read_records(bootstrap_servers, settings.priced, 10)
    await wait_for_lag(bootstrap_servers, settings.ledger_group, settings.priced)
    assert ledger.orders() == [f"{number:03}" for number in range(10)]
    assert ledger.turnover("ada") == Decimal("12.00")


async def test_what_has_piled_up_is_entered_in_batches(bootstrap_servers, settings, shop, start, ledger):
    broker = await start()
    await publish_orders(shop, settings, 60)
    await read_records(bootstrap_servers, settings.priced, 60)
    await wait_for_lag(bootstrap_servers, settings.ledger_group, settings.priced)
    await broker.stop()
    seen = len(ledger.batches())

    await rewind(bootstrap_servers, settings)
    await start()
    await wait_for_lag(bootstrap_servers, settings.ledger_group, settings.priced)
    assert sum(ledger.batches()[seen:]) == 60
    assert len(ledger.batches()[seen:]) < 10


async def test_orders_that_come_again_are_entered_once(bootstrap_servers, settings, shop, start, ledger):
    broker = await start()
    await publish_orders(shop, settings, 10)
    await read_records(bootstrap_servers, settings.priced, 10)
    await wait_for_lag(bootstrap_servers, settings.ledger_group, settings.priced)
    await broker.stop()

    await rewind(bootstrap_servers, settings)
    await start()
    await wait_for_lag(bootstrap_servers, settings.ledger_group, settings.priced)
    assert sum(ledger.batches()) == 20
    assert ledger.turnover("ada") == Decimal("12.00")


async def rewind(bootstrap_servers, settings):
    offsets = dict.fromkeys(range(3), 0)
    await commit_offsets(bootstrap_servers, settings.ledger_group, settings.priced, offsets)
