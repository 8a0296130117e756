"""More live pages than a browser has connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection

import pytest

from .console_broker import ConsoleBroker
from .page import Page
from .topic_records import make_topic

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
