"""The pages of a topic's records, clicked through as a person does."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from .console_broker import ConsoleBroker
from .page import Page
from .topic_records import make_records, make_topic, make_transaction

pytestmark = pytest.mark.chromium

HOSTILE = "<img src=x onerror=alert(1)>\u202etxt.exe\u200b"


def values(page: Page, caption: str = "Records") -> list[str]:
    return page.names_in(caption, "Value")


def shows(page: Page, wanted: list[str], caption: str = "Records") -> None:
    page.until(lambda: values(page, caption) == wanted, f"records {wanted}")


def test_records_are_paged_newest_and_oldest_first_by_links_that_can_be_kept(
    console: ConsoleBroker, page: Page
) -> None:
    make_topic(console, "browsed", 2)
    for number in range(12):
        make_records(console, "browsed", [f"record {number}"], partition=number % 2)
    page.open("/topics/browsed").heading("Topic browsed")
    page.click_link("Records")
    newest = [f"record {number}" for number in reversed(range(12))]
    shows(page, newest)
    page.open("/topics/browsed/records?size=5")
    shows(page, newest[:5])
    page.click_link("Next page")
    shows(page, newest[5:10])
    page.reload()
    shows(page, newest[5:10])
    page.click_link("Next page")
    shows(page, newest[10:])
    page.click_link("Previous page")
    shows(page, newest[5:10])
    page.back()
    shows(page, newest[10:])
    page.choose("Order", "Oldest first")
    page.click("Show records")
    shows(page, newest[::-1][:5])
    page.fill("Partition", "1")
    page.fill("From", "2")
    page.fill("To", "4")
    page.click("Show records")
    shows(page, ["record 5", "record 7"])
    page.sees("Offsets 0 to 6 (not included)")


def test_a_time_is_of_the_readers_zone_and_the_address_has_it_in_utc(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "timed")
    make_records(console, "timed", ["now"])
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "America/New_York"})
    page.open("/topics/timed/records")
    shows(page, ["now"])
    page.fill("From", "5m ago")
    page.click("Show records")
    page.until(lambda: "from=5m+ago" in page.path and page.has_button("Show records"), "records since then")
    shows(page, ["now"])
    page.fill("From", "2020-07-01 10:00")
    page.click("Show records")
    page.until(lambda: "from=2020-07-01T14%3A00%3A00.000Z" in page.path, "address in UTC")
    shows(page, ["now"])
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_an_offset_out_of_range_says_what_there_is_and_the_form_stays(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "short")
    make_records(console, "short", ["a", "b"])
    page.open("/topics/short/records")
    page.fill("Partition", "0")
    page.fill("From", "77")
    page.click("Show records")
    assert page.failure() == "OFFSET_OUT_OF_RANGE: Partition 0 of short has offsets 0 to 1, not 77"
    page.fill("From", "1")
    page.click("Show records")
    shows(page, ["b"])


def test_a_record_is_shown_with_its_headers_and_its_json_laid_out(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "whole")
    document = '{"id":12345678901234567890,"price":1.10}'
    headers = [("trace", b"17"), ("none", None), ("raw", b"\xff\x00")]
    make_records(console, "whole", [document], key=b"\x00\x01", headers=headers)
    page.open("/topics/whole/records").click_link("Partition 0, offset 0")
    page.heading("Record at offset 0")
    assert page.path == "/topics/whole/records/0/0"
    assert page.fact("Timestamp type") == "CreateTime"
    page.sees('"id": 12345678901234567890,')
    page.sees('"price": 1.10')
    page.sees("00000000  00 01")
    assert page.table("Headers") == [
        {"Name": "trace", "Value": "17", "Size": "2 B"},
        {"Name": "none", "Value": "null", "Size": "0 B"},
        {"Name": "raw", "Value": "ff 00", "Size": "2 B"},
    ]
    page.choose("Show as", "Bytes in hex")
    page.sees("7b 22 69 64 22")
    assert page.path.endswith("?as=hex")
    page.click_link("All records")
    page.table("Records")


def test_each_page_of_a_topic_has_a_title_of_its_own(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "titled")
    make_records(console, "titled", ["v"])
    titles = []
    for path in ("", "/records", "/tail", "/producers", "/records/0/0"):
        page.open(f"/topics/titled{path}").until(lambda: page.driver.title != "pykbroker", "title")
        titles.append(page.driver.title.removesuffix(" – pykbroker"))
    assert titles[:4] == ["Topic titled", "Topic titled, Records", "Topic titled, Live", "Topic titled, Producers"]
    assert titles[4] == "Record at offset 0 of titled-0"


def test_a_tombstone_is_not_an_empty_value(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "gone")
    make_records(console, "gone", [None, b""])
    page.open("/topics/gone/records")
    shows(page, ["empty", "null"])


def test_a_large_value_is_cut_shown_on_request_and_downloaded(
    console: ConsoleBroker, page: Page, tmp_path: Path
) -> None:
    make_topic(console, "cut")
    content = "0123456789" * 5_000
    make_records(console, "cut", [content])
    page.open("/topics/cut/records/0/0").heading("Record at offset 0")
    shown = "return document.querySelector('pre.content').textContent.length"
    assert page.driver.execute_script(shown) < 20_000
    page.click("Show all up to 1 MiB")
    page.until(lambda: page.driver.execute_script(shown) == len(content), "whole value")
    allowed = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    page.click_link("Download the value")
    file = tmp_path / "cut-0-0.value.bin"
    page.until(lambda: file.exists() and file.read_text() == content, "downloaded file")
    assert page.path.startswith("/topics/cut/records/0/0")


def test_contents_that_look_like_html_or_turn_the_text_around_are_text(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "hostile")
    make_records(console, "hostile", [HOSTILE], key=HOSTILE.encode(), headers=[(HOSTILE, HOSTILE.encode())])
    for path in ("/topics/hostile/records", "/topics/hostile/records/0/0"):
        page.open(path).sees("<img src=x onerror=alert(1)>")
        page.sees("U+202E")
        assert "\u202e" not in page.text()
        assert not page.driver.execute_script("return document.querySelectorAll('main img').length")


def test_records_of_aborted_transactions_go_where_committed_ones_are_asked_for(
    console: ConsoleBroker, page: Page
) -> None:
    make_topic(console, "transactions")
    make_transaction(console, "transactions", ["aborted"], aborts=True)
    make_transaction(console, "transactions", ["committed"], aborts=False)
    page.open("/topics/transactions/records")
    shows(page, ["committed", "aborted"])
    page.tick("Committed records alone")
    page.click("Show records")
    shows(page, ["committed"])


def test_a_search_by_key_tells_how_far_it_looked(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "keys", 2)
    make_records(console, "keys", ["here"], key=b"wanted", partition=1)
    make_records(console, "keys", map(str, range(50)), key=b"other")
    page.open("/topics/keys/records")
    page.fill("Key", "wanted")
    page.click("Show records")
    page.sees("Done: 51 of 51 offsets looked through")
    shows(page, ["here"], "Found records")
    page.fill("Key", "6f7468657")
    page.choose("Key is", "Hex")
    page.click("Show records")
    assert page.failure().startswith("INVALID_REQUEST: the key is not hex")


def test_a_search_is_stopped_and_says_how_far_it_looked(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "long")
    make_records(console, "long", ("x" * 100 for _ in range(400_000)))
    page.open("/topics/long/records")
    page.fill("Key", "never")
    page.click("Show records")
    page.click("Stop")
    page.sees("Stopped. ")
    page.sees("of 400,000 offsets looked through")
    assert not page.has_button("Stop")


def test_records_are_shown_as_they_come_with_a_pause(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "live", 2)
    make_records(console, "live", ["before"])
    page.open("/topics/live").click_link("Live")
    page.sees("Listening to 2 partitions.")
    make_records(console, "live", ["first"])
    shows(page, ["first"], "New records")
    page.click("Pause")
    make_records(console, "live", ["second"], partition=1)
    page.sees("Paused: 1 record waiting.")
    assert values(page, "New records") == ["first"]
    page.click("Go on")
    shows(page, ["second", "first"], "New records")
    make_records(console, "live", map(str, range(2000)))
    page.sees("came too fast and are left out")


def test_a_live_page_for_which_there_is_no_room_says_so(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "crowded")
    with ExitStack() as readers:
        for _ in range(32):
            reader = readers.enter_context(closing(HTTPConnection(console.url.removeprefix("http://"), timeout=60)))
            reader.request("GET", "/api/topics/crowded/records/tail")
            readers.enter_context(closing(reader.getresponse()))
        page.open("/topics/crowded/tail")
        assert page.failure().startswith("TOO_MANY_STREAMS: ")


def test_a_live_page_of_a_topic_that_is_deleted_ends_with_a_line(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "short.lived")
    page.open("/topics/short.lived/tail").sees("Listening to 1 partition.")
    delete_topic(console, "short.lived")
    assert page.failure() == "UNKNOWN_TOPIC_OR_PARTITION: Topic 'short.lived' does not exist"
    page.sees("The stream has ended.")


def delete_topic(console: ConsoleBroker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    admin.delete_topics([name])[name].result(timeout=60)


def test_a_record_is_produced_from_the_form(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "written", 1)
    page.open("/topics/written/records").click("Produce a record")
    page.fill("Key of the record", "k")
    page.choose("Kind of value", "JSON")
    page.fill("Value", '{"n": 1')
    page.fill("Headers", "trace=17")
    page.click("Produce")
    assert page.failure().startswith("INVALID_REQUEST: the value is no JSON")
    page.fill("Value", '{"n": 1}')
    page.fill("To partition", "5")
    page.click("Produce")
    page.until(lambda: page.failure().startswith("UNKNOWN_TOPIC_OR_PARTITION"), "refusal of the partition")
    page.fill("To partition", "")
    page.click("Produce")
    page.sees("Written: partition 0, offset 0")
    shows(page, ['{"n": 1}'])
    page.click("Produce a record")
    page.choose("Kind of value", "Tombstone (null)")
    page.click("Produce")
    page.sees("Written: partition 0, offset 1")
    page.click_link("Partition 0, offset 0")
    page.heading("Record at offset 0")
    assert page.table("Headers") == [{"Name": "trace", "Value": "17", "Size": "2 B"}]


def test_a_read_only_console_shows_records_and_has_no_form_for_them(
    read_only_console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    make_topic(read_only_console, "looked.at")
    make_records(read_only_console, "looked.at", ["seen"])
    page = page_of(read_only_console)
    page.open("/topics/looked.at/records")
    shows(page, ["seen"])
    assert not page.has_button("Produce a record")


def test_the_keyboard_alone_goes_to_a_record(console: ConsoleBroker, page: Page) -> None:
    make_topic(console, "keyboard")
    make_records(console, "keyboard", ["a"])
    page.open("/topics/keyboard/records").table("Records")
    page.tab_to("Partition 0, offset 0")
    page.type(Keys.ENTER)
    page.heading("Record at offset 0")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_pages_of_records_have_no_barriers_and_fit_the_screen(
    console: ConsoleBroker, page: Page, theme: str, is_phone: bool
) -> None:
    topic = f"barriers.{theme}.{is_phone}"
    make_topic(console, topic)
    long = json.dumps({"text": "x" * 3000, "mark": HOSTILE}, ensure_ascii=False)
    make_records(console, topic, [long, None], key=b"\xff" * 500, headers=[("h" * 200, b"v" * 500)])
    page.in_the_dark(theme)
    if is_phone:
        page.on_a_phone()
    for path, caption in (
        ("/records", "Records"),
        ("/records?key=none", "Found records"),
        ("/records/0/0", "Headers"),
        ("/tail", "New records"),
    ):
        page.open(f"/topics/{topic}{path}").table(caption)
        assert page.barriers() == [], path
        assert not page.scrolls_sideways(), path
    page.open(f"/topics/{topic}/records").click("Produce a record")
    page.field("Value")
    assert page.barriers() == []
    assert not page.driver.find_elements(By.CSS_SELECTOR, "main [style]")
