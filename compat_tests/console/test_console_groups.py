"""Groups in the console: listed, looked at, reset and deleted as a person does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .commits import commit
from .console_broker import ConsoleBroker, ask
from .page import Page
from .test_console_users import log_in

pytestmark = pytest.mark.chromium

HOSTILE = "../<b>a/b</b>?&#%41 \u202e"


def make_topic(console: ConsoleBroker, name: str, partitions: int = 1, records: int = 0) -> None:
    """Have a topic whose records, a second apart, are years old and stay."""
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    topic = NewTopic(name, partitions, 1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[name].result(timeout=60)
    producer = Producer({"bootstrap.servers": console.bootstrap})
    for number in range(records):
        for partition in range(partitions):
            producer.produce(name, value=str(number), partition=partition, timestamp=1_700_000_000_000 + number * 1000)
    assert producer.flush(60) == 0


def committed(console: ConsoleBroker, group: str) -> dict[int, int]:
    rows = ask(f"{console.url}/api/group?id={quote(group, safe='')}").json["offsets"]["rows"]
    return {row["partition"]: row["committed"] for row in rows}


@contextmanager
def member(console: ConsoleBroker, group: str, topic: str, protocol: str = "classic") -> Iterator[None]:
    settings = {
        "bootstrap.servers": console.bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "client.id": f"reader of {topic}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        for _ in range(120):
            consumer.poll(0.5)
            if consumer.assignment():
                break
        yield
    finally:
        consumer.close()


def address(group: str) -> str:
    return f"/groups/group?id={quote(group, safe='')}"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shows_who_reads_and_how_far_behind(console: ConsoleBroker, page: Page, protocol: str) -> None:
    topic, group = f"behind.{protocol}", f"readers.{protocol}"
    make_topic(console, topic, 2, records=10)
    commit(console.bootstrap, group, topic, {0: 4, 1: 10})
    with member(console, group, topic, protocol):
        page.open("/groups").fill("Filter by name", group)
        page.until(lambda: page.names_in("Groups") == [group], "filtered list")
        (row,) = page.table("Groups")
        assert (row["Members"], row["Total lag"], row["Type"]) == ("1", "6", protocol)
        page.click_link(group)
        page.heading(f"Group {group}")
        assert page.fact("Total lag") == "6"
        (reader,) = page.table("Members")
        assert (reader["Client"], reader["Reads"]) == (f"reader of {topic}", f"{topic}-0, {topic}-1")
        assert [each["Lag"] for each in page.table("Offsets")] == ["6", "0"]
        assert {each["Read by"] for each in page.table("Offsets")} == {f"reader of {topic}"}
        page.sees("when its members have left")
        assert not page.has_button("Reset offsets")
        plot = "return document.querySelector('svg.plot').getAttribute('aria-label')"
        make_more(console, topic, 5)
        page.until(lambda: "now 11" in page.driver.execute_script(plot), "plot that has moved")
        answer = ask(f"{console.url}/api/group/offsets", "PUT", {"id": group, "offsets": {f"{topic}-0": "0"}})
        assert (answer.status, answer.error) == (409, "NON_EMPTY_GROUP")


def make_more(console: ConsoleBroker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": console.bootstrap})
    for number in range(count):
        producer.produce(topic, value=str(number), partition=1)
    assert producer.flush(60) == 0


def reset(page: Page, to: str, **fields: str) -> list[str]:
    """The new offsets of the plan that is shown then."""
    page.click("Reset offsets")
    page.choose("To", to)
    for label, text in fields.items():
        page.fill({"topic": "Topic", "value": "Offset, or number of records"}[label], text)
    page.click("Show the plan")
    return [row["New"] for row in page.table("Plan")]


def test_offsets_are_reset_after_their_plan_was_shown(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "reset", 2, records=10)
    commit(console.bootstrap, "to.reset", "reset", {0: 4, 1: 9})
    page.open(address("to.reset")).heading("Group to.reset")
    assert reset(page, "the end") == ["10", "10"]
    page.click("Cancel")
    assert committed(console, "to.reset") == {0: 4, 1: 9}
    for to, value, expected in (
        ("the first records", None, {0: 0, 1: 0}),
        ("an offset", "7", {0: 7, 1: 7}),
        ("forward or back by", "-2", {0: 5, 1: 5}),
        ("forward or back by", "1000", {0: 10, 1: 10}),
        ("an offset", "3", {0: 3, 1: 3}),
        ("the end", None, {0: 10, 1: 10}),
    ):
        fields = {} if value is None else {"value": value}
        assert reset(page, to, topic="reset", **fields) == [str(each) for each in expected.values()]
        page.click("Reset")
        page.until(lambda: not page.driver.find_elements("css selector", "dialog"), "page without a dialog")
        assert committed(console, "to.reset") == expected
    page.until(lambda: page.fact("Total lag") == "0", "group without lag")


def test_a_plan_for_a_time_names_the_first_record_from_then_on(console: ConsoleBroker) -> None:
    make_topic(console, "timed", 1, records=10)
    commit(console.bootstrap, "by.time", "timed", {0: 1})
    for value, expected in ((1_700_000_003_500, 4), (1_900_000_000_000, 10), (0, 0)):
        (row,) = ask(f"{console.url}/api/group/reset?id=by.time&to=time&value={value}").json
        assert (row["now"], row["new"]) == (1, expected)


def test_a_group_is_deleted_when_its_name_is_typed(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "deleted")
    commit(console.bootstrap, "to.delete", "deleted", {0: 0})
    page.open(address("to.delete")).click("Delete")
    page.fill("Type to.delete to confirm", "another")
    page.click("Delete the group")
    assert "NOT_CONFIRMED" in page.failure()
    page.fill("Type to.delete to confirm", "to.delete")
    page.click("Delete the group")
    page.heading("Groups")
    assert "to.delete" not in page.names_in("Groups")
    assert page.open(address("to.delete")).failure().startswith("GROUP_ID_NOT_FOUND: ")


def test_names_of_groups_are_text_whatever_they_are(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "hostile.names")
    commit(console.bootstrap, HOSTILE, "hostile.names", {0: 0})
    page.open("/groups").fill("Filter by name", "../<b>")
    page.until(lambda: len(page.table("Groups")) == 1, "filtered list")
    shown = HOSTILE.replace("\u202e", "U+202E")
    page.click_link(shown)
    page.heading(f"Group {shown}")
    assert not page.driver.execute_script("return document.querySelectorAll('main b').length")
    assert page.names_in("Offsets", "Topic") == ["hostile.names"]


def test_a_group_whose_name_nobody_can_type_is_deleted_by_what_is_shown(console: ConsoleBroker, page: Page) -> None:
    name = "turned.\u202egnp.\u200bx\x7f"
    shown = "turned.U+202Egnp.U+200BxU+007F"
    make_topic(console, "turned")
    commit(console.bootstrap, name, "turned", {0: 0})
    page.open(address(name)).heading(f"Group {shown}")
    page.click("Delete")
    page.fill(f"Type {shown} to confirm", shown)
    page.click("Delete the group")
    page.heading("Groups")
    assert name not in [row["group_id"] for row in ask(f"{console.url}/api/groups").json["groups"]["rows"]]


def test_an_offset_that_a_browser_would_round_has_all_its_digits(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "far.ahead")
    commit(console.bootstrap, "far.ahead", "far.ahead", {0: 2**63 - 1})
    page.open(address("far.ahead")).heading("Group far.ahead")
    assert page.names_in("Offsets", "Committed") == ["9,223,372,036,854,775,807"]
    assert page.names_in("Offsets", "Lag") == ["0"]


def test_a_user_without_rights_sees_no_groups_and_is_told(
    console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(console_with_users)
    page.open("/groups")
    log_in(page, "alice")
    page.sees("There are no groups that you may see.")
    assert page.open(address("of.others")).failure().startswith("GROUP_AUTHORIZATION_FAILED: ")


def test_many_groups_come_in_pages(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "of.many")
    for number in range(101):
        commit(console.bootstrap, f"many.{number:03}", "of.many", {0: 0})
    page.open("/groups?filter=many.").sees("Page 1 of 2, 101 groups")
    assert len(page.table("Groups")) == 100
    page.click("Next")
    page.until(lambda: page.names_in("Groups") == ["many.100"], "second page")
    page.click("Name")
    page.until(lambda: page.names_in("Groups")[0] == "many.100" and len(page.names_in("Groups")) == 100, "other order")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "name"),
    [
        ("GET", "/group", None, 400, "INVALID_REQUEST"),
        ("GET", "/group?id=never.was", None, 404, "GROUP_ID_NOT_FOUND"),
        ("GET", "/group?id=x&page=NaN", None, 400, "INVALID_REQUEST"),
        ("GET", "/group?id=x&sort=colour", None, 400, "INVALID_REQUEST"),
        ("GET", "/group/reset?id=x&to=nowhere", None, 400, "INVALID_REQUEST"),
        ("GET", "/group/reset?id=x&to=offset", None, 400, "INVALID_REQUEST"),
        ("GET", "/group/reset?id=x&to=offset&value=-1", None, 400, "INVALID_REQUEST"),
        ("GET", "/group/reset?id=x&to=shift&value=1e3", None, 400, "INVALID_REQUEST"),
        ("GET", "/group/reset?id=x&to=latest&topic=no.such", None, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("PUT", "/group/offsets", {"id": "x"}, 400, "INVALID_REQUEST"),
        ("PUT", "/group/offsets", {"id": "x", "offsets": {"orders": "1"}}, 400, "INVALID_REQUEST"),
        ("PUT", "/group/offsets", {"id": "x", "offsets": {"orders-0": "-1"}}, 400, "INVALID_REQUEST"),
        ("PUT", "/group/offsets", {"id": "x", "offsets": {"orders-9999999999": "1"}}, 400, "INVALID_REQUEST"),
        ("PUT", "/group/offsets", {"id": "x", "offsets": {"no.such.topic-0": "1"}}, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("DELETE", "/group", {"id": "x", "confirm": "y"}, 400, "INVALID_REQUEST"),
        ("DELETE", "/group", {"id": "x", "confirm": "x"}, 404, "GROUP_ID_NOT_FOUND"),
    ],
)
def test_bad_input_is_one_line(
    console: ConsoleBroker, method: str, path: str, body: object, status: int, name: str
) -> None:
    answer = ask(f"{console.url}/api{path}", method, body)
    assert (answer.status, answer.error) == (status, name), answer.body
    assert "\n" not in answer.json["error"]["message"]


def test_a_read_only_console_resets_nothing(
    read_only_console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    make_topic(read_only_console, "kept")
    commit(read_only_console.bootstrap, "kept", "kept", {0: 0})
    page = page_of(read_only_console)
    page.open(address("kept")).table("Offsets")
    assert not page.has_button("Reset offsets")
    assert not page.has_button("Delete")
    assert ask(f"{read_only_console.url}/api/group", "DELETE", {"id": "kept", "confirm": "kept"}).error == "READ_ONLY"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_pages_of_groups_have_no_barriers_and_fit_the_screen(
    console: ConsoleBroker, page: Page, theme: str, is_phone: bool
) -> None:
    name = f"barriers.{theme}.{is_phone}.{'x' * 200}"
    make_topic(console, name, 3)
    commit(console.bootstrap, name, name, {0: 0})
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    for path, caption in (("/groups?filter=barriers", "Groups"), (address(name), "Offsets")):
        page.open(path).table(caption)
        assert page.barriers() == [], path
        assert not page.scrolls_sideways(), path
    page.click("Reset offsets")
    page.field("To")
    assert page.barriers() == []
    page.click("Show the plan")
    page.table("Plan")
    assert page.barriers() == []
