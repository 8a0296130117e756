"""Pictures of the console for its documentation: `make screenshots` keeps them, other runs throw them away."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .commits import commit
from .console_broker import ConsoleBroker
from .page import Page
from .test_console_groups import address
from .topic_records import make_topic

pytestmark = pytest.mark.chromium

KEPT = os.environ.get("PYKBROKER_SCREENSHOTS")
MOST_BYTES = 150_000
POINTS = 25 if KEPT else 2
"""Of the plots, one in two seconds."""
TOPICS = {"orders": 6, "payments": 6, "shipments": 3, "customers": 3, "page-views": 12, "audit": 1}


@contextmanager
def traffic(console: ConsoleBroker) -> Iterator[None]:
    """Records for all topics, some more in some seconds than in others."""
    over = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": console.bootstrap, "linger.ms": 5})
        rounds = 0
        while not over.wait(0.1):
            rounds += 1
            for at, name in enumerate(TOPICS):
                for number in range(20 + (rounds * (at + 3) // 5) % 30):
                    producer.produce(name, key=str(number), value=b"x" * (100 + 20 * at))
            producer.poll(0)
        producer.flush(60)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def picture(page: Page, name: str, directory: Path) -> None:
    path = directory / f"{name}.png"
    assert page.driver.save_screenshot(str(path))
    assert path.stat().st_size <= MOST_BYTES


def test_pictures_of_the_overview_a_topic_and_a_group(console: ConsoleBroker, page: Page, tmp_path: Path) -> None:
    directory = Path(KEPT or tmp_path)
    directory.mkdir(exist_ok=True)
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    made = admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in TOPICS.items()])
    for each in made.values():
        each.result(timeout=60)
    points = "return document.querySelector('svg.plot .curve')?.points.numberOfItems ?? 0"
    with traffic(console):
        page.open("/").heading("Overview")
        page.until(lambda: page.driver.execute_script(points) >= POINTS, "plot with points", patience_s=120)
        page.until(lambda: page.fact("Topics") == str(len(TOPICS)), "count of topics")
        picture(page, "console-overview", directory)
        page.in_the_dark()
        page.open("/topics/orders").table("Partitions")
        page.until(lambda: page.fact("Offsets in use") != "0", "topic with records")
        picture(page, "console-topic", directory)
        commit(console.bootstrap, "billing", "orders", dict.fromkeys(range(6), 0))
        page.in_the_dark("light")
        page.open(address("billing")).heading("Group billing")
        page.until(lambda: page.driver.execute_script(points) >= POINTS // 5 + 2, "plot with points", patience_s=120)
        picture(page, "console-group", directory)


def test_a_picture_of_records(console: ConsoleBroker, page: Page, tmp_path: Path) -> None:
    directory = Path(KEPT or tmp_path)
    directory.mkdir(exist_ok=True)
    make_topic(console, "invoices", 3)
    began_ms = time.time_ns() // 1_000_000 - 60_000
    for number in range(12):
        document = {
            "invoice": 4200 + number,
            "customer": f"c-{7 * number % 31}",
            "total": 19.9 + number,
            "paid": number % 3 == 0,
        }
        value = bytes(range(number, number + 9)) if number == 9 else json.dumps(document).encode()
        make_record(
            console, "invoices", f"c-{7 * number % 31}", None if number == 6 else value, began_ms + 4321 * number
        )
    page.open("/topics/invoices/records").table("Records")
    page.until(lambda: len(page.table("Records")) == 12, "records")
    picture(page, "console-records", directory)


def make_record(console: ConsoleBroker, topic: str, key: str, value: bytes | None, timestamp_ms: int) -> None:
    producer = Producer({"bootstrap.servers": console.bootstrap, "partitioner": "murmur2_random"})
    producer.produce(topic, key=key, value=value, timestamp=timestamp_ms, headers=[("source", b"shop")])
    assert producer.flush(60) == 0
