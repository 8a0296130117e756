"""The cluster in the console: brokers, quorum, partitions that are not well, log directories, features."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from .console_broker import ConsoleBroker, ask
from .page import Page
from .test_console_users import log_in

pytestmark = pytest.mark.chromium


def make_topics(console: ConsoleBroker, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    for each in admin.create_topics(list(topics)).values():
        each.result(timeout=60)


def test_the_cluster_shows_its_parts(console: ConsoleBroker, page: Page) -> None:
    make_topics(console, NewTopic("of.the.cluster", 3, 1))
    page.open("/cluster").heading("Cluster")
    (broker,) = page.table("Brokers")
    assert (broker["Address"], broker["State"]) == (console.bootstrap, "active")
    assert int(broker["Leads partitions"]) >= 3
    (voter,) = page.table("Quorum")
    assert (voter["Node"], voter["Role"], voter["Lag"]) == ("1", "leader", "0")
    page.sees("Node 1 leads, in epoch ")
    (directory,) = page.table("Log directories")
    assert int(directory["Replicas"]) >= 3
    assert directory["Free"].endswith("iB")
    assert "metadata.version" in page.names_in("Features")


def test_a_partition_with_too_few_replicas_in_sync_is_named(console: ConsoleBroker, page: Page) -> None:
    make_topics(console, NewTopic("healthy", 2, 1), NewTopic("too.few", 2, 1, config={"min.insync.replicas": "2"}))
    page.open("/cluster").heading("Cluster")
    rows = page.table("Partitions that need attention")
    assert [(row["Topic"], row["Partition"]) for row in rows] == [("too.few", "0"), ("too.few", "1")]
    assert {(row["What is wrong"], row["Min ISR"]) for row in rows} == {("under min ISR", "2")}
    page.sees("0 without a leader, 0 under-replicated, 2 with fewer")
    pages = [ask(f"{console.url}/api/cluster/partitions?size=1&page={page}").json["partitions"] for page in (1, 2)]
    assert [page["rows"][0]["partition"] for page in pages] == [0, 1]


def test_a_user_without_rights_is_told_what_is_missing(
    console_with_users: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(console_with_users)
    page.open("/cluster")
    log_in(page, "alice")
    page.heading("Cluster")
    assert page.names_in("Brokers", "Address") == [console_with_users.bootstrap]
    page.sees("You may not see this (CLUSTER_AUTHORIZATION_FAILED).")
    page.sees("Not told: broker 1 (CLUSTER_AUTHORIZATION_FAILED).")


@pytest.mark.parametrize("path", ["/cluster/partitions?page=0", "/cluster/partitions?size=x"])
def test_bad_input_is_one_line(console: ConsoleBroker, path: str) -> None:
    answer = ask(f"{console.url}/api{path}")
    assert (answer.status, answer.error) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_the_page_has_no_barriers_and_fits_the_screen(
    console: ConsoleBroker, page: Page, theme: str, is_phone: bool
) -> None:
    name = f"barriers.{theme}.{is_phone}.{'x' * 200}"
    make_topics(console, NewTopic(name, 1, 1, config={"min.insync.replicas": "2"}))
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    page.open("/cluster").table("Features")
    assert page.barriers() == []
    assert not page.scrolls_sideways()
