"""Records through the console's API: pages that fit together, what cannot be shown, bounds, and mistakes."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import ExitStack, closing
from typing import Any

import pytest
from confluent_kafka import Producer

from .console_broker import ConsoleBroker, ask
from .event_lines import PATIENCE_S, events_of
from .topic_records import make_records, make_topic, make_transaction


def page(console: ConsoleBroker, topic: str, query: str = "") -> Any:
    answer = ask(f"{console.url}/api/topics/{topic}/records?{query}")
    assert answer.status == 200, answer.body
    return answer.json


def values(found: Any) -> list[str]:
    return [row["value"]["text"] for row in found["rows"]]


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("partition", ["all", "1"])
def test_pages_go_on_where_the_one_before_ends_and_back_again(
    console: ConsoleBroker, order: str, partition: str
) -> None:
    topic = f"paged.{order}.{partition}"
    make_topic(console, topic, 3)
    for number in range(20):
        make_records(console, topic, [f"{number:02}"], partition=number % 3)
    wanted = [f"{number:02}" for number in range(20) if partition == "all" or number % 3 == 1]
    if order == "newest":
        wanted.reverse()
    query = f"order={order}&partition={partition}&size=3"
    onwards, back = ("older", "newer") if order == "newest" else ("newer", "older")
    edge = {"older": "before", "newer": "after"}
    pages = [page(console, topic, query)]
    while pages[-1][onwards]:
        pages.append(page(console, topic, f"{query}&{edge[onwards]}={pages[-1][onwards]}"))
    assert [each for found in pages for each in values(found)] == wanted
    assert all(len(values(found)) == 3 for found in pages[:-1])
    again = pages[-1]
    for before in reversed(pages[:-1]):
        again = page(console, topic, f"{query}&{edge[back]}={again[back]}")
        assert values(again) == values(before)
    assert again[back] is None


def test_newest_first_passes_holes_of_aborted_transactions(console: ConsoleBroker) -> None:
    make_topic(console, "holes")
    make_records(console, "holes", ["first"])
    make_transaction(console, "holes", (f"gone {number}" for number in range(300)), aborts=True)
    make_transaction(console, "holes", ["kept"], aborts=False)
    assert values(page(console, "holes", "committed=true&size=2")) == ["kept", "first"]
    everything = values(page(console, "holes", "size=200"))
    assert everything[0] == "kept"
    assert everything[1] == "gone 299"
    assert len(everything) == 200


def test_an_offset_without_a_record_says_why(console: ConsoleBroker) -> None:
    make_topic(console, "marker")
    make_transaction(console, "marker", ["a"], aborts=False)
    make_records(console, "marker", ["b"])
    answer = ask(f"{console.url}/api/topics/marker/records/0/1")
    assert (answer.status, answer.error) == (409, "OFFSET_OUT_OF_RANGE")
    assert "marks the end of a transaction" in answer.json["error"]["message"]


def test_places_bound_what_is_shown(console: ConsoleBroker) -> None:
    make_topic(console, "placed")
    make_records(console, "placed", map(str, range(10)))
    now_ms = time.time_ns() // 1_000_000
    for query, wanted in (
        ("from=3&to=5", ["4", "3"]),
        ("from=3&to=5&order=oldest", ["3", "4"]),
        ("from=end-2", ["9", "8"]),
        ("to=start%2B2", ["1", "0"]),
        ("from=10m%20ago&to=start%2B1", ["0"]),
        ("to=10m%20ago", []),
        (f"from=@{now_ms + 3_600_000}", []),
        ("from=2000-01-01&to=1", ["0"]),
        ("from=2000-01-01T00:00:00Z&to=1", ["0"]),
        ("from=10", []),
        ("from=7&to=2", []),
    ):
        assert values(page(console, "placed", f"partition=0&{query}")) == wanted, query


@pytest.mark.parametrize(
    ("path", "status", "name", "part"),
    [
        ("mistakes/records?partition=0&from=11", 409, "OFFSET_OUT_OF_RANGE", "has offsets 0 to 9, not 11"),
        ("mistakes/records?from=11", 409, "OFFSET_OUT_OF_RANGE", "none has 11"),
        ("mistakes/records/0/10", 409, "OFFSET_OUT_OF_RANGE", "has offsets 0 to 9, not 10"),
        ("mistakes/records/1/0", 409, "OFFSET_OUT_OF_RANGE", "has no records (its next offset is 0)"),
        ("mistakes/records/0/-1", 400, "INVALID_REQUEST", "'offset'"),
        ("mistakes/records/0/9223372036854775808", 400, "INVALID_REQUEST", "'offset'"),
        ("mistakes/records/2/0", 404, "UNKNOWN_TOPIC_OR_PARTITION", "no partition 2: it has 0 to 1"),
        ("mistakes/records/0/0/other", 400, "INVALID_REQUEST", "'part'"),
        ("mistakes/records/0/0/key", 400, "INVALID_REQUEST", "null"),
        ("mistakes/records/0/0?as=colour", 400, "INVALID_REQUEST", "'as'"),
        ("mistakes/records?partition=2", 404, "UNKNOWN_TOPIC_OR_PARTITION", "no partition 2"),
        ("mistakes/records?partition=NaN", 400, "INVALID_REQUEST", "'partition'"),
        ("mistakes/records?partition=99999999999999999999", 400, "INVALID_REQUEST", "'partition'"),
        ("mistakes/records?from=nonsense", 400, "INVALID_REQUEST", "'from'"),
        ("mistakes/records?from=end%2B1", 400, "INVALID_REQUEST", "no record is at"),
        ("mistakes/records?to=99999999999999999999", 400, "INVALID_REQUEST", "'to'"),
        ("mistakes/records?from=%00%1b", 400, "INVALID_REQUEST", "'from'"),
        ("mistakes/records?from=999999999999w%20ago", 400, "INVALID_REQUEST", "'from'"),
        ("mistakes/records?from=" + "9" * 101, 400, "INVALID_REQUEST", "'from'"),
        ("mistakes/records?size=201", 400, "INVALID_REQUEST", "'size'"),
        ("mistakes/records?order=up", 400, "INVALID_REQUEST", "'order'"),
        ("mistakes/records?before=x", 400, "INVALID_REQUEST", "PARTITION:OFFSET"),
        ("mistakes/records?after=0:99999999999999999999", 400, "INVALID_REQUEST", "PARTITION:OFFSET"),
        ("mistakes/records?after=7:0", 404, "UNKNOWN_TOPIC_OR_PARTITION", "no partition 7"),
        ("mistakes/records?after=" + "0:1," * 900, 400, "INVALID_REQUEST", "PARTITION:OFFSET"),
        ("mistakes/records?committed=perhaps", 400, "INVALID_REQUEST", "'committed'"),
        ("never.was/records", 404, "UNKNOWN_TOPIC_OR_PARTITION", "'never.was'"),
        ("never.was/records/0/0", 404, "UNKNOWN_TOPIC_OR_PARTITION", "'never.was'"),
    ],
)
def test_a_mistake_about_records_is_one_line(
    console: ConsoleBroker, mistakes: str, path: str, status: int, name: str, part: str
) -> None:
    answer = ask(f"{console.url}/api/topics/{path}")
    assert (answer.status, answer.error) == (status, name)
    message = answer.json["error"]["message"]
    assert part in message
    assert message.isprintable()


@pytest.fixture(scope="module")
def mistakes(console: ConsoleBroker) -> str:
    make_topic(console, "mistakes", 2)
    make_records(console, "mistakes", map(str, range(10)))
    return "mistakes"


def test_numbers_are_shown_with_all_their_digits(console: ConsoleBroker) -> None:
    make_topic(console, "digits")
    make_records(console, "digits", ['{"n":12345678901234567890123,"x":1.10,"e":1E400,"s":"\\u0041"}'])
    shown = ask(f"{console.url}/api/topics/digits/records/0/0").json["value"]
    assert shown["kind"] == "json"
    assert shown["text"] == '{\n  "n": 12345678901234567890123,\n  "x": 1.10,\n  "e": 1E400,\n  "s": "\\u0041"\n}'


def test_null_is_not_empty_and_bytes_are_not_text(console: ConsoleBroker) -> None:
    make_topic(console, "kinds")
    values = [None, b"", b"\x00\xff", "é".encode(), b"[1", b"\x1b[31m", b"[" * 200_000]
    make_records(console, "kinds", values, key=b"", headers=[("h", None), ("h", b""), ("h", b"\xff")])
    kinds = [ask(f"{console.url}/api/topics/kinds/records/0/{offset}").json for offset in range(len(values))]
    assert [each["value"]["kind"] for each in kinds] == ["null", "empty", "hex", "text", "text", "hex", "text"]
    assert kinds[0]["key"]["kind"] == "empty"
    assert [each["value"]["kind"] for each in kinds[0]["headers"]] == ["null", "empty", "hex"]
    assert kinds[2]["value"]["text"].startswith("00000000  00 ff ")


def test_a_download_is_the_bytes_themselves_and_no_page(console: ConsoleBroker) -> None:
    make_topic(console, "saved")
    script = b"<script>alert(1)</script>\x00\xff"
    make_records(console, "saved", [script])
    answer = ask(f"{console.url}/api/topics/saved/records/0/0/value")
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert answer.body == script
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == 'attachment; filename="saved-0-0.value.bin"'
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-length"] == str(len(script))


def test_downloads_that_nobody_takes_are_few(console: ConsoleBroker) -> None:
    make_topic(console, "slow", configs=LARGE)
    make_records(console, "slow", [b"x" * 30_000_000], message_max_bytes="110000000")
    path = "/api/topics/slow/records/0/0/value"
    with ExitStack() as readers:
        for _ in range(4):
            reader = http.client.HTTPConnection(console.url.removeprefix("http://"), timeout=PATIENCE_S)
            readers.enter_context(closing(reader)).request("GET", path)
            assert readers.enter_context(closing(reader.getresponse())).status == 200
        answer = ask(console.url + path)
        assert (answer.status, answer.error) == (429, "TOO_MANY_STREAMS")
    deadline = time.monotonic() + PATIENCE_S
    while ask(console.url + path).status != 200:
        assert time.monotonic() < deadline


LARGE = {"max.message.bytes": str(110_000_000)}


def test_a_record_of_many_megabytes_is_cut_and_can_be_downloaded(console: ConsoleBroker) -> None:
    make_topic(console, "large", configs=LARGE)
    content = b"0123456789" * 3_000_000
    make_records(console, "large", [content, b"small"], message_max_bytes="110000000")
    found = page(console, "large")
    assert found["rows"][0]["value"]["text"] == "small"
    assert found["rows"][1]["value"]["size_bytes"] == len(content)
    assert len(json.dumps(found)) < 10_000
    shown = ask(f"{console.url}/api/topics/large/records/0/0?all=true")
    assert shown.json["value"]["is_cut"]
    assert len(shown.body) < 1_100_000
    assert ask(f"{console.url}/api/topics/large/records/0/0/value").body == content


def test_a_batch_that_grows_by_a_thousand_is_shown_in_part(console: ConsoleBroker) -> None:
    make_topic(console, "blown.up")
    make_records(console, "blown.up", ["before"])
    settings = {"message_max_bytes": "110000000", "compression_type": "zstd"}
    make_records(console, "blown.up", [b"x" * 60_000_000], **settings)
    make_records(console, "blown.up", ["behind"])
    for order in ("oldest", "newest"):
        found = page(console, "blown.up", f"order={order}")
        assert sorted(row["value"]["size_bytes"] for row in found["rows"]) == [6, 6, 60_000_000]
        assert len(json.dumps(found)) < 10_000
    with events_of(console, "blown.up/records/search?key=nothing") as events:
        done = dict(events)["done"]
    assert (done["reason"], done["passed"]) == ("end", 3)


def test_a_topic_of_ten_thousand_partitions_is_read_in_part_and_says_so(console: ConsoleBroker) -> None:
    make_topic(console, "wide", 2_000)
    for partitions in range(3_000, 10_001, 1_000):  # no broker takes more of them at once
        assert ask(f"{console.url}/api/topics/wide/partitions", "PUT", {"partitions": partitions}).status == 200
    make_records(console, "wide", ["in the last one"], partition=9_999)
    assert values(page(console, "wide")) == ["in the last one"]
    producer = Producer({"bootstrap.servers": console.bootstrap})
    for partition in range(150):
        producer.produce("wide", value=str(partition), partition=partition)
    assert producer.flush(60) == 0
    found = page(console, "wide")
    assert found["left_out"] == 51
    assert len(found["rows"]) == 50
    assert values(page(console, "wide", "partition=9999")) == ["in the last one"]
    with events_of(console, "wide/records/tail") as events:
        assert next(events) == ("begin", {"partitions": 10_000, "followed": 1000})
        make_records(console, "wide", ["fresh"], partition=3)
        event, found = next(events)
        assert (event, values(found)) == ("records", ["fresh"])


def test_a_search_finds_keys_of_any_bytes_and_says_how_far_it_looked(console: ConsoleBroker) -> None:
    make_topic(console, "searched", 2)
    for number in range(6):
        make_records(
            console, "searched", [f"value {number}"], partition=number % 2, key=b"k\xff" if number > 3 else b"k"
        )
    with events_of(console, "searched/records/search?key=6bff&key_kind=hex") as events:
        found = list(events)
    rows = [row for event, rows in found if event == "found" for row in rows]
    assert sorted(row["value"]["text"] for row in rows) == ["value 4", "value 5"]
    done = dict(found)["done"]
    assert (done["reason"], done["passed"], done["offsets"], done["found"]) == ("end", 6, 6, 2)


def test_a_search_stops_at_its_bound_and_goes_on_from_there(console: ConsoleBroker) -> None:
    make_topic(console, "many", 2)
    for partition in (0, 1):
        make_records(console, "many", map(str, range(150)), partition=partition, key=b"same")
    with events_of(console, "many/records/search?key=same") as events:
        first = dict(events)["done"]
    assert (first["reason"], first["found"]) == ("found", 200)
    with events_of(console, f"many/records/search?key=same&after={first['after']}") as events:
        rest = dict(events)["done"]
    assert (rest["reason"], rest["found"]) == ("end", 100)


@pytest.mark.parametrize(
    ("query", "part"),
    [("", "'key'"), ("key=0g&key_kind=hex", "hex"), ("key=a&from=x", "'from'"), ("key=a&after=x", "")],
)
def test_a_mistake_in_a_search_ends_it_with_a_line(
    console: ConsoleBroker, mistakes: str, query: str, part: str
) -> None:
    with events_of(console, f"mistakes/records/search?{query}") as events:
        (event, body), *_ = [each for each in events if each[0] in ("failure", "done")]
    assert (event, body["error"]["name"]) == ("failure", "INVALID_REQUEST")
    assert part in body["error"]["message"]


def test_a_tail_counts_what_comes_too_fast(console: ConsoleBroker) -> None:
    make_topic(console, "fast")
    with events_of(console, "fast/records/tail") as events:
        assert next(events)[0] == "begin"
        make_records(console, "fast", map(str, range(5000)))
        shown, left_out = [], 0
        for event, body in events:
            assert event == "records"
            assert len(body["rows"]) <= 25
            shown += values(body)
            left_out += body["left_out"]
            if len(shown) + left_out == 5000:
                break
    assert shown[0] == "0"
    assert left_out > 0


def test_a_tail_leaves_out_aborted_records_where_committed_ones_are_asked_for(console: ConsoleBroker) -> None:
    make_topic(console, "tail.committed")
    with events_of(console, "tail.committed/records/tail?committed=true") as events:
        assert next(events)[0] == "begin"
        make_transaction(console, "tail.committed", ["gone"], aborts=True)
        make_transaction(console, "tail.committed", ["kept"], aborts=False)
        rows = next(body for event, body in events if event == "records" and body["rows"])
        assert values(rows) == ["kept"]


def test_a_tail_of_a_topic_that_is_deleted_ends_with_a_line(console: ConsoleBroker) -> None:
    make_topic(console, "tail.deleted")
    with events_of(console, "tail.deleted/records/tail") as events:
        assert next(events)[0] == "begin"
        assert ask(f"{console.url}/api/topics/tail.deleted", "DELETE", {"confirm": "tail.deleted"}).status == 200
        *_, (event, body) = events
    assert event == "failure"
    assert body["error"] == {
        "name": "UNKNOWN_TOPIC_OR_PARTITION",
        "message": "Topic 'tail.deleted' does not exist",
    }


def test_a_tail_follows_partitions_that_are_added(console: ConsoleBroker) -> None:
    make_topic(console, "tail.grown")
    with events_of(console, "tail.grown/records/tail") as events:
        assert next(events)[0] == "begin"
        assert ask(f"{console.url}/api/topics/tail.grown/partitions", "PUT", {"partitions": 2}).status == 200
        make_records(console, "tail.grown", ["in the new one"], partition=1)
        assert values(next(body for event, body in events if event == "records")) == ["in the new one"]


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        ({"value": "x", "partition": 9}, 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"value": "x", "partition": -1}, 400, "INVALID_REQUEST"),
        ({"value": "x", "partition": "NaN"}, 400, "INVALID_REQUEST"),
        ({"value": '{"a":', "value_kind": "json"}, 400, "INVALID_REQUEST"),
        ({"value": "NaN", "value_kind": "json"}, 400, "INVALID_REQUEST"),
        ({"value": "[" * 100_000, "value_kind": "json"}, 400, "INVALID_REQUEST"),
        ({"value": "0g", "value_kind": "hex"}, 400, "INVALID_REQUEST"),
        ({"value": "123", "value_kind": "hex"}, 400, "INVALID_REQUEST"),
        ({"value": "x", "value_kind": "avro"}, 400, "INVALID_REQUEST"),
        ({"value": 5}, 400, "INVALID_REQUEST"),
        ({"value": "x", "headers": ["=y"]}, 400, "INVALID_REQUEST"),
        ({"value": "x", "headers": ["a=b"] * 101}, 400, "INVALID_REQUEST"),
        ({"value": "x" * 2_000_000}, 409, "MESSAGE_TOO_LARGE"),
        ({"value": "x" * 5_000_000}, 413, "REQUEST_TOO_LARGE"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_record_that_cannot_be_written_is_refused_in_one_line(
    console: ConsoleBroker, mistakes: str, body: object, status: int, name: str
) -> None:
    answer = ask(f"{console.url}/api/topics/mistakes/records", "POST", body)
    assert (answer.status, answer.error) == (status, name)
    assert page(console, "mistakes", "partition=0")["end"] == "10"


def test_a_record_for_no_topic_creates_none(console: ConsoleBroker) -> None:
    answer = ask(f"{console.url}/api/topics/never.made/records", "POST", {"value": "x"})
    assert (answer.status, answer.error) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert ask(f"{console.url}/api/topics/never.made").status == 404


def test_a_read_only_console_writes_no_records(read_only_console: ConsoleBroker) -> None:
    make_topic(read_only_console, "read.only")
    answer = ask(f"{read_only_console.url}/api/topics/read.only/records", "POST", {"value": "x"})
    assert (answer.status, answer.error) == (403, "READ_ONLY")


def test_the_partition_of_a_key_is_the_one_of_kafkas_own_producer(console: ConsoleBroker) -> None:
    make_topic(console, "by.key", 8)
    producer = Producer({"bootstrap.servers": console.bootstrap, "partitioner": "murmur2_random"})
    partitions = {}
    for number in range(10):
        producer.produce("by.key", key=f"key {number}", on_delivery=lambda _, it: partitions.update({it.key(): it}))
    assert producer.flush(60) == 0
    for key, written in partitions.items():
        answer = ask(f"{console.url}/api/topics/by.key/records", "POST", {"key": key.decode(), "key_kind": "text"})
        assert answer.json["partition"] == written.partition()
