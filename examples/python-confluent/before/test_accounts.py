"""The accounts outlive the instances, and go with the partitions from one to another."""

import json

from before.helpers import lag_of, produce, read_records, wait_for_lag, wait_for_members
from payments.models import Payment

ACCOUNTS = [f"account-{number}" for number in range(12)]


def pay_in(gateway, round_number):
    gateway.submit(*(Payment(f"{account}-{round_number}", account, 100) for account in ACCOUNTS))


def balances(records):
    return {record.key.decode(): json.loads(record.value)["balance"] for record in records}


def test_balances_outlive_an_instance(bootstrap_servers, settings, gateway, start):
    first = start("0")
    pay_in(gateway, 1)
    read_records(bootstrap_servers, settings.bookings, 12)
    first.stop()

    start("1")
    pay_in(gateway, 2)
    assert balances(read_records(bootstrap_servers, settings.bookings, 24)) == dict.fromkeys(ACCOUNTS, 200)


def test_an_account_that_is_deleted_begins_anew(bootstrap_servers, settings, gateway, start):
    first = start()
    gateway.submit(Payment("1", "ada", 500))
    read_records(bootstrap_servers, settings.bookings, 1)
    first.stop()
    (account,) = read_records(bootstrap_servers, settings.accounts, 1)
    produce(bootstrap_servers, settings.accounts, None, b"ada", account.partition)

    start()
    gateway.submit(Payment("2", "ada", 10))
    assert balances(read_records(bootstrap_servers, settings.bookings, 2)) == {"ada": 10}


def test_instances_share_the_accounts(bootstrap_servers, settings, gateway, start):
    first, second = start("0"), start("1")
    wait_for_members(bootstrap_servers, settings.group, 2)
    pay_in(gateway, 1)
    pay_in(gateway, 2)

    assert balances(read_records(bootstrap_servers, settings.bookings, 24)) == dict.fromkeys(ACCOUNTS, 200)
    assert sorted([*first.service.partitions(), *second.service.partitions()]) == [0, 1, 2]
    assert first.service.partitions()
    assert second.service.partitions()


def test_accounts_go_to_the_instance_that_stays(bootstrap_servers, settings, gateway, start):
    first, second = start("0"), start("1")
    wait_for_members(bootstrap_servers, settings.group, 2)
    pay_in(gateway, 1)
    first.stop()
    wait_for_members(bootstrap_servers, settings.group, 1)
    pay_in(gateway, 2)

    assert balances(read_records(bootstrap_servers, settings.bookings, 24)) == dict.fromkeys(ACCOUNTS, 200)
    assert second.service.partitions() == [0, 1, 2]


def test_payments_that_wait_are_lag(bootstrap_servers, settings, gateway, start):
    first = start()
    pay_in(gateway, 1)
    wait_for_lag(bootstrap_servers, settings.group, settings.payments)
    first.stop()
    pay_in(gateway, 2)
    assert lag_of(bootstrap_servers, settings.group, settings.payments) == 12

    start()
    wait_for_lag(bootstrap_servers, settings.group, settings.payments)
