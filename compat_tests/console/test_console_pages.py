"""The console's pages, clicked through as a person does."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from selenium.webdriver import Keys

from .console_broker import ConsoleBroker
from .page import Page

pytestmark = pytest.mark.chromium


def make_topic(console: ConsoleBroker, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(timeout=60)


def make_records(console: ConsoleBroker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": console.bootstrap})
    for number in range(count):
        producer.produce(topic, value=f"record {number}", partition=0)
    assert producer.flush(60) == 0


def test_the_overview_shows_the_cluster_and_its_broker(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "overview.orders", 3)
    page.open("/").heading("Overview")
    page.until(lambda: page.fact("Topics") != "0", "count of topics")
    assert page.fact("Under-replicated") == "0"
    assert page.fact("Controller") == "node 1"
    (broker,) = page.table("Brokers")
    assert broker["Address"] == console.bootstrap
    assert broker["Answers"] == "yes"


def test_records_that_are_produced_move_the_plot(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "plotted")
    page.open("/").heading("Overview")
    plot = "return document.querySelector('svg.plot').getAttribute('aria-label')"
    page.until(lambda: "now" in page.driver.execute_script(plot), "plot with values")
    make_records(console, "plotted", 500)
    page.until(lambda: "highest 0 " not in page.driver.execute_script(plot), "plot that has moved")


def test_a_topic_is_created_configured_purged_and_deleted(console: ConsoleBroker, page: Page) -> None:
    page.open("/topics")
    page.click("Create topic")
    page.fill("Name", "life.of.a.topic")
    page.fill("Partitions", "2")
    page.fill("Configs", "retention.ms=123456")
    page.click("Create")
    page.heading("Topic life.of.a.topic")
    assert page.path == "/topics/life.of.a.topic"
    assert page.names_in("Partitions", "Partition") == ["0", "1"]
    (config,) = page.table("Configs")
    assert config["Name"].splitlines()[0] == "retention.ms"
    assert config["Name"].endswith("."), "the name, and below it what it means"
    assert (config["Value"], config["Source"]) == ("123456", "DYNAMIC_TOPIC_CONFIG")

    page.click("Change retention.ms")
    page.fill("Value", "654321")
    page.click("Save")
    page.until(lambda: page.names_in("Configs", "Value") == ["654321"], "changed config")

    page.click("Add partitions")
    page.fill("Partitions in all", "4")
    page.click("Add")
    page.until(lambda: len(page.table("Partitions")) == 4, "table of four partitions")

    make_records(console, "life.of.a.topic", 10)
    page.until(lambda: page.fact("Offsets in use") == "10", "ten records")
    page.click("Purge")
    page.fill("Type life.of.a.topic to confirm", "life.of.a.topic")
    page.click("Delete all records")
    page.until(lambda: page.fact("Offsets in use") == "0", "empty topic")

    page.click("Delete")
    page.fill("Type life.of.a.topic to confirm", "another")
    page.click("Delete the topic")
    assert "NOT_CONFIRMED" in page.failure()
    page.fill("Type life.of.a.topic to confirm", "life.of.a.topic")
    page.click("Delete the topic")
    page.heading("Topics")
    assert "life.of.a.topic" not in page.names_in("Topics")


def test_a_refusal_of_the_broker_stands_in_the_dialog_with_kafkas_name(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "there.already")
    page.open("/topics")
    page.click("Create topic")
    page.fill("Name", "there.already")
    page.click("Create")
    assert page.failure().startswith("TOPIC_ALREADY_EXISTS: ")
    page.fill("Name", "no/name")
    page.click("Create")
    page.until(lambda: page.failure().startswith("INVALID_TOPIC_EXCEPTION: "), "other failure")


def test_topics_are_filtered_and_sorted_and_the_address_keeps_it(console: ConsoleBroker, page: Page) -> None:
    for name, partitions in (("sorted.a", 1), ("sorted.b", 3), ("sorted.c", 2)):
        make_topic(console, name, partitions)
    page.open("/topics")
    page.fill("Filter by name", "sorted.")
    page.until(lambda: page.names_in("Topics") == ["sorted.a", "sorted.b", "sorted.c"], "filtered list")
    page.click("Partitions")
    page.until(lambda: page.names_in("Topics") == ["sorted.b", "sorted.c", "sorted.a"], "sorted list")
    page.reload()
    page.until(lambda: page.names_in("Topics") == ["sorted.b", "sorted.c", "sorted.a"], "same list")
    page.click_link("sorted.c")
    page.heading("Topic sorted.c")
    page.back()
    page.until(lambda: page.names_in("Topics") == ["sorted.b", "sorted.c", "sorted.a"], "list as it was")


def test_an_address_of_a_topic_can_be_kept_and_one_of_none_says_so(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "kept")
    page.open("/topics/kept").heading("Topic kept")
    page.open("/topics/never.was")
    assert page.failure() == "UNKNOWN_TOPIC_OR_PARTITION: Topic 'never.was' does not exist"
    page.open("/no/such/page").heading("There is no such page")


def test_names_that_look_like_html_are_text(page: Page) -> None:
    page.open("/topics/%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert "<img src=x onerror=alert(1)>" in page.failure()
    assert not page.driver.execute_script("return document.querySelectorAll('main img').length")


def test_the_keyboard_alone_creates_a_topic(page: Page) -> None:
    page.open("/topics").heading("Topics")
    page.tab_to("Create topic")
    page.type(Keys.ENTER)
    page.field("Name")
    page.type("by.keyboard", Keys.ENTER)
    page.heading("Topic by.keyboard")


def test_the_first_tab_skips_to_the_content(page: Page) -> None:
    page.open("/").heading("Overview")
    page.tab_to("Skip to the content", most=1)
    page.type(Keys.ENTER)
    assert page.driver.switch_to.active_element.get_attribute("id") == "main"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_pages_have_no_barriers_and_fit_the_screen(
    console: ConsoleBroker, page: Page, theme: str, is_phone: bool
) -> None:
    make_topic(console, f"barriers.{theme}.{is_phone}.{'x' * 200}", 3)
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    for path, caption in (
        ("/", "Brokers"),
        ("/topics?filter=barriers", "Topics"),
        (f"/topics/barriers.{theme}.{is_phone}.{'x' * 200}", "Partitions"),
    ):
        page.open(path).table(caption)
        assert page.barriers() == [], path
        assert not page.scrolls_sideways(), path
    page.open("/topics").click("Create topic")
    page.field("Name")
    assert page.barriers() == []


def test_the_theme_is_the_systems_until_another_one_is_chosen(page: Page) -> None:
    page.in_the_dark("light")
    page.open("/").heading("Overview")
    light = page.ground()
    page.click("Dark theme")
    dark = page.ground()
    assert dark != light
    page.open("/topics").heading("Topics")
    assert page.ground() == dark
    page.in_the_dark("dark")
    page.click("Light theme")
    assert page.ground() == light
