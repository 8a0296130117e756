from __future__ import annotations

import threading
from itertools import count

from pykbroker.control.journal.exchange import OVERHEAD_BYTES, Event, Exchange, Outcome
from pykbroker.control.journal.journal import MOST_EVENT_CHARACTERS
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.messages.sasl import SaslHandshakeRequest

from .entries import begin, end, heartbeat, new_journal


def test_an_exchange_has_what_was_asked_and_answered() -> None:
    journal = new_journal()
    exchange = begin(journal, HeartbeatRequest(group_id="g"), 4)
    assert (exchange.api, exchange.api_version, exchange.correlation_id, exchange.client_id) == (
        "Heartbeat",
        4,
        7,
        "app",
    )
    assert (exchange.outcome, exchange.took_ms) == (Outcome.WAITING, None)
    end(journal, exchange, HeartbeatResponse())
    assert exchange.outcome is Outcome.ANSWERED
    assert exchange.took_ms == 1.0
    assert not exchange.is_cut
    assert journal.entries() == [exchange]


def test_the_oldest_give_way_and_the_bound_holds() -> None:
    journal = new_journal(most_bytes=10 * (OVERHEAD_BYTES + 100))
    for _ in range(500):
        heartbeat(journal)
        journal.note("__consumer_offsets-0", "x" * 10_000, 0)
        kept = journal.entries()
        assert journal.kept_bytes == sum(each.kept_bytes for each in kept) <= journal.most_bytes
        assert journal.forgotten + len(kept) == journal.last_number
        assert [each.number for each in kept] == list(range(journal.forgotten + 1, journal.last_number + 1))
    assert len(journal) >= 5
    assert journal.forgotten_to == journal.forgotten > 900


def test_an_exchange_that_is_forgotten_while_it_waits_takes_no_memory_when_it_ends() -> None:
    journal = new_journal(most_bytes=5 * OVERHEAD_BYTES)
    waiting = begin(journal, HeartbeatRequest(group_id="waits"), 4)
    for _ in range(20):
        heartbeat(journal)
    assert not waiting.is_kept
    before = journal.kept_bytes
    end(journal, waiting, HeartbeatResponse())
    assert journal.kept_bytes == before
    assert not waiting.response


def test_what_is_larger_than_the_bound_stays_until_the_next_one_comes() -> None:
    journal = new_journal(most_bytes=100)
    first, second = heartbeat(journal), heartbeat(journal)
    assert journal.entries() == [second]
    assert not first.is_kept


def test_cleared_it_has_forgotten_nothing() -> None:
    journal = new_journal(most_bytes=3 * OVERHEAD_BYTES)
    waiting = begin(journal, HeartbeatRequest(group_id="waits"), 4)
    for _ in range(5):
        heartbeat(journal)
    assert journal.forgotten
    journal.clear()
    assert (journal.entries(), journal.forgotten, journal.kept_bytes) == ([], 0, 0)
    end(journal, waiting, HeartbeatResponse())
    assert journal.kept_bytes == 0
    assert heartbeat(journal).number == 7, "numbers go on, and marks stay good"


def test_entries_since_a_mark() -> None:
    journal = new_journal()
    heartbeat(journal)
    mark = journal.last_number
    event_is_noted = journal.note("__consumer_offsets-3", "group g rebalances", 1)
    assert event_is_noted is None
    later = heartbeat(journal)
    event, exchange = journal.entries(mark)
    assert exchange is later
    assert isinstance(event, Event)
    assert (event.whose, event.text, event.caused_by) == ("__consumer_offsets-3", "group g rebalances", 1)


def test_journals_of_one_cluster_share_their_numbers() -> None:
    numbers = count(1)
    first, second = new_journal(numbers=numbers, node_id=1), new_journal(numbers=numbers, node_id=2)
    assert [heartbeat(first).number, heartbeat(second).number, heartbeat(first).number] == [1, 2, 3]
    assert [each.number for each in first.entries(since=1)] == [3]


def test_a_long_frame_is_cut_and_says_so() -> None:
    journal = new_journal()
    exchange = begin(journal, SaslHandshakeRequest(mechanism="x" * 30_000), 1)
    assert not exchange.is_cut
    exchange = begin(journal, DescribeGroupsRequest(groups=["g" * 30_000] * 4), 5)
    assert len(exchange.request) == 64 * 1024
    assert exchange.request_bytes > 120_000
    assert exchange.is_cut


def test_a_long_event_is_cut_and_says_so() -> None:
    journal = new_journal()
    journal.note("__consumer_offsets-0", f"group {'g' * 32_000}: rebalance", 0)
    (event,) = journal.entries()
    assert isinstance(event, Event)
    assert len(event.text) == MOST_EVENT_CHARACTERS
    assert event.text.endswith("g…")


def test_others_may_read_while_it_is_written() -> None:
    journal = new_journal(most_bytes=50_000)
    is_over = threading.Event()
    failures: list[BaseException] = []
    read = 0

    def read_on() -> None:
        nonlocal read
        try:
            while not is_over.is_set():
                numbers = [each.number for each in journal.entries() if isinstance(each, Exchange)]
                assert numbers == sorted(numbers)
                read += 1
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read_on)
    reader.start()
    for _ in range(5_000):
        heartbeat(journal)
    is_over.set()
    reader.join()
    assert not failures
    assert read
