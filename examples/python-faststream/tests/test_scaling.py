"""Several instances share the partitions; what nobody has read is lag."""

import pytest

pytestmark = pytest.mark.anyio


def an_order(number):
    customer = f"customer-{number % 30}"
    return customer.encode(), {"id": f"{number:03}", "customer": customer, "lines": [{"article": "pen", "quantity": 1}]}


async def test_two_instances_share_the_partitions(kafka, settings, shop, start, ledger):
    await start()
    await start()
    await kafka.wait_for(group=settings.pricing_group, members=2, state="stable")
    members = await kafka.group(settings.pricing_group).members()
    assert sorted(len(member.partitions) for member in members) == [1, 2]

    for number in range(60):
        key, order = an_order(number)
        await shop.publish(order, settings.orders, key=key)
    await kafka.wait_for(topic=settings.priced, records=60)
    await kafka.wait_for(group=settings.ledger_group, topic=settings.priced, lag=0)
    assert ledger.orders() == [f"{number:03}" for number in range(60)]


async def test_one_instance_goes_on_for_the_other(kafka, settings, shop, start, ledger):
    first = await start()
    await start()
    await kafka.wait_for(group=settings.pricing_group, members=2, state="stable")
    for number in range(30):
        key, order = an_order(number)
        await shop.publish(order, settings.orders, key=key)
    await first.stop()
    for number in range(30, 60):
        key, order = an_order(number)
        await shop.publish(order, settings.orders, key=key)

    await kafka.wait_for(group=settings.pricing_group, members=1, lag=0)
    await kafka.wait_for(group=settings.ledger_group, topic=settings.priced, lag=0)
    assert ledger.orders() == [f"{number:03}" for number in range(60)]


async def test_what_nobody_has_read_is_lag(kafka, settings, shop, start):
    broker = await start()
    await shop.publish(an_order(0)[1], settings.orders, partition=0)
    await kafka.wait_for(group=settings.pricing_group, lag=0)
    await broker.stop()

    await kafka.topic(settings.orders).produce("1", "2", "3", partition=0)
    assert await kafka.group(settings.pricing_group).lag(settings.orders) == 3
    await start()
    await kafka.wait_for(group=settings.pricing_group, lag=0)
