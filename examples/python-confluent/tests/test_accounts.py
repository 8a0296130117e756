"""The accounts outlive the instances, and go with the partitions from one to another."""

import json

from payments.models import Payment

ACCOUNTS = [f"account-{number}" for number in range(12)]


def pay_in(gateway, round_number):
    gateway.submit(*(Payment(f"{account}-{round_number}", account, 100) for account in ACCOUNTS))


def balances(records):
    return {record.key.decode(): json.loads(record.value)["balance"] for record in records}


def test_balances_outlive_an_instance(kafka_broker, settings, gateway, start):
    first = start("0")
    pay_in(gateway, 1)
    kafka_broker.wait_for(topic=settings.bookings, records=12)
    first.stop()

    start("1")
    pay_in(gateway, 2)
    kafka_broker.wait_for(topic=settings.bookings, records=24)
    assert balances(kafka_broker.topic(settings.bookings).records()) == dict.fromkeys(ACCOUNTS, 200)


def test_an_account_that_is_deleted_begins_anew(kafka_broker, settings, gateway, start):
    first = start()
    gateway.submit(Payment("1", "ada", 500))
    kafka_broker.wait_for(topic=settings.bookings, records=1)
    first.stop()
    (account,) = kafka_broker.topic(settings.accounts).records()
    kafka_broker.topic(settings.accounts).produce(None, key="ada", partition=account.partition)

    start()
    gateway.submit(Payment("2", "ada", 10))
    kafka_broker.wait_for(topic=settings.bookings, records=2)
    assert balances(kafka_broker.topic(settings.bookings).records()) == {"ada": 10}


def test_instances_share_the_accounts(kafka_broker, settings, gateway, start):
    first, second = start("0"), start("1")
    kafka_broker.wait_for(group=settings.group, members=2, state="stable")
    pay_in(gateway, 1)
    pay_in(gateway, 2)

    kafka_broker.wait_for(topic=settings.bookings, records=24)
    assert balances(kafka_broker.topic(settings.bookings).records()) == dict.fromkeys(ACCOUNTS, 200)
    assert sorted([*first.service.partitions(), *second.service.partitions()]) == [0, 1, 2]
    assert first.service.partitions()
    assert second.service.partitions()


def test_accounts_go_to_the_instance_that_stays(kafka_broker, settings, gateway, start):
    first, second = start("0"), start("1")
    kafka_broker.wait_for(group=settings.group, members=2, state="stable")
    pay_in(gateway, 1)
    first.stop()
    kafka_broker.wait_for(group=settings.group, members=1)
    pay_in(gateway, 2)

    kafka_broker.wait_for(topic=settings.bookings, records=24)
    assert balances(kafka_broker.topic(settings.bookings).records()) == dict.fromkeys(ACCOUNTS, 200)
    assert second.service.partitions() == [0, 1, 2]


def test_payments_that_wait_are_lag(kafka_broker, settings, gateway, start):
    first = start()
    pay_in(gateway, 1)
    kafka_broker.wait_for(group=settings.group, lag=0)
    first.stop()
    pay_in(gateway, 2)
    assert kafka_broker.group(settings.group).lag() == 12

    start()
    kafka_broker.wait_for(group=settings.group, lag=0)
