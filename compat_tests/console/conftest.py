"""One Chromium for each worker, one broker for each file, and a page that begins anew in every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import Chrome

from compat_tests.conftest import assert_all_went_well

from .chromium import running_chromium
from .console_broker import ConsoleBroker, ConsoleBrokerWithUsers
from .page import Page


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with running_chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    yield from _running(ConsoleBroker(tmp_path_factory.mktemp("console") / "broker"))


@pytest.fixture(scope="module")
def console_with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    yield from _running(ConsoleBrokerWithUsers(tmp_path_factory.mktemp("console") / "broker"))


@pytest.fixture(scope="module")
def read_only_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    yield from _running(ConsoleBroker(tmp_path_factory.mktemp("console") / "broker", {"console.read.only": "true"}))


def _running(broker: ConsoleBroker) -> Iterator[ConsoleBroker]:
    broker.start()
    yield broker
    broker.close()
    assert_all_went_well(broker)


@pytest.fixture
def page_of(chromium: Chrome) -> Iterator[Callable[[ConsoleBroker], Page]]:
    """Opens the console of a broker in Chromium; at the end the browser must have nothing to complain about."""
    pages: list[Page] = []

    def page_of(broker: ConsoleBroker) -> Page:
        page = Page(chromium, broker.url)
        page.as_at_first()
        page.complaints()
        pages.append(page)
        return page

    yield page_of
    complaints = [each for page in pages for each in page.complaints()]
    chromium.get("about:blank")  # what is live ends
    assert not complaints


@pytest.fixture
def page(console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]) -> Page:
    """The console of a broker without users."""
    return page_of(console)
