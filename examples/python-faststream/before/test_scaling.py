"""Several instances share the partitions; what nobody has read is lag."""

import pytest
from before.helpers import lag_of, members_of, produce, read_records, wait_for_lag, wait_for_members

pytestmark = pytest.mark.anyio


def an_order(number):
    customer = f"customer-{number % 30}"
    return customer.encode(), {"id": f"{number:03}", "customer": customer, "lines": [{"article": "pen", "quantity": 1}]}


async def test_two_instances_share_the_partitions(bootstrap_servers, settings, shop, start, ledger):
    await start()
    await start()
    await wait_for_members(bootstrap_servers, settings.pricing_group, 2)
    assert sorted(await members_of(bootstrap_servers, settings.pricing_group)) == [1, 2]

    for number in range(60):
        key, order = an_order(number)
        await shop.publish(order, settings.orders, key=key)
    await read_records(bootstrap_servers, settings.priced, 60)
    await wait_for_lag(bootstrap_servers, settings.ledger_group, settings.priced)
    assert ledger.orders() == [f"{number:03}" for number in range(60)]


async def test_one_instance_goes_on_for_the_other(bootstrap_servers, settings, shop, start, ledger):
    first = await start()
    await start()
    await wait_for_members(bootstrap_servers, settings.pricing_group, 2)
    for number in range(30):
        key, order = an_order(number)
        await shop.publish(order, settings.orders, key=key)
    await first.stop()
    for number in range(30, 60):
        key, order = an_order(number)
        await shop.publish(order, settings.orders, key=key)

    await wait_for_members(bootstrap_servers, settings.pricing_group, 1)
    await wait_for_lag(bootstrap_servers, settings.pricing_group, settings.orders)
    await wait_for_lag(bootstrap_servers, settings.ledger_group, settings.priced)
    assert ledger.orders() == [f"{number:03}" for number in range(60)]


async def test_what_nobody_has_read_is_lag(bootstrap_servers, settings, shop, start):
    broker = await start()
    await shop.publish(an_order(0)[1], settings.orders, partition=0)
    await wait_for_lag(bootstrap_servers, settings.pricing_group, settings.orders)
    await broker.stop()

    await produce(bootstrap_servers, settings.orders, b"1", b"2", b"3", partition=0)
    assert await lag_of(bootstrap_servers, settings.pricing_group, settings.orders) == 3
    await start()
    await wait_for_lag(bootstrap_servers, settings.pricing_group, settings.orders)
