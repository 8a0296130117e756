"""What holds a last stable offset: open transactions of stock clients, and one that hangs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from compat_tests.brokers import ExternalBroker
from compat_tests.transacting import leave_hanging
from pykbroker.control.why import by_protocol, lso
from pykbroker.testing import Broker

from .conftest import Clients, eventually


def test_nothing_holds_it(broker: Broker, topic: str) -> None:
    broker.topic(topic).produce(b"a", partition=0)

    answer = broker.why.lso(topic, 0)

    assert answer.reason == "nothing-holds-it"
    assert (answer.last_stable_offset, answer.high_watermark, answer.transactions) == (1, 1, ())


def test_a_partition_that_does_not_exist(broker: Broker, topic: str) -> None:
    assert broker.why.lso(topic, 9).reason == "no-such-partition"


def test_an_open_transaction_is_named_with_its_client_and_its_end(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    broker.topic(topic).produce(b"before", partition=0)
    producer = clients.producer(transactional_id=name, client_id="payments", transaction_timeout_ms=20_000)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"a", partition=0)
    producer.flush(30)

    answer = broker.why.lso(topic, 0)

    (open_one,) = answer.transactions
    assert answer.reason == "open-transaction"
    assert f"stays at 1, 1 before the high watermark: a transaction of {name} (producer" in answer.verdict
    assert "by client payments at 127.0.0.1" in answer.verdict
    assert (open_one.first_offset, open_one.state, open_one.transactional_id) == (1, "Ongoing", name)
    assert (open_one.client_id, open_one.host, open_one.principal) == ("payments", "127.0.0.1", "User:ANONYMOUS")
    assert open_one.ends_in_ms is not None
    assert 0 < open_one.ends_in_ms <= 20_000 == open_one.timeout_ms
    assert open_one.history[-1].api == "InitProducerId"
    assert not open_one.is_hanging

    producer.commit_transaction(30)
    eventually(lambda: broker.why.lso(topic, 0), lambda it: it.reason == "nothing-holds-it")


def test_the_time_out_of_a_transaction_is_in_its_history(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    producer = clients.producer(transactional_id=name, transaction_timeout_ms=1_000, client_id="slow")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"a", partition=0)
    producer.flush(30)
    assert broker.why.lso(topic, 0).reason == "open-transaction"

    eventually(lambda: broker.why.lso(topic, 0), lambda it: it.reason == "nothing-holds-it")


def test_a_hanging_transaction_is_told_with_the_command_that_ends_it() -> None:
    with Broker({"transaction.partition.verification.enable": False}) as own:
        own.create_topic("t")
        hanging = leave_hanging(ExternalBroker(own.bootstrap_servers), "gone", "t")

        answer = own.why.lso("t", 0)

        (open_one,) = answer.transactions
        assert (answer.reason, open_one.producer_id) == ("hanging-transaction", hanging.producer_id)
        assert open_one.is_hanging
        assert "no coordinator will end it" in answer.verdict
        assert open_one.command is not None
        assert f"--start-offset {open_one.first_offset}" in open_one.command

        command = shlex.split(open_one.command.replace("HOST:PORT", own.bootstrap_servers))
        subprocess.run([sys.executable, "-m", *command], check=True, timeout=60)
        assert own.why.lso("t", 0).reason == "nothing-holds-it"


@pytest.mark.parametrize("door", ["control", "protocol"])
def test_a_transaction_that_ends_meanwhile_does_not_hang(
    broker: Broker, clients: Clients, topic: str, name: str, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    producer = clients.producer(transactional_id=name)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"a", partition=0)
    producer.flush(30)

    def end() -> None:
        producer.commit_transaction(30)
        broker.wait_for(topic=topic, records=1)  # its marker is written

    def ending(look: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def ends_first(*args: Any, **options: Any) -> Any:
            await trio.to_thread.run_sync(end)
            return await look(*args, **options)

        return ends_first

    if door == "control":
        monkeypatch.setattr(lso._Coordinators, "of", ending(lso._Coordinators.of))
        assert broker.why.lso(topic, 0).reason == "nothing-holds-it"
    else:
        monkeypatch.setattr(by_protocol, "list_transactions", ending(by_protocol.list_transactions))
        assert broker.call(by_protocol.lso, topic, 0).reason == "nothing-holds-it"


def test_a_timestamp_that_no_calendar_has(broker: Broker, clients: Clients, name: str) -> None:
    topic = broker.create_topic(name, configs={"message.timestamp.after.max.ms": 2**63 - 1})
    producer = clients.producer(transactional_id=name)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"a", timestamp=10**17)
    producer.flush(30)
    assert "has the timestamp 100000000000000000 ms." in str(broker.why.lso(name))
    producer.abort_transaction(30)
