from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.control.journal.json_lines import read_journal
from pykbroker.control.journal.requests import MOST_ANSWER_BYTES, BadQuestion, JournalRequests
from pykbroker.protocol.records.batch import encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.record import Record

from .entries import batch, heartbeat, new_journal, record
from .in_trio import in_trio
from .test_decoding import produce


def questions(heartbeats: int = 0) -> JournalRequests:
    journal = new_journal()
    record(journal, produce(("orders", [batch(b"x")])), None, 9, client_id="shop")
    journal.note("__consumer_offsets-0", "group g rebalances", 1)
    for _ in range(heartbeats):
        heartbeat(journal)
    return JournalRequests([journal])


async def whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@in_trio
async def test_requests_are_plain_values() -> None:
    answer = await questions().requests({"api": "produce", "topic": "orders", "client_id": "shop"})
    json.dumps(answer)
    assert [each["number"] for each in answer["requests"]] == [1]
    assert (answer["next"], answer["forgotten"]) == (None, 0)
    assert (await questions(5).requests({"error": "NONE"}))["requests"][0]["api"] == "Heartbeat"


@in_trio
async def test_page_by_page_every_request_comes_once() -> None:
    asked = questions(25)
    found: list[int] = []
    since: int | None = 0
    while since is not None:
        answer = await asked.requests({"api": "Heartbeat", "most": "4", "since": str(since)})
        assert len(answer["requests"]) <= 4
        found += [each["number"] for each in answer["requests"]]
        since = answer["next"]
    assert found == list(range(3, 28))
    assert len((await asked.requests({}))["requests"]) == 26


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
@in_trio
async def test_a_page_has_a_bounded_size(compression: Compression) -> None:
    journal = new_journal(most_bytes=32 << 20)
    long = encode_batch([Record(None, b"x" * 60_000, timestamp=1)], compression=compression)
    for _ in range(60):
        record(journal, produce(("t", [long])), None, 9)
    asked = JournalRequests([journal])
    found: list[int] = []
    since: int | None = 0
    while since is not None:
        answer = await asked.requests({"most": 1000, "since": since})
        assert len(json.dumps(answer)) < MOST_ANSWER_BYTES + 70_000
        found += [each["number"] for each in answer["requests"]]
        since = answer["next"]
    assert found == list(range(1, 61))


@in_trio
async def test_events() -> None:
    asked = questions()
    assert [each["text"] for each in (await asked.events({}))["events"]] == ["group g rebalances"]
    assert (await asked.events({"since": 2}))["events"] == []
    journal = new_journal()
    for number in range(1, 6):
        journal.note("__consumer_offsets-0", f"step {number}", 0)
    asked = JournalRequests([journal])
    found: list[list[int]] = []
    since: int | None = 0
    while since is not None:
        answer = await asked.events({"since": since, "most": 2})
        found.append([each["number"] for each in answer["events"]])
        since = answer["next"]
    assert found == [[1, 2], [3, 4], [5]]


@in_trio
async def test_the_journal_in_both_formats(tmp_path: Path) -> None:
    asked = questions(3)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(await whole(asked.json_lines({"since": 1})))
    assert [line["number"] for line in read_journal(path).lines] == [2, 3, 4, 5]
    assert (await whole(asked.pcap({}))).startswith(b"\x4d\x3c\xb2\xa1")


@in_trio
async def test_a_large_journal_comes_in_pieces_while_the_loop_goes_on() -> None:
    journal = new_journal(most_bytes=8 << 20)
    for _ in range(100):
        record(journal, produce(("t", [batch(b"x" * 60_000)])), None, 9)
    turns = 0
    is_over = False

    async def turn() -> None:
        nonlocal turns
        while not is_over:
            await trio.sleep(0.001)
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        pieces = [len(piece) async for piece in JournalRequests([journal]).json_lines({})]
        is_over = True
    assert len(pieces) > 10
    assert max(pieces) < 1 << 20
    assert turns > 3


@in_trio
async def test_status_and_clear() -> None:
    asked = questions(3)
    status = asked.status()
    assert (status["position"], status["entries"], status["forgotten"]) == (5, 5, 0)
    assert 0 < status["bytes"] < status["most_bytes"] == 1 << 20
    assert asked.clear() == {"position": 5, "entries": 0, "forgotten": 0, "bytes": 0, "most_bytes": 1 << 20}


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"topics": "orders"}, "there is no parameter 'topics'; did you mean topic?"),
        ({"xyzzy": 1}, "there is no parameter 'xyzzy'; there are api, client_id, topic, error, since, most"),
        ({"api": "Produced"}, "there is no API 'Produced'; did you mean Produce?"),
        ({"error": "NOT_CORDINATOR"}, "there is no error code 'NOT_CORDINATOR'; did you mean NOT_COORDINATOR?"),
        ({"topic": 1}, "topic is a text, not 1"),
        ({"topic": [1] * 100}, f"topic is a text, not {str([1] * 100)[:64]}"),
        (
            {"api": "Produce" * 9_999 + "\n"},
            f"there is no API '{('Produce' * 10)[:64]}'; such as Produce, Fetch or JoinGroup",
        ),
        ({"error": "NONE\n"}, r"there is no error code 'NONE\n'; did you mean NONE?"),
        ({"x" * 9_999: 1}, f"there is no parameter '{'x' * 64}'; there are api, client_id, topic, error, since, most"),
        ({"since": -1}, "since is a number from 0 to 4611686018427387904, not -1"),
        ({"since": "one"}, "since is a number from 0 to 4611686018427387904, not 'one'"),
        ({"most": 1001}, "most is a number from 1 to 1000, not 1001"),
        ({"most": True}, "most is a number from 1 to 1000, not True"),
        ({"most": None}, "most is a number from 1 to 1000, not None"),
    ],
)
@in_trio
async def test_a_bad_question_is_told(question: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^\S") as raised:
        await questions().requests(question)
    assert str(raised.value) == message


@in_trio
async def test_a_broker_without_a_journal_says_so() -> None:
    without = JournalRequests([])
    with pytest.raises(BadQuestion, match="keeps no journal"):
        without.status()
    with pytest.raises(BadQuestion, match="keeps no journal"):
        await whole(without.pcap({}))
