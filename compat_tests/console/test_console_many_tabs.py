"""More live pages than a browser has connections, and live pages whose broker goes and comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from compat_tests.ports import take_ports

from .console_broker import ConsoleBroker
from .page import Page
from .topic_records import make_records, make_topic

pytestmark = pytest.mark.chromium

OF_A_BROWSER = 4


@pytest.fixture
def one_tab(page: Page) -> Iterator[Page]:
    """A page whose other tabs are closed at the end."""
    first = page.driver.current_window_handle
    yield page
    for each in page.driver.window_handles:
        if each != first:
            page.driver.switch_to.window(each)
            page.driver.close()
    page.driver.switch_to.window(first)


def test_a_browser_with_many_live_tabs_goes_on_showing_pages(console: ConsoleBroker, one_tab: Page) -> None:
    make_topic(console, "tabs")
    page = one_tab
    tabs = []
    for _ in range(OF_A_BROWSER):
        page.open("/topics/tabs/tail").sees("Listening to 1 partition.")
        tabs.append(page.driver.current_window_handle)
        page.driver.switch_to.new_window("tab")
    page.open("/topics/tabs/tail")
    assert page.failure() == "TOO_MANY_STREAMS: this browser has 4 live pages: close one of them to open another"
    page.open("/topics").heading("Topics")
    last = page.driver.current_window_handle
    page.driver.switch_to.window(tabs[-1])
    page.driver.close()
    page.driver.switch_to.window(last)
    page.open("/topics/tabs/tail").sees("Listening to 1 partition.")


def test_a_thousand_live_pages_are_refused_with_a_line_or_wait(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "thousand")
    with ExitStack() as readers:
        statuses = []
        for number in range(1000):
            reader = readers.enter_context(closing(HTTPConnection(console.url.removeprefix("http://"), timeout=60)))
            reader.request("GET", f"/api/topics/thousand/records/tail?browser=b{number}")
            answer = readers.enter_context(closing(reader.getresponse()))
            statuses.append(answer.status)
            if answer.status != 200:
                assert b"too many live pages" in answer.read()
                answer.close()
        assert statuses.count(200) == 32
        page.open("/topics").heading("Topics")


@pytest.fixture
def fixed_port_console(tmp_path: Path) -> Iterator[ConsoleBroker]:
    (port,) = take_ports(1)
    broker = ConsoleBroker(tmp_path / "broker", {"console.listener": f"127.0.0.1:{port}"})
    broker.start()
    yield broker
    broker.close()


def test_a_live_page_goes_on_when_its_broker_is_back(
    fixed_port_console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    console = fixed_port_console
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
