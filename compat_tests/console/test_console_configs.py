"""Configs of brokers in the console."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .console_broker import USERS, ConsoleBroker, ask
from .page import Page
from .test_console_users import log_in

pytestmark = pytest.mark.chromium

DYNAMIC = "log.cleaner.threads"


def closed(page: Page) -> None:
    page.until(lambda: not page.driver.find_elements("css selector", "dialog"), "page without a dialog")


def config(page: Page, name: str) -> tuple[str, str] | None:
    found = [(row["Value"], row["Source"]) for row in page.table("Configs") if row["Name"].split("\n")[0] == name]
    return found[0] if found else None


def test_a_config_of_a_broker_is_changed_and_given_up(page: Page) -> None:
    page.open("/configs").heading("Configs of broker 1")
    assert config(page, "log.dirs")
    assert config(page, DYNAMIC) is None
    page.tick("Defaults too")
    page.fill("Filter by name", "log.cleaner.thr")
    page.until(lambda: config(page, DYNAMIC) == ("1", "DEFAULT_CONFIG"), "default")
    page.click(f"Change {DYNAMIC}")
    page.fill("Value", "2")
    page.click("Save")
    closed(page)
    assert config(page, DYNAMIC) == ("2", "DYNAMIC_BROKER_CONFIG")
    page.reload()
    page.until(lambda: config(page, DYNAMIC) == ("2", "DYNAMIC_BROKER_CONFIG"), "kept change")
    page.click(f"Change {DYNAMIC}")
    page.tick("Give up this value for the one below it")
    page.click("Save")
    closed(page)
    assert config(page, DYNAMIC) == ("1", "DEFAULT_CONFIG")


def test_a_config_of_all_brokers_is_set(page: Page) -> None:
    page.open("/configs").choose("Of", "All brokers")
    page.heading("Configs of all brokers")
    page.click("Set a config")
    page.fill("Config", DYNAMIC)
    page.fill("Value", "many")
    page.click("Save")
    assert page.failure().startswith(f"INVALID_REQUEST: Invalid value many for configuration {DYNAMIC}")
    page.fill("Value", "2")
    page.click("Save")
    closed(page)
    assert config(page, DYNAMIC) == ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    page.open("/configs?broker=1")
    page.until(lambda: config(page, DYNAMIC) == ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG"), "inherited value")


def test_what_is_read_at_the_start_has_no_button(page: Page) -> None:
    page.open("/configs?broker=1&filter=log.dirs").heading("Configs of broker 1")
    assert page.names_in("Configs", "Change") == ["at the start"]
    assert not page.has_button("Change log.dirs")


def test_a_broker_that_is_not_there_is_named(page: Page) -> None:
    assert "There is no broker 77 (there are: 1)" in page.open("/configs?broker=77").failure()


def test_secrets_are_hidden(console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]) -> None:
    page = page_of(console_with_users)
    page.open("/configs")
    log_in(page, "admin")
    page.heading("Configs of broker 1")
    rows = [row for row in page.table("Configs") if row["Name"].split("\n")[0].endswith("sasl.jaas.config")]
    assert {row["Value"] for row in rows} == {"hidden"}
    assert USERS["admin"] not in page.driver.page_source


def test_a_user_without_rights_is_told(
    console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(console_with_users)
    page.open("/configs")
    log_in(page, "alice")
    assert page.failure().startswith("CLUSTER_AUTHORIZATION_FAILED: ")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "name"),
    [
        ("GET", f"/configs?broker={'1' * 30}", None, 400, "INVALID_REQUEST"),
        ("GET", "/configs?broker=-1", None, 503, "BROKER_NOT_AVAILABLE"),
        ("PUT", "/configs", {"broker": "1"}, 400, "INVALID_REQUEST"),
        ("PUT", "/configs", {"set": {DYNAMIC: "1"}}, 400, "INVALID_REQUEST"),
        ("PUT", "/configs", {"broker": "1", "set": {DYNAMIC: 1}}, 400, "INVALID_REQUEST"),
        ("PUT", "/configs", {"broker": "1", "set": {"node.id": "2"}}, 409, "INVALID_REQUEST"),
    ],
)
def test_bad_input_is_one_line(
    console: ConsoleBroker, method: str, path: str, body: object, status: int, name: str
) -> None:
    answer = ask(f"{console.url}/api{path}", method, body)
    assert (answer.status, answer.error) == (status, name), answer.body
    assert "\n" not in answer.json["error"]["message"]


def test_a_read_only_console_has_no_buttons(
    read_only_console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(read_only_console)
    page.open("/configs").table("Configs")
    assert not page.has_button("Set a config")
    assert "Change" not in page.table("Configs")[0]
    answer = ask(f"{read_only_console.url}/api/configs", "PUT", {"broker": "1", "set": {DYNAMIC: "2"}})
    assert answer.error == "READ_ONLY"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_the_page_has_no_barriers_and_fits_the_screen(page: Page, theme: str, is_phone: bool) -> None:
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    page.open("/configs?changed=false").table("Configs")
    assert (page.barriers(), page.scrolls_sideways()) == ([], False)
    page.click("Set a config")
    page.field("Config")
    assert page.barriers() == []
