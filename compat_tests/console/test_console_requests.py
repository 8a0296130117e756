"""The console's API as pages of other sites, scripts and mistakes meet it."""

from __future__ import annotations

import http.client
import json
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from compat_tests.brokers import pykbroker_command

from .console_broker import USERS, ConsoleBroker, ask, start_and_stop

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": FORM},
        {"Content-Type": "text/plain"},
    ],
    ids=str,
)
def test_a_change_of_another_site_is_refused(console: ConsoleBroker, headers: dict[str, str]) -> None:
    answer = ask(f"{console.url}/api/topics", "POST", {"name": "forged"}, headers)
    assert (answer.status, answer.error) in {(403, "FORBIDDEN"), (415, "FORBIDDEN")}
    assert ask(f"{console.url}/api/topics/forged").status == 404


@pytest.mark.parametrize("missing", ["Origin", "X-Console-Request", "Content-Type"])
def test_a_change_without_what_our_page_sends_is_refused(console: ConsoleBroker, missing: str) -> None:
    headers = {"Origin": console.url, "X-Console-Request": "1", "Content-Type": "application/json"}
    del headers[missing]
    headers.setdefault("Content-Type", FORM)
    answer = ask(f"{console.url}/api/topics", "POST", {"name": "forged"}, headers, as_page=False)
    assert answer.status in (403, 415)
    assert ask(f"{console.url}/api/topics/forged").status == 404


def test_a_page_of_another_site_reads_nothing(console: ConsoleBroker) -> None:
    assert ask(f"{console.url}/api/topics", headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    assert ask(f"{console.url}/api/topics", headers={"Host": "evil.example"}).status == 403


def test_every_answer_has_a_strict_policy(console: ConsoleBroker) -> None:
    for path in ("/", "/static/app.js", "/api/session", "/api/topics/no.such.topic", "/api/nothing"):
        headers = {name.lower(): value for name, value in ask(console.url + path).headers.items()}
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "name"),
    [
        ("GET", "/topics/no.such.topic", None, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("GET", "/topics/no.such.topic/configs", None, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("GET", "/topics?page=0", None, 400, "INVALID_REQUEST"),
        ("GET", "/topics?page=NaN", None, 400, "INVALID_REQUEST"),
        ("GET", "/topics?size=501", None, 400, "INVALID_REQUEST"),
        ("GET", "/topics?sort=colour", None, 400, "INVALID_REQUEST"),
        ("GET", f"/topics?filter={'x' * 250}", None, 400, "INVALID_REQUEST"),
        ("GET", "/nothing", None, 404, "NOT_FOUND"),
        ("PUT", "/topics", {}, 405, "NOT_FOUND"),
        ("POST", "/topics", {}, 400, "INVALID_REQUEST"),
        ("POST", "/topics", b"{", 400, "INVALID_REQUEST"),
        ("POST", "/topics", b"[" * 60_000, 400, "INVALID_REQUEST"),
        *(("POST", "/topics", b'{"x":' * n + b"1" + b"}" * n, 400, "INVALID_REQUEST") for n in range(700, 1001, 20)),
        ("POST", "/topics", [], 400, "INVALID_REQUEST"),
        ("POST", "/topics", {"name": 7}, 400, "INVALID_REQUEST"),
        ("POST", "/topics", {"name": "\ud800"}, 400, "INVALID_REQUEST"),
        ("POST", "/topics", {"name": "x" * 250}, 400, "INVALID_REQUEST"),
        ("POST", "/topics", {"name": "x", "partitions": 10**30}, 400, "INVALID_REQUEST"),
        ("POST", "/topics", {"name": "x", "partitions": 0}, 409, "INVALID_PARTITIONS"),
        ("POST", "/topics", {"name": "x", "replicas": 3}, 409, "INVALID_REPLICATION_FACTOR"),
        ("POST", "/topics", {"name": "x", "configs": {"no.such.config": "1"}}, 409, "INVALID_CONFIG"),
        ("POST", "/topics", {"name": "x" * 70_000}, 413, "REQUEST_TOO_LARGE"),
        ("PUT", "/topics/no.such.topic/configs", {}, 400, "INVALID_REQUEST"),
        ("PUT", "/topics/no.such.topic/partitions", {"partitions": 2}, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("DELETE", "/topics/no.such.topic", {}, 400, "INVALID_REQUEST"),
        ("DELETE", "/topics/no.such.topic", {"confirm": "no.such.topic"}, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("DELETE", "/topics/no.such.topic/records", {"confirm": "no.such.topic"}, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_mistake_is_one_line_with_kafkas_name(
    console: ConsoleBroker, method: str, path: str, body: object, status: int, name: str
) -> None:
    answer = ask(f"{console.url}/api{path}", method, body)
    assert (answer.status, answer.error) == (status, name)
    message = answer.json["error"]["message"]
    assert message
    assert "\n" not in message
    assert len(message) <= 501


@pytest.mark.parametrize("host", ["127.0.0.1:99999", "127.0.0.1:x", "127.0.0.1:", "[::1", "", "a@127.0.0.1", "\x7f"])
@pytest.mark.parametrize("name", ["console", "console_with_users"])
def test_a_strange_host_is_answered(request: pytest.FixtureRequest, name: str, host: str) -> None:
    broker: ConsoleBroker = request.getfixturevalue(name)
    for path in ("/api/session", "/api/topics", "/api/nothing", "/"):
        assert ask(broker.url + path, headers={"Host": host}).status in (200, 400, 401, 403, 404)


def test_internal_topics_are_not_destroyed(console: ConsoleBroker) -> None:
    make_internal_topic(console)
    body = {"confirm": "__consumer_offsets"}
    for path in ("", "/records"):
        answer = ask(f"{console.url}/api/topics/__consumer_offsets{path}", "DELETE", body)
        assert (answer.status, answer.error) == (409, "INVALID_TOPIC_EXCEPTION")
    assert ask(f"{console.url}/api/topics/__consumer_offsets").json["partitions"]["total"] > 0


def test_a_compacted_topic_is_not_purged_and_the_line_says_why(console: ConsoleBroker) -> None:
    body = {"name": "compacted", "partitions": 2, "configs": {"cleanup.policy": "compact"}}
    assert ask(f"{console.url}/api/topics", "POST", body).status == 200
    answer = ask(f"{console.url}/api/topics/compacted/records", "DELETE", {"confirm": "compacted"})
    assert (answer.status, answer.error) == (409, "POLICY_VIOLATION")
    assert "cleanup.policy" in answer.json["error"]["message"]


def make_internal_topic(console: ConsoleBroker) -> None:
    arguments = ["groups", "--bootstrap-server", console.bootstrap, "--describe", "--group", "none"]
    subprocess.run(pykbroker_command(*arguments), capture_output=True, timeout=120, check=False)


def test_a_long_list_comes_in_pages(console: ConsoleBroker) -> None:
    for number in range(7):
        assert ask(f"{console.url}/api/topics", "POST", {"name": f"paged.{number}", "partitions": 1}).status == 200
    pages = [ask(f"{console.url}/api/topics?filter=paged.&size=3&page={page}").json for page in (1, 2, 3, 9)]
    assert [[row["name"][-1] for row in page["rows"]] for page in pages] == [list("012"), list("345"), ["6"], ["6"]]
    assert {(page["pages"], page["total"]) for page in pages} == {(3, 7)}


def test_a_read_only_console_changes_nothing(read_only_console: ConsoleBroker) -> None:
    for method, path in (("POST", "/topics"), ("DELETE", "/topics/x"), ("PUT", "/topics/x/configs")):
        answer = ask(f"{read_only_console.url}/api{path}", method, {"name": "x", "confirm": "x"})
        assert (answer.status, answer.error) == (403, "READ_ONLY")
    assert ask(f"{read_only_console.url}/api/overview").json["topics"] == 0


@pytest.mark.parametrize("allows", [None, "console.read.only=true", "console.allow.changes.without.login=true"])
def test_a_console_for_other_machines_needs_users_or_a_word(tmp_path: Path, allows: str | None) -> None:
    overrides = ["console.listener=0.0.0.0:0", *([allows] if allows else [])]
    code, lines = start_and_stop(tmp_path, overrides)
    if allows:
        assert code == 0, lines
    else:
        assert code == 1
        (line,) = lines
        assert "console.read.only=true" in line


def test_what_a_script_of_ours_sends_is_json(console: ConsoleBroker) -> None:
    answer = ask(f"{console.url}/api/session")
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.body) == {
        "needs_login": False,
        "logs_in_by": [],
        "is_logged_in": True,
        "user": None,
        "is_read_only": False,
    }


def test_wrong_passwords_from_one_address_close_the_log_in_there_alone(console_with_users: ConsoleBroker) -> None:
    def log_in(source: str, password: str) -> int:
        address = urlsplit(console_with_users.url)
        assert address.hostname is not None
        connection = http.client.HTTPConnection(address.hostname, address.port, 60, source_address=(source, 0))
        headers = {"Content-Type": "application/json", "X-Console-Request": "1", "Origin": console_with_users.url}
        try:
            connection.request("POST", "/api/session", json.dumps({"user": "alice", "password": password}), headers)
            return connection.getresponse().status
        finally:
            connection.close()

    assert [log_in("127.0.0.3", "guessed") for _ in range(6)] == [401] * 5 + [429]
    assert log_in("127.0.0.3", USERS["alice"]) == 429
    assert log_in("127.0.0.1", USERS["alice"]) == 200
