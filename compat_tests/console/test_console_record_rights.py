"""Records and users: whoever may not read a topic sees none of its records, by no way."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from .console_broker import USERS, ConsoleBroker, ask
from .event_lines import events_of

TOPIC = "described.by.alice"


@pytest.fixture(scope="module")
def alice(console_with_users: ConsoleBroker) -> dict[str, str]:
    """Headers of alice, who may describe the topic, and nothing else; it has a record."""
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
    servers = {"bootstrap.servers": console_with_users.bootstrap, "sasl.password": USERS["admin"]}
    admin = AdminClient({**servers, **login})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(timeout=60)
    right = AclBinding(
        ResourceType.TOPIC,
        TOPIC,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([right])[right].result(timeout=60)
    url = f"{console_with_users.url}/api/topics/{TOPIC}/records"
    written = ask(url, "POST", {"value": "secret"}, session_of(console_with_users, "admin"))
    assert (written.status, written.json) == (200, {"partition": 0, "offset": "0"})
    return session_of(console_with_users, "alice")


def session_of(console: ConsoleBroker, user: str) -> dict[str, str]:
    answer = ask(f"{console.url}/api/session", "POST", {"user": user, "password": USERS[user]})
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


@pytest.mark.parametrize("path", ["?partition=0", "/0/0", "/0/0/value"])
def test_no_record_is_read_without_the_right(
    console_with_users: ConsoleBroker, alice: dict[str, str], path: str
) -> None:
    answer = ask(f"{console_with_users.url}/api/topics/{TOPIC}/records{path}", headers=alice)
    assert (answer.status, answer.error) == (403, "TOPIC_AUTHORIZATION_FAILED")


@pytest.mark.parametrize(("path", "event"), [("tail", "failure"), ("search?key=k", "done")])
def test_no_stream_has_records_without_the_right(
    console_with_users: ConsoleBroker, alice: dict[str, str], path: str, event: str
) -> None:
    with events_of(console_with_users, f"{TOPIC}/records/{path}", alice) as events:
        found = list(events)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(dict(found)[event])
    assert "secret" not in str(found)


def test_no_record_is_written_without_the_right(console_with_users: ConsoleBroker, alice: dict[str, str]) -> None:
    answer = ask(f"{console_with_users.url}/api/topics/{TOPIC}/records", "POST", {"value": "x"}, alice)
    assert answer.status == 403
    assert answer.error.endswith("_AUTHORIZATION_FAILED")
