"""Users and access control lists in the console."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.brokers import pykbroker_command

from .console_broker import USERS, ConsoleBroker, ask
from .page import Page
from .test_console_users import log_in

pytestmark = pytest.mark.chromium

PASSWORD = "never-told-7431"


@pytest.fixture
def page_of_admin(console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]) -> Page:
    page = page_of(console_with_users)
    page.open("/")
    log_in(page, "admin")
    page.heading("Overview")
    return page


def closed(page: Page) -> None:
    page.until(lambda: not page.driver.find_elements("css selector", "dialog"), "page without a dialog")


def everything_written(broker: ConsoleBroker) -> bytes:
    """What the broker has kept in files and in its log."""
    files = (path.read_bytes() for path in Path(broker.directory).rglob("*") if path.is_file())
    return b"".join(files) + broker.log_text().encode()


def test_a_user_is_created_gets_another_password_and_is_deleted(
    console_with_users: ConsoleBroker, page_of_admin: Page
) -> None:
    page = page_of_admin
    page.open("/users").click("Create user")
    page.fill("Name", "carol <b>")
    page.choose("Mechanism", "SCRAM-SHA-256")
    page.fill("Password", PASSWORD)
    page.fill("Password again", "another")
    page.click("Create")
    assert page.failure() == "NOT_CONFIRMED: the two passwords are not the same"
    assert page.barriers() == []
    page.fill("Password again", PASSWORD)
    page.click("Create")
    closed(page)
    (row,) = page.table("Users")
    assert (row["Name"], row["Mechanism"], row["Iterations"]) == ("carol <b>", "SCRAM-SHA-256", "4,096")
    page.click("Change the password of carol <b> (SCRAM-SHA-256)")
    page.fill("Password", f"{PASSWORD}-2")
    page.fill("Password again", f"{PASSWORD}-2")
    page.click("Change")
    closed(page)
    page.sees("The password of carol <b> is changed.")
    assert PASSWORD not in page.driver.page_source
    assert PASSWORD.encode() not in everything_written(console_with_users)
    page.click("Delete carol <b> (SCRAM-SHA-256)")
    page.fill("Type carol <b> to confirm", "carol <b>")
    page.click("Delete the user")
    closed(page)
    assert page.table("Users") == []


def test_delegation_tokens_are_listed_without_their_secrets(
    console_with_users: ConsoleBroker, page_of_admin: Page, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="admin" password="{USERS["admin"]}";\n'
    )
    flags = ["--bootstrap-server", console_with_users.bootstrap, "--command-config", str(config), "--json"]
    command = pykbroker_command("tokens", "create", "--renewer-principal", "User:alice", *flags)
    made = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout)
    page = page_of_admin
    page.open("/users")
    (row,) = page.table("Delegation tokens")
    assert (row["Owner"], row["Made by"], row["Renewed by"]) == ("User:admin", "User:admin", "User:alice")
    assert row["Token id"] in json.dumps(made)
    assert page.barriers() == []
    cookie = page.driver.get_cookies()[0]
    answer = ask(f"{console_with_users.url}/api/tokens", headers={"Cookie": f"{cookie['name']}={cookie['value']}"})
    assert set(answer.json["rows"][0]) == {
        *("token_id", "owner", "requester", "renewers", "issued_ms", "expires_ms", "max_ms")
    }


def test_a_broker_without_delegation_tokens_says_so_below_its_users(page: Page) -> None:
    page.open("/users").table("Users")
    page.sees("DELEGATION_TOKEN_")


def test_an_entry_is_added_found_and_removed(page_of_admin: Page) -> None:
    page = page_of_admin
    for who, permission, name in (("User:alice", "ALLOW", "orders"), ("User:bob", "DENY", "payments")):
        page.open("/acls").click("Add ACL")
        page.fill("Who", who)
        page.choose("May or may not", permission)
        page.choose("Do what", "READ")
        page.fill("Name of the resource", name)
        page.choose("The name is", "PREFIXED")
        page.click("Add")
        closed(page)
    assert page.names_in("ACLs", "Principal") == ["User:alice", "User:bob"]
    page.choose("Permission", "DENY")
    page.until(lambda: page.names_in("ACLs", "Principal") == ["User:bob"], "filtered list")
    page.choose("Permission", "any")
    page.fill("Resource", "orders.eu\t")
    page.until(lambda: page.names_in("ACLs", "Resource") == ["orders"], "entries of a prefix")
    page.click("Remove ALLOW READ of User:alice on TOPIC orders")
    page.fill("Type User:alice to confirm", "User:bob")
    page.click("Remove the entry")
    assert "NOT_CONFIRMED" in page.failure()
    page.fill("Type User:alice to confirm", "User:alice")
    page.click("Remove the entry")
    closed(page)
    page.until(lambda: page.names_in("ACLs", "Principal") == [], "list without the entry")


def test_an_entry_that_the_broker_refuses_says_why(page_of_admin: Page) -> None:
    page = page_of_admin
    page.open("/acls").click("Add ACL")
    page.fill("Who", "alice")
    page.fill("Name of the resource", "orders")
    page.click("Add")
    assert page.failure() == "INVALID_REQUEST: 'principal' is a type and a name, such as User:alice"
    page.fill("Who", "User:alice")
    page.choose("On which type", "CLUSTER")
    assert page.field("Name of the resource").get_attribute("value") == "kafka-cluster"
    page.fill("Name of the resource", "another")
    page.click("Add")
    page.until(lambda: "kafka-cluster" in page.failure(), "the broker's failure")
    page.click("Cancel")


def test_a_broker_without_an_authorizer_says_so(page: Page) -> None:
    page.open("/acls").heading("ACLs")
    page.sees("This broker has no authorizer: everybody may do everything.")
    assert page.failure().startswith("SECURITY_DISABLED: ")


def test_a_user_without_rights_is_told(
    console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(console_with_users)
    page.open("/users")
    log_in(page, "alice")
    assert page.failure().startswith("CLUSTER_AUTHORIZATION_FAILED: ")
    assert page.open("/acls").failure().startswith("CLUSTER_AUTHORIZATION_FAILED: ")


USER = {"user": "x", "mechanism": "SCRAM-SHA-512", "password": PASSWORD}
ENTRY = {
    "principal": "User:x",
    "permission": "ALLOW",
    "operation": "READ",
    "resource_type": "TOPIC",
    "resource_name": "x",
    "pattern_type": "LITERAL",
}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "name"),
    [
        ("PUT", "/users", {}, 400, "INVALID_REQUEST"),
        ("PUT", "/users", USER | {"user": ""}, 400, "INVALID_REQUEST"),
        ("PUT", "/users", USER | {"password": ""}, 400, "INVALID_REQUEST"),
        ("PUT", "/users", USER | {"password": f"{PASSWORD}\n"}, 400, "INVALID_REQUEST"),
        ("PUT", "/users", USER | {"password": PASSWORD * 100}, 400, "INVALID_REQUEST"),
        ("PUT", "/users", USER | {"mechanism": PASSWORD}, 400, "INVALID_REQUEST"),
        ("PUT", "/users", USER | {"iterations": 1}, 400, "INVALID_REQUEST"),
        ("DELETE", "/users", USER | {"confirm": "y"}, 400, "INVALID_REQUEST"),
        ("DELETE", "/users", USER | {"confirm": "x"}, 409, "RESOURCE_NOT_FOUND"),
        ("GET", "/acls?permission=PERHAPS", None, 400, "INVALID_REQUEST"),
        ("GET", "/acls", None, 409, "SECURITY_DISABLED"),
        ("POST", "/acls", ENTRY | {"operation": "ANY"}, 400, "INVALID_REQUEST"),
        ("POST", "/acls", ENTRY | {"pattern_type": "MATCH"}, 400, "INVALID_REQUEST"),
        ("DELETE", "/acls", ENTRY | {"confirm": "User:y"}, 400, "INVALID_REQUEST"),
    ],
)
def test_bad_input_is_one_line_without_the_password(
    console: ConsoleBroker, method: str, path: str, body: object, status: int, name: str
) -> None:
    answer = ask(f"{console.url}/api{path}", method, body)
    assert (answer.status, answer.error) == (status, name), answer.body
    assert PASSWORD.encode() not in answer.body


def test_a_read_only_console_has_no_buttons(
    read_only_console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(read_only_console)
    page.open("/users").table("Users")
    assert not page.has_button("Create user")
    assert ask(f"{read_only_console.url}/api/users", "PUT", USER).error == "READ_ONLY"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_pages_have_no_barriers_and_fit_the_screen(
    console_with_users: ConsoleBroker, page_of_admin: Page, theme: str, is_phone: bool
) -> None:
    page = page_of_admin
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    page.open("/acls").table("ACLs")
    assert (page.barriers(), page.scrolls_sideways()) == ([], False)
    page.click("Add ACL")
    page.field("Who")
    assert page.barriers() == []
    page.open("/users").table("Users")
    assert (page.barriers(), page.scrolls_sideways()) == ([], False)
