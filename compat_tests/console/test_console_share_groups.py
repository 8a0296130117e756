"""Share groups and streams groups in the console: listed, and looked at on pages of their own."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from confluent_kafka import AcknowledgeType

from tests.groups.live_members import StreamsMember, configure_group, share_consumer, shared_records
from tests.groups.streams_requests import subtopology, topic_info, topology

from .commits import commit
from .console_broker import ConsoleBroker, ask
from .page import Page
from .test_console_groups import make_topic

pytestmark = pytest.mark.chromium

EXPLICIT = {"share_acknowledgement_mode": "explicit", "client_id": "worker"}


def share_address(group: str) -> str:
    return f"/groups/share?id={quote(group, safe='')}"


def test_a_share_group_is_listed_and_shows_who_reads_and_what_is_not_settled(
    console: ConsoleBroker, page: Page
) -> None:
    make_topic(console, "jobs", 1, 10)
    with share_consumer(console.bootstrap, "workers", "jobs", **EXPLICIT) as consumer:
        records = shared_records(consumer, 10)
        for record in records[:4]:
            kinds = {0: AcknowledgeType.REJECT, 2: AcknowledgeType.RELEASE}
            consumer.acknowledge(record, kinds.get(record.offset() or 0, AcknowledgeType.ACCEPT))
        consumer.commit_sync()
        page.open("/groups").fill("Filter by name", "workers")
        page.until(lambda: page.names_in("Groups") == ["workers"], "filtered list")
        (row,) = page.table("Groups")
        assert (row["Members"], row["Total lag"], row["Type"], row["State"]) == ("1", "7", "share", "Stable")
        page.click_link("workers")
        page.heading("Share group workers")
        assert (page.fact("Total lag"), page.fact("Members"), page.fact("Assignor")) == ("7", "1", "simple")
        (reader,) = page.table("Members")
        assert (reader["Client"], reader["Reads"]) == ("worker", "jobs-0")
        (partition,) = page.table("Partitions")
        shown = [partition[name] for name in ("Topic", "Partition", "Start offset", "End offset", "Lag", "Read by")]
        assert shown == ["jobs", "0", "0", "10", "7", "worker"]
        page.sees("when its members have left")
        page.click("Deliveries of jobs-0")
        page.until(lambda: page.table("Deliveries of jobs-0"), "deliveries")
        runs = [
            (each["From"], each["To"], each["State"], each["Delivered"]) for each in page.table("Deliveries of jobs-0")
        ]
        assert runs == [
            ("0", "0", "archived", "1 time"),
            ("1", "1", "acknowledged", "1 time"),
            ("2", "2", "available", "1 time"),
            ("3", "3", "acknowledged", "1 time"),
        ]
        assert not page.barriers()
        page.open(f"/groups/group?id={quote('workers')}").heading("Share group workers")


def test_a_share_group_is_deleted_when_its_members_have_left(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "left", 1, 2)
    with share_consumer(console.bootstrap, "gone", "left", **EXPLICIT) as consumer:
        shared_records(consumer, 2)
    page.open(share_address("gone")).heading("Share group gone")
    page.until(lambda: page.fact("State") == "Empty", "group without members")
    page.click("Delete")
    page.fill("Type gone to confirm", "gone")
    page.click("Delete the group")
    page.heading("Groups")
    assert "gone" not in page.names_in("Groups")


def test_a_streams_group_shows_its_topology_and_the_tasks_of_its_members(console: ConsoleBroker, page: Page) -> None:
    for name, partitions in (("words", 2), ("counting-store-changelog", 2)):
        make_topic(console, name, partitions, 3)
    configure_group(console.bootstrap, "counting", streams_initial_rebalance_delay_ms="0")
    whole = topology(subtopology("0", "words", changelogs=[topic_info("counting-store-changelog")]))
    commit(console.bootstrap, "counting", "words", {0: 1})
    with StreamsMember(console.bootstrap, "counting", "thread-1", whole) as member:
        member.join()
        state = f"{console.url}/api/group/streams?id=counting"
        page.until(lambda: member.beat() and ask(state).json["state"] == "Stable", "stable group")
        page.open("/groups").fill("Filter by name", "counting")
        page.until(lambda: page.names_in("Groups") == ["counting"], "filtered list")
        (row,) = page.table("Groups")
        assert (row["Members"], row["Total lag"], row["Type"]) == ("1", "2", "streams")
        page.click_link("counting")
        page.heading("Streams group counting")
        (shown,) = page.table("Members")
        assert (shown["Client"], shown["Active tasks"], shown["Standby"]) == ("thread-1", "0_0, 0_1", "–")
        (part,) = page.table("Topology")
        assert (part["Subtopology"], part["Reads"], part["Changelogs"]) == ("0", "words", "counting-store-changelog")
        (internal,) = page.table("Internal topics")
        assert (internal["Topic"], internal["Partitions"]) == ("counting-store-changelog", "2")
        assert [each["Lag"] for each in page.table("Offsets")] == ["2", "–"]
        assert {each["Read by"] for each in page.table("Offsets")} == {"thread-1"}
        assert not page.barriers()


def test_a_streams_group_without_tasks_says_which_topics_are_missing(console: ConsoleBroker, page: Page) -> None:
    with StreamsMember(console.bootstrap, "waiting", "thread-1", topology(subtopology("0", "not-there"))) as member:
        member.join()
        page.open("/groups/streams?id=waiting").heading("Streams group waiting")
        assert page.fact("State") == "NotReady"
        page.sees("No member has tasks: these topics are missing: not-there.")


def test_a_group_of_another_type_and_one_that_is_not_there_are_refused(console: ConsoleBroker) -> None:
    make_topic(console, "plain", 1, 1)
    commit(console.bootstrap, "classic", "plain", {0: 1})
    for kind in ("share", "streams"):
        for name in ("classic", "nobody"):
            answer = ask(f"{console.url}/api/group/{kind}?id={name}")
            assert (answer.status, answer.error) == (404, "GROUP_ID_NOT_FOUND"), (kind, name)
    for query in ("id=workers&topic=plain&partition=7", "id=workers&topic=absent&partition=0"):
        answer = ask(f"{console.url}/api/group/share/deliveries?{query}")
        assert answer.status == 400, answer
