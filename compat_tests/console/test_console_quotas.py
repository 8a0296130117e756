"""Quotas in the console: of users, client ids, both, and addresses, by name and as the default."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from selenium.webdriver import Keys

from .console_broker import ConsoleBroker, ask
from .page import Page
from .test_console_users import log_in

pytestmark = pytest.mark.chromium


def closed(page: Page) -> None:
    page.until(lambda: not page.driver.find_elements("css selector", "dialog"), "page without a dialog")


def quotas_of(console: ConsoleBroker, label: str) -> dict[str, str] | None:
    rows = ask(f"{console.url}/api/quotas").json["rows"]
    return next((row["values"] for row in rows if row["label"] == label), None)


def test_quotas_of_a_client_id_of_a_user_are_set_changed_and_removed(console: ConsoleBroker, page: Page) -> None:
    page.open("/quotas").heading("Quotas")
    page.click("Set quotas")
    page.choose("For", "a client id of a user")
    page.fill("User", "alice <b>")
    page.fill("Client id", "reader")
    page.fill("Produced bytes per second", "9007199254740993")
    page.fill("Percentage of request time", "12.5")
    assert page.barriers() == []
    page.click("Set")
    closed(page)
    label = "user alice <b>, client id reader"
    (row,) = [row for row in page.table("Quotas") if row["For"] == label]
    assert row["Request time %"] == "12.5"
    assert row["Fetched B/s"] == "–"
    page.click(f"Change the quotas of {label}")
    page.fill("Percentage of request time", "")
    page.fill("Fetched bytes per second", "2048")
    page.click("Save")
    closed(page)
    values = quotas_of(console, label)
    assert values is not None
    assert set(values) == {"producer_byte_rate", "consumer_byte_rate"}
    page.click(f"Remove the quotas of {label}")
    page.fill(f"Type {label} to confirm", "alice")
    page.click("Remove the quotas")
    assert "NOT_CONFIRMED" in page.failure()
    page.fill(f"Type {label} to confirm", label)
    page.click("Remove the quotas")
    closed(page)
    page.until(lambda: label not in page.names_in("Quotas", "For"), "list without the quota")
    assert quotas_of(console, label) is None


def test_an_empty_name_is_the_default_and_an_address_has_quotas_of_its_own(console: ConsoleBroker, page: Page) -> None:
    page.open("/quotas").click("Set quotas")
    page.choose("For", "a client id")
    page.fill("Fetched bytes per second", "5000")
    page.click("Set")
    closed(page)
    page.click("Set quotas")
    page.choose("For", "an address")
    page.fill("Address", "10.0.0.7")
    page.fill("New connections per second", "5")
    page.click("Set")
    closed(page)
    page.until(lambda: {"default client id", "address 10.0.0.7"} <= set(page.names_in("Quotas", "For")), "both")
    page.choose("For", "an address")
    page.until(lambda: page.names_in("Quotas", "For") == ["address 10.0.0.7"], "filtered list")
    page.reload()
    page.until(lambda: page.names_in("Quotas", "For") == ["address 10.0.0.7"], "the same list")


def test_the_keyboard_alone_sets_a_quota(console: ConsoleBroker, page: Page) -> None:
    page.open("/quotas").heading("Quotas")
    page.tab_to("Set quotas")
    page.type(Keys.ENTER)
    page.tab_to("User")
    page.type("by.keyboard", Keys.TAB, "3000", Keys.ENTER)
    closed(page)
    assert quotas_of(console, "user by.keyboard") == {"producer_byte_rate": "3000"}


SET = {"user": "u", "set": {"producer_byte_rate": "1000"}}


@pytest.mark.parametrize(
    ("method", "body", "status", "name"),
    [
        ("PUT", {}, 400, "INVALID_REQUEST"),
        ("PUT", {"set": {"producer_byte_rate": "1"}}, 400, "INVALID_REQUEST"),
        ("PUT", SET | {"ip": "10.0.0.1"}, 400, "INVALID_REQUEST"),
        ("PUT", SET | {"set": {}}, 400, "INVALID_REQUEST"),
        *(
            ("PUT", SET | {"set": {"producer_byte_rate": text}}, 400, "INVALID_REQUEST")
            for text in ("", "NaN", "inf", "-1", "1_0", "1e999", "9" * 41, "٣", " 1", "0x10")
        ),
        ("PUT", SET | {"set": {"producer_byte_rate": "0"}}, 409, "INVALID_REQUEST"),
        ("PUT", SET | {"set": {"producer_byte_rate": "1.5"}}, 409, "INVALID_REQUEST"),
        ("PUT", SET | {"set": {"no.such.quota": "1"}}, 400, "INVALID_REQUEST"),
        ("PUT", SET | {"set": {"connection_creation_rate": "1"}}, 400, "INVALID_REQUEST"),
        ("PUT", {"ip": "no address", "set": {"connection_creation_rate": "1"}}, 409, "INVALID_REQUEST"),
        ("PUT", SET | {"user": "x" * 1025}, 400, "INVALID_REQUEST"),
        ("DELETE", {"user": "u"}, 400, "INVALID_REQUEST"),
        ("DELETE", {"user": "u", "confirm": "u"}, 400, "INVALID_REQUEST"),
        ("DELETE", {"user": "none", "confirm": "user none"}, 409, "RESOURCE_NOT_FOUND"),
        ("GET", None, 400, "INVALID_REQUEST"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_quotas_are_one_line(console: ConsoleBroker, method: str, body: object, status: int, name: str) -> None:
    query = "?kind=nobody" if method == "GET" else ""
    answer = ask(f"{console.url}/api/quotas{query}", method, body)
    assert (answer.status, answer.error) == (status, name), answer.body
    assert len(answer.json["error"]["message"]) <= 501


def test_a_read_only_console_sets_no_quotas(
    read_only_console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(read_only_console)
    page.open("/quotas").table("Quotas")
    assert not page.has_button("Set quotas")
    for method in ("PUT", "DELETE"):
        assert ask(f"{read_only_console.url}/api/quotas", method, SET | {"confirm": "user u"}).error == "READ_ONLY"


def test_a_user_without_rights_is_told(
    console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(console_with_users)
    page.open("/quotas")
    log_in(page, "alice")
    assert page.failure().startswith("CLUSTER_AUTHORIZATION_FAILED: ")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_quotas_have_no_barriers_and_fit_the_screen(
    console: ConsoleBroker, page: Page, theme: str, is_phone: bool
) -> None:
    who = {"user": "w" * 200, "client_id": "", "set": {"producer_byte_rate": "1e15"}}
    assert ask(f"{console.url}/api/quotas", "PUT", who).status == 200
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    page.open("/quotas").table("Quotas")
    assert (page.barriers(), page.scrolls_sideways()) == ([], False)
    page.click("Set quotas")
    page.field("User")
    assert page.barriers() == []
