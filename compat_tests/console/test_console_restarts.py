"""A page whose broker goes away and comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.ports import take_ports

from .console_broker import ConsoleBroker
from .page import Page
from .topic_records import make_records, make_topic

pytestmark = pytest.mark.chromium


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleBroker]:
    (port,) = take_ports(1)
    broker = ConsoleBroker(tmp_path / "broker", {"console.listener": f"127.0.0.1:{port}"})
    broker.start()
    yield broker
    broker.close()


def test_a_page_says_that_its_broker_is_gone_and_goes_on_when_it_is_back(
    console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(console)
    page.open("/").heading("Overview")
    console.stop()
    assert page.failure() == "NETWORK_EXCEPTION: the broker cannot be reached: is it running?"
    page.click_link("Topics")
    page.until(lambda: page.failure().startswith("NETWORK_EXCEPTION"), "failure of the other page")
    page.back()
    console.start()
    page.until(lambda: not page.driver.find_elements("css selector", "[role=alert]"), "page without a failure")
    page.heading("Overview")


def test_a_live_page_goes_on_when_its_broker_is_back(
    console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    make_topic(console, "live.on")
    page = page_of(console)
    page.open("/topics/live.on/tail").sees("Listening to 1 partition.")
    make_records(console, "live.on", ["before"])
    page.until(lambda: page.names_in("New records", "Value") == ["before"], "record")
    console.stop()
    assert page.failure().startswith("NETWORK_EXCEPTION: ")
    console.start()
    page.until(lambda: not page.driver.find_elements("css selector", "[role=alert]"), "page without a failure")
    make_records(console, "live.on", ["behind"])
    page.until(lambda: page.names_in("New records", "Value") == ["behind", "before"], "record behind")
