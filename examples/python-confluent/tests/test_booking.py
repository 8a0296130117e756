"""A payment is booked, declined, or put aside with a reason."""

import json

import pytest
from payments.models import InvalidPayment, Payment


def statuses(records):
    return [json.loads(record.value)["status"] for record in records]


def test_a_payment_is_booked(kafka_broker, settings, gateway, start):
    start()
    gateway.submit(Payment("1", "ada", 500))

    kafka_broker.wait_for(topic=settings.bookings, records=1)
    (record,) = kafka_broker.topic(settings.bookings).records()
    assert record.key == b"ada"
    assert json.loads(record.value) == {
        "id": "1",
        "account": "ada",
        "amount": 500,
        "status": "booked",
        "balance": 500,
    }


def test_an_account_is_not_overdrawn(kafka_broker, settings, gateway, start):
    start()
    gateway.submit(Payment("1", "ada", 500), Payment("2", "ada", -600), Payment("3", "ada", -500))

    kafka_broker.wait_for(topic=settings.bookings, records=3)
    records = kafka_broker.topic(settings.bookings).records()
    assert statuses(records) == ["booked", "declined", "booked"]
    assert json.loads(records[-1].value)["balance"] == 0


def test_a_payment_that_comes_again_is_not_booked_again(kafka_broker, settings, gateway, start):
    start()
    gateway.submit(Payment("1", "ada", 500))
    gateway.submit(Payment("1", "ada", 500))

    kafka_broker.wait_for(topic=settings.bookings, records=2)
    records = kafka_broker.topic(settings.bookings).records()
    assert statuses(records) == ["booked", "duplicate"]
    assert json.loads(records[-1].value)["balance"] == 500


def test_what_is_no_payment_is_put_aside(kafka_broker, settings, gateway, start):
    start()
    kafka_broker.topic(settings.payments).produce("five euros", partition=1)
    gateway.submit(Payment("1", "ada", 500))

    kafka_broker.wait_for(topic=settings.bookings, records=1)
    kafka_broker.wait_for(topic=settings.dead_letters, records=1)
    (dead,) = kafka_broker.topic(settings.dead_letters).records()
    headers = dict(dead.headers)
    assert headers["reason"] == b"no JSON object with id, account and amount"
    assert headers["origin"] == f"{settings.payments}/1/0".encode()


def test_the_gateway_writes_no_invalid_payment(kafka_broker, settings, gateway):
    with pytest.raises(InvalidPayment, match="amount"):
        gateway.submit(Payment("1", "ada", 500), Payment("2", "ada", 0))
    assert kafka_broker.topic(settings.payments).records() == []


def test_the_payments_of_an_account_stay_in_order(kafka_broker, settings, gateway):
    accounts = ["ada", "bob", "cyd", "dan", "eve", "fay"]
    gateway.submit(*(Payment(f"{account}-{n}", account, 1) for n in range(50) for account in accounts))

    kafka_broker.wait_for(topic=settings.payments, records=300)
    records = kafka_broker.topic(settings.payments).records()
    for account in accounts:
        of_account = [record for record in records if record.key == account.encode()]
        assert len({record.partition for record in of_account}) == 1
        assert [json.loads(record.value)["id"] for record in of_account] == [f"{account}-{n}" for n in range(50)]
    assert len({record.partition for record in records}) > 1
