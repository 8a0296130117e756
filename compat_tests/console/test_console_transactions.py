"""Transactions and producers in the console, and the end of a transaction that hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.transacting import leave_hanging

from .console_broker import ConsoleBroker, ask
from .page import Page
from .test_console_users import log_in

pytestmark = pytest.mark.chromium


def make_topic(console: ConsoleBroker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(timeout=60)


@contextmanager
def open_transaction(console: ConsoleBroker, transactional_id: str, topic: str) -> Iterator[Producer]:
    producer = Producer({"bootstrap.servers": console.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, value="open", partition=0)
    assert producer.flush(60) == 0
    yield producer
    producer.abort_transaction(60)


def test_a_transaction_shows_its_producer_and_partitions(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "transacted")
    with open_transaction(console, "../<i>writer</i>?", "transacted"):
        page.open("/transactions").fill("Filter by transactional id", "<i>\t")
        page.until(lambda: page.names_in("Transactions", "Transactional id") == ["../<i>writer</i>?"], "filtered list")
        page.choose("State", "Ongoing")
        page.click_link("../<i>writer</i>?")
        page.heading("Transaction ../<i>writer</i>?")
        assert page.fact("State") == "Ongoing"
        page.sees("transacted-0")
        producer_id = page.fact("Producer id")
        page.open("/topics/transacted").click_link("Producers")
        (row,) = page.table("Producers")
        assert (row["Producer id"], row["Transaction"]) == (producer_id, "open since offset 0")
        assert not page.has_button(f"Abort the transaction of producer {producer_id}")
        body = {"partition": 0, "producer_id": int(producer_id), "start_offset": 0, "confirm": "transacted-0"}
        answer = ask(f"{console.url}/api/topics/transacted/producers/transaction", "DELETE", body)
        assert (answer.status, answer.error) == (409, "INVALID_TXN_STATE")


def test_a_transaction_that_hangs_is_named_and_aborted(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "hung")
    hanging = leave_hanging(console, "leaver", "hung")
    page.open("/topics/hung/producers").sees("1 transaction here hangs")
    (row,) = page.table("Producers")
    assert (row["Producer id"], row["Transaction"]) == (str(hanging.producer_id), "open since offset 0, hangs")
    page.click(f"Abort the transaction of producer {hanging.producer_id}")
    page.fill("Type hung-0 to confirm", "hung-1")
    page.click("Abort the transaction")
    assert "NOT_CONFIRMED" in page.failure()
    assert page.barriers() == []
    page.fill("Type hung-0 to confirm", "hung-0")
    page.click("Abort the transaction")
    page.until(lambda: [each["Transaction"] for each in page.table("Producers")] == ["–"], "ended transaction")
    page.sees_no("hangs")


def test_a_user_without_rights_is_told(
    console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(console_with_users)
    page.open("/transactions")
    log_in(page, "alice")
    page.sees("There are no transactions that you may see.")
    failure = page.open("/transactions/transaction?id=of.others").failure()
    assert failure.startswith("TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "name"),
    [
        ("GET", "/transaction", None, 400, "INVALID_REQUEST"),
        ("GET", "/transaction?id=never.was", None, 404, "TRANSACTIONAL_ID_NOT_FOUND"),
        ("GET", "/transactions?page=0", None, 400, "INVALID_REQUEST"),
        ("GET", "/topics/no.such.topic/producers", None, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("GET", "/topics/x/producers?partition=-1", None, 400, "INVALID_REQUEST"),
        ("GET", "/topics/x/producers?partition=4294967296", None, 400, "INVALID_REQUEST"),
        ("DELETE", "/topics/x/producers/transaction", {"producer_id": 1, "start_offset": 0}, 400, "INVALID_REQUEST"),
        ("DELETE", "/topics/x/producers/transaction", {"confirm": "x-0"}, 400, "INVALID_REQUEST"),
    ],
)
def test_bad_input_is_one_line(
    console: ConsoleBroker, method: str, path: str, body: object, status: int, name: str
) -> None:
    answer = ask(f"{console.url}/api{path}", method, body)
    assert (answer.status, answer.error) == (status, name), answer.body


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_pages_have_no_barriers_and_fit_the_screen(
    console: ConsoleBroker, page: Page, theme: str, is_phone: bool
) -> None:
    topic = f"barriers.{theme}.{is_phone}.{'x' * 200}"
    make_topic(console, topic)
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    with open_transaction(console, topic, topic):
        for path, caption in (("/transactions", "Transactions"), (f"/topics/{topic}/producers", "Producers")):
            page.open(path).table(caption)
            assert (page.barriers(), page.scrolls_sideways()) == ([], False), path
        page.open(f"/transactions/transaction?id={topic}").sees(f"{topic}-0")
        assert (page.barriers(), page.scrolls_sideways()) == ([], False)
