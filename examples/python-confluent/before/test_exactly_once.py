"""Whatever fails in between, a payment is booked once."""

import json
import os
import subprocess
import sys
from pathlib import Path

from before.helpers import read_records, wait_for_lag, wait_for_members
from confluent_kafka import Producer
from payments.models import Payment
from payments.service import ProducerLost

PROJECT = Path(__file__).parents[1]
CRASHING = """
import os, threading
from payments.service import Service
from payments.settings import Settings

Service(Settings.from_environment(os.environ), "0", before_commit=lambda: os._exit(9)).run(threading.Event())
"""
PAYMENTS = [Payment(str(number), f"account-{number % 10}", 100) for number in range(100)]


def booked(records):
    return sorted(int(json.loads(record.value)["id"]) for record in records)


def test_what_a_crash_leaves_is_taken_back_and_done_again(bootstrap_servers, settings, gateway, start):
    gateway.submit(*PAYMENTS)
    variables = {
        "KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "PAYMENTS_PREFIX": settings.prefix,
        "PAYMENTS_SESSION_TIMEOUT_MS": str(settings.session_timeout_ms),
        "PAYMENTS_HEARTBEAT_INTERVAL_MS": str(settings.heartbeat_interval_ms),
    }
    crashed = subprocess.run([sys.executable, "-c", CRASHING], cwd=PROJECT, env=os.environ | variables, timeout=60)
    assert crashed.returncode == 9
    assert read_records(bootstrap_servers, settings.bookings, 1, timeout=2) == []
    assert read_records(bootstrap_servers, settings.bookings, 1, isolation_level="read_uncommitted") != []

    start("0")
    assert booked(read_records(bootstrap_servers, settings.bookings, 100)) == list(range(100))


def test_an_error_in_a_transaction_is_taken_back_and_done_again(bootstrap_servers, settings, gateway, start):
    failures = [ValueError("once"), ValueError("twice")]

    def fail():
        if failures:
            raise failures.pop()

    start(before_commit=fail)
    gateway.submit(*PAYMENTS)
    read_records(bootstrap_servers, settings.bookings, 100)
    wait_for_lag(bootstrap_servers, settings.group, settings.payments)
    assert booked(read_records(bootstrap_servers, settings.bookings, 100)) == list(range(100))
    assert not failures


def test_a_transaction_that_is_aborted_is_not_booked(bootstrap_servers, settings, start):
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "transactional.id": f"{settings.prefix}shop"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(settings.payments, Payment("1", "ada", 500).to_bytes(), b"ada", 0)
    producer.flush()
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(settings.payments, Payment("2", "ada", 700).to_bytes(), b"ada", 0)
    producer.commit_transaction(30)

    start()
    (record,) = read_records(bootstrap_servers, settings.bookings, 1)
    assert json.loads(record.value)["balance"] == 700


def test_an_instance_with_the_id_of_another_fences_it(bootstrap_servers, settings, gateway, start):
    first = start("0")
    gateway.submit(*PAYMENTS[:50])
    read_records(bootstrap_servers, settings.bookings, 50)
    start("0")
    wait_for_members(bootstrap_servers, settings.group, 2)
    gateway.submit(*PAYMENTS[50:])

    read_records(bootstrap_servers, settings.bookings, 100)
    first.join()
    assert isinstance(first.error, ProducerLost)
    assert booked(read_records(bootstrap_servers, settings.bookings, 100)) == list(range(100))
