"""Log-in to the console of a broker with users, and what each of them may see and do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .console_broker import USERS, ConsoleBroker, ask
from .page import Page

pytestmark = pytest.mark.chromium


@pytest.fixture
def page(console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]) -> Page:
    return page_of(console_with_users)


def log_in(page: Page, user: str, password: str | None = None) -> None:
    page.fill("User", user)
    page.fill("Password", USERS[user] if password is None else password)
    page.click("Log in")


def test_a_user_of_the_broker_logs_in_and_out(page: Page) -> None:
    page.open("/topics").heading("Log in")
    log_in(page, "admin")
    page.heading("Topics")
    assert page.path == "/topics"
    page.reload()
    page.heading("Topics")
    page.click("Log out")
    page.heading("Log in")
    page.open("/").heading("Log in")


def test_a_wrong_password_is_told_in_one_line(page: Page) -> None:
    page.open("/")
    log_in(page, "alice", "guessed")
    assert page.failure() == "SASL_AUTHENTICATION_FAILED: the broker does not take this name and password"
    assert page.barriers() == []


def test_a_user_without_rights_sees_nothing_and_is_told_what_is_not_allowed(page: Page) -> None:
    page.open("/")
    log_in(page, "admin")
    page.heading("Overview")
    page.open("/topics").click("Create topic")
    page.fill("Name", "of.the.admin")
    page.click("Create")
    page.heading("Topic of.the.admin")
    page.click("Log out")
    page.heading("Log in")
    log_in(page, "alice")
    assert page.failure().startswith("TOPIC_AUTHORIZATION_FAILED: ")
    page.click_link("Topics")
    page.heading("Topics")
    assert page.names_in("Topics") == []
    page.click("Create topic")
    page.fill("Name", "of.alice")
    page.click("Create")
    assert "AUTHORIZATION_FAILED" in page.failure()


def test_the_api_is_closed_without_a_session(console_with_users: ConsoleBroker) -> None:
    answer = ask(f"{console_with_users.url}/api/overview")
    assert (answer.status, answer.error) == (401, "SASL_AUTHENTICATION_FAILED")
    forged = ask(
        f"{console_with_users.url}/api/overview", headers={"Cookie": "pykbroker-console=x; pykbroker-console-1=y"}
    )
    assert forged.status == 401


def test_the_cookie_is_for_this_host_and_no_script(console_with_users: ConsoleBroker) -> None:
    answer = ask(f"{console_with_users.url}/api/session", "POST", {"user": "admin", "password": USERS["admin"]})
    assert answer.status == 200
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert USERS["admin"] not in cookie


def test_guessing_ends_after_some_attempts(console_with_users: ConsoleBroker) -> None:
    url = f"{console_with_users.url}/api/session"
    answers = [ask(url, "POST", {"user": "guessed", "password": f"guess {number}"}) for number in range(6)]
    assert [each.status for each in answers] == [401] * 5 + [429]
    assert answers[-1].error == "TOO_MANY_ATTEMPTS"
    assert int(answers[-1].headers["retry-after"]) > 0
    other = ask(url, "POST", {"user": "admin", "password": USERS["admin"]})
    assert other.status == 200


def test_a_session_that_has_ended_leads_to_the_log_in(page: Page) -> None:
    page.open("/")
    log_in(page, "admin")
    page.heading("Overview")
    page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    page.click_link("Topics")
    page.heading("Log in")
