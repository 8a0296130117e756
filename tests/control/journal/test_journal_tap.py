from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
import trio.testing

from pykbroker.control.journal.exchange import KEPT_BYTES, Exchange, Outcome
from pykbroker.control.journal.journal import Journal
from pykbroker.control.journal.journal_tap import JournalTap, kept_answer
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import SIZE_BYTES, encode_request, encode_response
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.server.network.handlers import CloseConnection, ConnectionState
from pykbroker.server.network.tap import Answer, Handle
from pykbroker.server.runtime.causes import current_cause, note_interference, tell_cause, witness
from pykbroker.server.runtime.deferred_answer import DeferredAnswer

from .entries import new_journal
from .in_trio import in_trio

REQUEST = encode_request(HeartbeatRequest(group_id="g"), 4, 7, "app")[SIZE_BYTES:]
ANSWER: Answer = list(encode_response(7, HeartbeatResponse(), 4))


def new_tap(journal: Journal, inner: FaultTap | None = None) -> JournalTap:
    return JournalTap(journal, lambda: None, inner)


def new_connection() -> ConnectionState:
    return ConnectionState("PLAINTEXT", "127.0.0.1")


async def exchange(
    tap: JournalTap, handle: Handle, connection: ConnectionState | None = None, frame: bytes = REQUEST
) -> Answer:
    return await tap.exchange(memoryview(frame), connection or new_connection(), handle)


def the_only(journal: Journal) -> Exchange:
    (only,) = journal.entries()
    assert isinstance(only, Exchange)
    return only


async def answer() -> Answer:
    return ANSWER


class FaultTap:
    """A tap that does what it is told."""

    def __init__(self, change: Callable[[Handle], Awaitable[Answer]]) -> None:
        self._change = change

    async def exchange(self, frame: memoryview, connection: ConnectionState, handle: Handle) -> Answer:
        note_interference("the answer is another one")
        return await self._change(handle)


@in_trio
async def test_an_answer_goes_through_and_is_kept() -> None:
    journal = new_journal()
    assert await exchange(new_tap(journal), answer) is ANSWER
    kept = the_only(journal)
    assert (kept.outcome, kept.request, kept.principal) == (Outcome.ANSWERED, REQUEST, "User:ANONYMOUS")
    assert kept.response == b"".join(part for part in ANSWER or [] if isinstance(part, bytes))[SIZE_BYTES:]


@in_trio
async def test_a_request_without_an_answer() -> None:
    journal = new_journal()

    async def nothing() -> Answer:
        return None

    assert await exchange(new_tap(journal), nothing) is None
    assert (the_only(journal).outcome, the_only(journal).response_bytes) == (Outcome.NO_ANSWER, 0)


@in_trio
async def test_a_connection_that_is_closed_says_why() -> None:
    journal = new_journal()

    async def close() -> Answer:
        raise CloseConnection("not here", ANSWER)

    with pytest.raises(CloseConnection):
        await exchange(new_tap(journal), close)
    kept = the_only(journal)
    assert (kept.outcome, kept.reason) == (Outcome.CLOSED, "not here")
    assert kept.response_bytes


@in_trio
async def test_a_connection_that_ends_meanwhile_is_closed() -> None:
    journal = new_journal()
    with trio.move_on_after(0):
        await exchange(new_tap(journal), trio.sleep_forever)
    kept = the_only(journal)
    assert (kept.outcome, kept.reason) == (Outcome.CLOSED, "Cancelled")
    assert current_cause() == 0


@in_trio
async def test_what_is_no_request_is_the_brokers_business() -> None:
    journal = new_journal()
    assert await exchange(new_tap(journal), answer, frame=b"\x00") is ANSWER
    assert not journal.entries()

    async def refuse() -> Answer:
        raise MalformedMessage("a client id of 9999 bytes, 1 are left")

    with pytest.raises(MalformedMessage):
        await exchange(new_tap(journal), refuse, frame=b"\x00\x0c\x00\x04\x00\x00\x00\x07\x27\x0fx")
    kept = the_only(journal)
    assert (kept.api, kept.client_id, kept.outcome) == ("Heartbeat", None, Outcome.CLOSED)
    assert kept.reason == "MalformedMessage: a client id of 9999 bytes, 1 are left"


@in_trio
async def test_a_connection_has_one_number() -> None:
    journal = new_journal()
    tap = new_tap(journal)
    first, second = new_connection(), new_connection()
    for connection in (first, second, first):
        await exchange(tap, answer, connection)
    found = [each.peer.number for each in journal.entries() if isinstance(each, Exchange)]
    assert found == [1, 2, 1]
    assert new_tap(journal) is not tap
    await exchange(new_tap(journal), answer)
    last = journal.entries()[-1]
    assert isinstance(last, Exchange)
    assert last.peer.number == 3, "also behind a restart"


@in_trio
async def test_another_tap_changes_what_the_client_gets() -> None:
    journal = new_journal()
    other: Answer = list(encode_response(7, HeartbeatResponse(error_code=27), 4))

    async def change(handle: Handle) -> Answer:
        await handle()
        return other

    assert await exchange(new_tap(journal, FaultTap(change)), answer) is other
    kept = the_only(journal)
    assert kept.interference == ("the answer is another one",)
    assert int.from_bytes(kept.response[9:11], "big") == 27


@in_trio
async def test_what_ends_a_wait_is_its_cause() -> None:
    journal = new_journal()
    tap = new_tap(journal)
    wait = DeferredAnswer[None]()

    async def waiting() -> Answer:
        await wait.wait()
        return ANSWER

    async def releasing() -> Answer:
        wait.complete(None)
        return ANSWER

    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange, tap, waiting)
        await trio.testing.wait_all_tasks_blocked()
        await exchange(tap, releasing)
    waited, released = journal.entries()
    assert isinstance(waited, Exchange)
    assert waited.caused_by == released.number


@in_trio
async def test_time_is_no_cause() -> None:
    journal = new_journal()
    tap = new_tap(journal)
    wait = DeferredAnswer[None]()

    async def waiting() -> Answer:
        await wait.wait()
        return ANSWER

    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange, tap, waiting)
        await trio.testing.wait_all_tasks_blocked()
        wait.complete(None)
    assert the_only(journal).caused_by == 0


@in_trio
async def test_a_task_that_a_request_has_started_is_not_its_for_ever() -> None:
    seen: list[int] = []
    journal = new_journal()
    go_on = trio.Event()

    async def outlive() -> None:
        seen.append(current_cause())
        await go_on.wait()
        seen.append(current_cause())

    async with trio.open_nursery() as nursery:

        async def start() -> Answer:
            nursery.start_soon(outlive)
            await trio.testing.wait_all_tasks_blocked()
            return ANSWER

        await exchange(new_tap(journal), start)
        go_on.set()
    assert seen == [1, 0]


@in_trio
async def test_state_machines_tell_what_they_did() -> None:
    journal = new_journal()
    tap = new_tap(journal)
    witness.set(tap.witness)

    async def rebalance() -> Answer:
        tell_cause("__consumer_offsets-7", "group g rebalances: a member has left")
        return ANSWER

    await exchange(tap, rebalance)
    tell_cause("__consumer_offsets-7", "group g is empty: its time was over")
    _, first, second = journal.entries()
    assert [(each.text, each.caused_by) for each in (first, second) if not isinstance(each, Exchange)] == [
        ("group g rebalances: a member has left", 1),
        ("group g is empty: its time was over", 0),
    ]


@dataclass
class RealFile:
    path: str
    descriptor: int | None

    def fileno(self) -> int | None:
        return self.descriptor


@dataclass
class Region:
    file: RealFile
    position: int
    size: int
    data: bytes = b""

    def read(self) -> bytes:
        return self.data


def test_records_in_a_file_are_kept_as_far_as_they_go(tmp_path: Path) -> None:
    path = tmp_path / "00.log"
    data = os.urandom(200_000)
    path.write_bytes(data)
    with path.open("rb") as opened:
        file = RealFile(str(path), opened.fileno())
        head = (1_000 + 10).to_bytes(4, "big") + b"head"
        assert kept_answer([head, Region(file, 5, 1_000), b"tail"]) == (b"head" + data[5:1_005] + b"tail", 1_008)
        kept, size = kept_answer([head, Region(file, 7, 150_000), b"tail"])
        assert (kept, size) == (b"head" + data[7 : 7 + KEPT_BYTES - 4], 150_008)
        kept, size = kept_answer([head, b"x" * KEPT_BYTES, Region(file, 7, 100), b"tail"])
        assert (len(kept), size) == (KEPT_BYTES, KEPT_BYTES + 108)


def test_behind_a_file_that_is_too_short_nothing_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "00.log"
    path.write_bytes(b"x" * 50)
    with path.open("rb") as opened:
        kept = kept_answer([b"sizehead", Region(RealFile(str(path), opened.fileno()), 0, 100), b"tail"])
    assert kept == (b"head" + b"x" * 50, 108)


def test_records_of_a_simulated_disk_are_kept() -> None:
    assert kept_answer([b"sizehead", Region(RealFile("sim", None), 0, 5, b"12345")]) == (b"head12345", 9)
