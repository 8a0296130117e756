"""An order is priced, or put aside with a reason."""

import json

import pytest
from before.helpers import read_records, wait_for_lag

pytestmark = pytest.mark.anyio


async def test_an_order_is_priced(bootstrap_servers, settings, shop, start):
    await start()
    order = {"id": "1", "customer": "ada", "lines": [{"article": "book", "quantity": 2}]}
    await shop.publish(order, settings.orders, key=b"ada")

    (record,) = await read_records(bootstrap_servers, settings.priced, 1)
    assert record.key == b"ada"
    priced = json.loads(record.value)
    assert priced["total"] == "25.00"
    assert priced["lines"] == [{"article": "book", "quantity": 2, "price": "12.50"}]


async def test_the_correlation_id_goes_along(bootstrap_servers, settings, shop, start):
    await start()
    order = {"id": "1", "customer": "ada", "lines": [{"article": "pen", "quantity": 1}]}
    await shop.publish(order, settings.orders, key=b"ada", correlation_id="from-the-shop")

    (record,) = await read_records(bootstrap_servers, settings.priced, 1)
    assert dict(record.headers)["correlation_id"] == b"from-the-shop"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"one book, please", b"invalid order: Invalid JSON"),
        ({"id": "1", "lines": [{"article": "book", "quantity": 1}]}, b"invalid customer: Field required"),
        ({"id": "1", "customer": "ada", "lines": [{"article": "book", "quantity": 0}]}, b"invalid lines.0.quantity"),
        ({"id": "1", "customer": "ada", "lines": [{"article": "sword", "quantity": 1}]}, b"no article sword"),
    ],
    ids=["no JSON", "no customer", "no quantity", "no such article"],
)
async def test_an_order_without_a_price_is_put_aside(bootstrap_servers, settings, shop, start, body, reason):
    await start()
    await shop.publish(body, settings.orders, key=b"ada", partition=2)

    (record,) = await read_records(bootstrap_servers, settings.dead_letters, 1)
    assert record.key == b"ada"
    headers = dict(record.headers)
    assert headers["reason"].startswith(reason)
    assert headers["origin"] == f"{settings.orders}/2/0".encode()
    await wait_for_lag(bootstrap_servers, settings.pricing_group, settings.orders)
    assert await read_records(bootstrap_servers, settings.priced, 1, timeout=2) == []


async def test_what_is_put_aside_holds_up_nothing(bootstrap_servers, settings, shop, start):
    await start()
    order = {"id": "2", "customer": "ada", "lines": [{"article": "pen", "quantity": 5}]}
    await shop.publish(b"?", settings.orders, key=b"ada")
    await shop.publish(order, settings.orders, key=b"ada")

    (record,) = await read_records(bootstrap_servers, settings.priced, 1)
    assert json.loads(record.value)["total"] == "6.00"


async def test_the_orders_of_a_customer_stay_in_order(bootstrap_servers, settings, shop, start):
    await start()
    customers = ["ada", "bob", "cyd", "dan", "eve", "fay"]
    for number in range(10):
        for customer in customers:
            order = {"id": f"{customer}-{number}", "customer": customer, "lines": [{"article": "pen", "quantity": 1}]}
            await shop.publish(order, settings.orders, key=customer.encode())

    records = await read_records(bootstrap_servers, settings.priced, 60)
    for customer in customers:
        of_customer = [record for record in records if record.key == customer.encode()]
        assert len({record.partition for record in of_customer}) == 1
        assert [json.loads(record.value)["id"] for record in of_customer] == [f"{customer}-{n}" for n in range(10)]
    assert len({record.partition for record in records}) > 1
