"""What producers and brokers do to a transaction coordinator, step by step; each function is one transcript.

The coordinator that is talked to runs with the configuration below, and the scenarios are played at every level of
transaction.version that they name: `transcripts/LEVEL/NAME.txt`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from pykbroker.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
)

from .session import Session

CONFIG = {
    "transaction.state.log.num.partitions": "3",
    "transaction.max.timeout.ms": "60000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transactional.id.expiration.ms": "8000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    "offsets.topic.num.partitions": "3",
}
TOPICS = ("events", "orders")
PARTITIONS = 3

Producer = tuple[int, int]
NO_PRODUCER: Producer = (-1, -1)
STRANGER: Producer = (7_000_000, 0)
"""An id that nobody was given."""
LAST_EPOCH = 32767


@dataclass(frozen=True)
class Scenario:
    play: Callable[[Session], Awaitable[None]]
    levels: tuple[int, ...]
    told_records: int | None
    needs_handlers: bool

    @property
    def is_long(self) -> bool:
        """Many requests that are not told."""
        return self.told_records is not None


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    *levels: int, told_records: int | None = None, needs_handlers: bool = False
) -> Callable[[Callable[[Session], Awaitable[None]]], Callable[[Session], Awaitable[None]]]:
    """levels: of transaction.version. told_records: of each id only the last ones. needs_handlers: it is about more
    than what the coordinator decides."""

    def register(function: Callable[[Session], Awaitable[None]]) -> Callable[[Session], Awaitable[None]]:
        SCENARIOS[function.__name__] = Scenario(function, levels or (0, 1, 2), told_records, needs_handlers)
        return function

    return register


def init(transactional_id: str | None, expected: Producer = NO_PRODUCER, timeout: int = 60_000) -> Any:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout,
        producer_id=expected[0],
        producer_epoch=expected[1],
    )


def topics(partitions: dict[str, list[int]]) -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in partitions.items()]


def add(transactional_id: str, producer: Producer, partitions: dict[str, list[int]]) -> AddPartitionsToTxnRequest:
    """As producers ask, up to version 3."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=topics(partitions),
    )


def part(transactional_id: str, producer: Producer, partitions: dict[str, list[int]], *, verify: bool = False) -> Any:
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify,
        topics=topics(partitions),
    )


def batch(*parts: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnRequest:
    """As brokers ask, from version 4 on."""
    return AddPartitionsToTxnRequest(transactions=list(parts))


def end(transactional_id: str, producer: Producer, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer[0], producer_epoch=producer[1], committed=commit
    )


def describe(*transactional_ids: str) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=list(transactional_ids))


def producer_of(response: Any) -> Producer:
    return response.producer_id, response.producer_epoch


def at(producer: Producer, epoch: int) -> Producer:
    return producer[0], epoch


async def begin(session: Session, transactional_id: str, **fields: Any) -> Producer:
    return producer_of(await session.call("p", init(transactional_id, **fields), 5))


async def settle(session: Session, transactional_id: str) -> None:
    await session.settle(transactional_id)
    await session.call("a", describe(transactional_id), 0)


# InitProducerId


@scenario()
async def a_producer_comes_again(session: Session) -> None:
    first = await begin(session, "again")
    second = await begin(session, "again")
    await session.call("p", init("again", expected=first), 3)
    await session.call("p", init("again", expected=first), 4)
    third = producer_of(await session.call("p", init("again", expected=second), 5))
    session.note("the answer was lost")
    await session.call("p", init("again", expected=second), 5)
    await session.call("p", init("again", expected=third), 4)
    session.note("another one comes; then nobody is taken for one who asks again")
    await begin(session, "again", timeout=1000)
    await session.call("p", init("again", expected=third), 5)
    await session.call("p", init("again", expected=(third[0] + 1_000_000, 0)), 5)
    await session.call("a", describe("again"), 0)


@scenario(2)
async def a_producer_of_a_forgotten_id(session: Session) -> None:
    producer = await begin(session, "elsewhere")
    await session.call("p", init("forgotten", expected=producer), 5)
    await session.call("p", init("forgotten-too", expected=(producer[0] + 1_000_000, 7)), 3)


@scenario(2)
async def requests_that_make_no_sense(session: Session) -> None:
    await session.call("p", init(""), 5)
    for timeout in (-1, 0, 60_001):
        await session.call("p", init("sense", timeout=timeout), 5)
    for version in (1, 2, 4):
        await session.call("p", end("", STRANGER, commit=True), version)
        await session.call("p", end("nobody", STRANGER, commit=True), version)
    await session.call("p", end("", STRANGER, commit=True), 5)
    await session.call("p", end("nobody", STRANGER, commit=False), 5)
    for version in (0, 2, 3):
        await session.call("p", add("nobody", STRANGER, {"orders": [0]}), version)
        await session.call("p", add("", STRANGER, {"orders": [0]}), version)
    await session.call("b", batch(part("nobody", STRANGER, {"orders": [0, 1]})), 4)
    await session.call("b", batch(part("nobody", STRANGER, {"orders": [0, 1]}, verify=True)), 5)
    await session.call("b", batch(part("", STRANGER, {"orders": [0]}, verify=True)), 5)
    await session.call("b", batch(part("", STRANGER, {"orders": [0]})), 5)
    await session.call("a", describe("", "nobody"), 0)


@scenario(2, needs_handlers=True)
async def half_a_producer(session: Session) -> None:
    await session.call("p", init("half", expected=(5_000_000, -1)), 5)
    await session.call("p", init("half", expected=(-1, 5)), 5)
    await session.call("p", init(None, expected=(5_000_000, -1)), 5)
    await session.call("p", init(None, expected=(5_000_000, 1)), 5)


@scenario()
async def a_producer_begins_while_a_transaction_is_open(session: Session) -> None:
    old = await begin(session, "open")
    await session.call("p", add("open", old, {"orders": [0, 1], "events": [2]}), 3)
    await session.call("a", describe("open"), 0)
    await session.call("q", init("open"), 5)
    await settle(session, "open")
    new = producer_of(await session.call("q", init("open"), 5))
    for version in (1, 2, 5):
        await session.call("p", end("open", old, commit=True), version)
    await session.call("p", add("open", old, {"orders": [0]}), 1)
    await session.call("p", add("open", old, {"orders": [0]}), 2)
    await session.call("q", add("open", new, {"orders": [2]}), 3)
    session.note("the producer itself starts over, and says which one it is")
    await session.call("q", init("open", expected=new), 5)
    await settle(session, "open")
    await session.call("q", init("open", expected=new), 5)
    await session.call("q", init("open", expected=at(new, new[1] + 1)), 5)
    await session.call("a", describe("open"), 0)


@scenario()
async def a_stale_producer_begins_while_a_transaction_is_open(session: Session) -> None:
    stale = await begin(session, "stale")
    await begin(session, "stale")
    current = await begin(session, "stale")
    await session.call("p", add("stale", current, {"orders": [0]}), 3)
    await session.call("q", init("stale", expected=(stale[0] + 1_000_000, 0)), 5)
    await session.call("q", init("stale", expected=stale), 5)
    await settle(session, "stale")
    await session.call("q", init("stale", expected=stale), 5)


# The first protocol


@scenario()
async def transactions_of_the_first_protocol(session: Session) -> None:
    producer = await begin(session, "first")
    session.note("nothing to end")
    await session.call("p", end("first", producer, commit=True), 4)
    await session.call("p", end("first", producer, commit=False), 4)
    session.note("a commit")
    await session.call("p", add("first", producer, {"orders": [0, 2]}), 0)
    await session.call("p", add("first", producer, {"orders": [2], "events": [1]}), 3)
    await session.call("p", add("first", producer, {"orders": [2]}), 3)
    await session.call("p", end("first", at(producer, 1), commit=True), 4)
    await session.call("p", end("first", (producer[0] + 1_000_000, 0), commit=True), 4)
    await session.call("p", end("first", producer, commit=True), 4)
    await settle(session, "first")
    await session.call("p", end("first", producer, commit=True), 4)
    await session.call("p", end("first", producer, commit=False), 4)
    session.note("an abort")
    await session.call("p", add("first", producer, {"orders": [1]}), 3)
    await session.call("p", end("first", producer, commit=False), 0)
    await settle(session, "first")
    await session.call("p", end("first", producer, commit=False), 3)
    await session.call("p", end("first", producer, commit=True), 3)
    session.note("the next one goes on with the next epoch")
    await begin(session, "first")


@scenario()
async def offsets_in_the_first_protocol(session: Session) -> None:
    producer = await begin(session, "offsets")
    for version in (0, 3, 4):
        asked = AddOffsetsToTxnRequest(
            transactional_id="offsets", producer_id=producer[0], producer_epoch=producer[1], group_id="readers"
        )
        await session.call("p", asked, version)
    for version in (1, 2):
        asked = AddOffsetsToTxnRequest(
            transactional_id="offsets", producer_id=producer[0], producer_epoch=7, group_id="readers"
        )
        await session.call("p", asked, version)
    asked = AddOffsetsToTxnRequest(
        transactional_id="nobody", producer_id=STRANGER[0], producer_epoch=0, group_id="readers"
    )
    await session.call("p", asked, 4)
    await session.call("a", describe("offsets"), 0)
    await session.call("p", end("offsets", producer, commit=True), 4)
    await settle(session, "offsets")


@scenario()
async def a_transaction_without_partitions(session: Session) -> None:
    producer = await begin(session, "nothing")
    await session.call("p", add("nothing", producer, {}), 3)
    await session.call("a", describe("nothing"), 0)
    await session.call("p", end("nothing", producer, commit=True), 4)
    await settle(session, "nothing")


# The second protocol


@scenario(1, 2)
async def transactions_of_the_second_protocol(session: Session) -> None:
    producer = await begin(session, "second")
    session.note("a commit")
    await session.call("b", batch(part("second", producer, {"orders": [0, 2]})), 4)
    await session.call("b", batch(part("second", producer, {"orders": [2], "events": [1]})), 5)
    await session.call("p", end("second", at(producer, 1), commit=True), 5)
    await session.call("p", end("second", (producer[0] + 1_000_000, 0), commit=True), 5)
    next_producer = producer_of(await session.call("p", end("second", producer, commit=True), 5))
    await settle(session, "second")
    session.note("the answer was lost")
    await session.call("p", end("second", producer, commit=True), 5)
    await session.call("p", end("second", producer, commit=False), 5)
    session.note("nothing to end")
    await session.call("p", end("second", next_producer, commit=True), 5)
    session.note("an abort")
    await session.call("b", batch(part("second", producer, {"orders": [1]})), 5)
    await session.call("b", batch(part("second", next_producer, {"orders": [1]})), 5)
    await session.call("p", end("second", producer, commit=True), 5)
    third = producer_of(await session.call("p", end("second", next_producer, commit=False), 5))
    await settle(session, "second")
    await session.call("p", end("second", next_producer, commit=False), 5)
    await session.call("p", end("second", next_producer, commit=True), 5)
    await session.call("p", end("second", producer, commit=True), 5)
    await session.call("p", end("second", third, commit=True), 5)
    session.note("the producer starts over")
    await session.call("p", init("second", expected=third), 5)


@scenario(1, 2)
async def aborts_without_a_transaction(session: Session) -> None:
    producer = await begin(session, "idle")
    await session.call("p", end("idle", producer, commit=True), 5)
    await session.call("p", end("idle", at(producer, 1), commit=False), 5)
    second = producer_of(await session.call("p", end("idle", producer, commit=False), 5))
    await settle(session, "idle")
    await session.call("p", end("idle", producer, commit=False), 5)
    third = producer_of(await session.call("p", end("idle", second, commit=False), 5))
    await settle(session, "idle")
    await session.call("b", batch(part("idle", third, {"orders": [0]})), 5)
    fourth = producer_of(await session.call("p", end("idle", third, commit=True), 5))
    await settle(session, "idle")
    await session.call("p", end("idle", fourth, commit=False), 5)
    await settle(session, "idle")


@scenario(0)
async def the_second_protocol_where_it_is_not_allowed(session: Session) -> None:
    producer = await begin(session, "early")
    await session.call("p", add("early", producer, {"orders": [0]}), 3)
    await session.call("p", end("early", producer, commit=True), 5)
    await session.call("a", describe("early"), 0)


@scenario(1, 2)
async def a_producer_changes_its_protocol(session: Session) -> None:
    producer = await begin(session, "both")
    await session.call("p", add("both", producer, {"orders": [0]}), 3)
    await session.call("p", end("both", producer, commit=True), 4)
    await session.settle("both")
    await session.call("b", batch(part("both", producer, {"orders": [1]})), 5)
    second = producer_of(await session.call("p", end("both", producer, commit=True), 5))
    await session.settle("both")
    await session.call("p", add("both", second, {"orders": [2]}), 3)
    await session.call("p", end("both", second, commit=False), 4)
    await session.settle("both")
    await session.call("p", end("both", second, commit=False), 5)
    await session.settle("both")


@scenario(2)
async def a_broker_asks_what_a_producer_may_write(session: Session) -> None:
    producer = await begin(session, "verified")
    for version in (4, 5):
        await session.call("b", batch(part("verified", producer, {"orders": [0]}, verify=True)), version)
    await session.call("p", add("verified", producer, {"orders": [0]}), 3)
    await session.call("b", batch(part("verified", producer, {"orders": [0, 1]}, verify=True)), 5)
    await session.call("b", batch(part("verified", at(producer, 1), {"orders": [0]}, verify=True)), 5)
    await session.call("b", batch(part("verified", (producer[0] + 1_000_000, 0), {"orders": [0]}, verify=True)), 5)
    await session.call("p", end("verified", producer, commit=True), 4)
    await session.settle("verified")
    await session.call("b", batch(part("verified", producer, {"orders": [0]}, verify=True)), 5)


@scenario(2)
async def several_transactions_in_one_request(session: Session) -> None:
    one, two = await begin(session, "one"), await begin(session, "two")
    await session.call(
        "b",
        batch(
            part("one", one, {"orders": [0], "events": [0, 1]}),
            part("two", two, {"orders": [0]}, verify=True),
            part("three", one, {"orders": [0]}),
        ),
        4,
    )
    await session.call("b", batch(part("one", at(one, 3), {"orders": [1]}), part("two", two, {"orders": [1]})), 5)
    await session.call("a", describe("one", "two"), 0)
    await session.call("p", end("one", one, commit=True), 5)
    await settle(session, "one")


@scenario(2, needs_handlers=True)
async def partitions_that_do_not_exist(session: Session) -> None:
    producer = await begin(session, "lost")
    await session.call("b", batch(part("lost", producer, {"nowhere": [0], "orders": [2]})), 5)
    await session.call("b", batch(part("lost", producer, {"nowhere": [0], "orders": [2]}, verify=True)), 5)
    await session.call("p", add("lost", producer, {"nowhere": [0], "orders": [2, 9]}), 3)
    await session.call("a", describe("lost"), 0)


# What time does


@scenario()
async def a_transaction_takes_too_long(session: Session) -> None:
    producer = await begin(session, "slow", timeout=300)
    await session.call("p", add("slow", producer, {"orders": [0]}), 3)
    await session.wait_for_state("slow", "CompleteAbort")
    await session.call("a", describe("slow"), 0)
    await session.call("p", add("slow", producer, {"orders": [1]}), 3)
    await session.call("p", end("slow", producer, commit=True), 4)
    await session.call("p", end("slow", producer, commit=False), 4)
    await session.call("p", init("slow", expected=producer, timeout=300), 5)
    await begin(session, "slow", timeout=300)


@scenario(2)
async def a_transaction_of_the_second_protocol_takes_too_long(session: Session) -> None:
    producer = await begin(session, "lazy", timeout=300)
    await session.call("b", batch(part("lazy", producer, {"orders": [0]})), 5)
    await session.wait_for_state("lazy", "CompleteAbort")
    await session.call("p", end("lazy", producer, commit=True), 5)
    await session.call("p", end("lazy", producer, commit=False), 5)
    await session.call("p", end("lazy", producer, commit=False), 4)


@scenario(2)
async def nobody_uses_an_id(session: Session) -> None:
    producer = await begin(session, "unused")
    await session.wait_for_state("unused", "")
    await session.call("a", describe("unused"), 0)
    await session.call("p", end("unused", producer, commit=True), 4)
    await session.call("p", init("unused", expected=producer), 5)


# Epochs


async def use_up(session: Session, transactional_id: str, last: int) -> Producer:
    """Until the producer has this epoch."""
    producer = await session.broker.use_up_epochs(transactional_id, last)
    session.note(f"epoch {last}")
    return producer


@scenario(0, 2, told_records=3)
async def the_epochs_are_used_up(session: Session) -> None:
    await use_up(session, "used", LAST_EPOCH - 2)
    producer = await begin(session, "used")
    new = producer_of(await session.call("p", init("used", expected=producer), 5))
    await session.call("p", init("used", expected=producer), 5)
    await session.call("p", init("used", expected=at(producer, 5)), 5)
    await session.call("p", init("used", expected=new), 5)


@scenario(0, 2, told_records=4)
async def the_last_epoch_fences(session: Session) -> None:
    producer = await use_up(session, "edge", LAST_EPOCH - 1)
    await session.call("p", add("edge", producer, {"orders": [0]}), 3)
    await session.call("q", init("edge"), 5)
    await settle(session, "edge")
    await session.call("q", init("edge"), 5)
    await session.call("p", init("edge", expected=producer), 5)


@scenario(2, told_records=6)
async def the_second_protocol_at_the_last_epoch(session: Session) -> None:
    producer = await use_up(session, "verge", LAST_EPOCH - 2)
    await session.call("b", batch(part("verge", producer, {"orders": [0]})), 5)
    last = producer_of(await session.call("p", end("verge", producer, commit=True), 5))
    await settle(session, "verge")
    await session.call("b", batch(part("verge", last, {"orders": [0]})), 5)
    new = producer_of(await session.call("p", end("verge", last, commit=True), 5))
    await settle(session, "verge")
    session.note("the answer was lost")
    await session.call("p", end("verge", last, commit=True), 5)
    await session.call("p", end("verge", last, commit=False), 5)
    await session.call("b", batch(part("verge", last, {"orders": [0]})), 5)
    await session.call("b", batch(part("verge", new, {"orders": [0]})), 5)
    await session.call("p", end("verge", last, commit=True), 5)
    await session.call("p", end("verge", new, commit=False), 5)
    await settle(session, "verge")


# What administrators see


@scenario(2)
async def transactions_are_listed(session: Session) -> None:
    one, two = await begin(session, "list-one"), await begin(session, "list-two")
    await session.call("p", add("list-one", one, {"orders": [0]}), 3)
    await session.call("p", add("list-two", two, {"orders": [0]}), 3)
    await session.call("p", end("list-two", two, commit=True), 4)
    await session.settle("list-two")
    await begin(session, "list-three")
    all_filters: list[dict[str, Any]] = [
        {},
        {"state_filters": ["Ongoing", "CompleteCommit"]},
        {"state_filters": ["ongoing", "Nothing"]},
        {"state_filters": ["Dead", "PrepareEpochFence", "PrepareCommit", "PrepareAbort", "CompleteAbort"]},
        {"producer_id_filters": [one[0]]},
        {"producer_id_filters": [one[0]], "state_filters": ["Empty"]},
    ]
    for filters in all_filters:
        await session.call("a", ListTransactionsRequest(**filters), 0)
    await session.sleep(200)
    for duration in (0, 100, 50_000):
        await session.call("a", ListTransactionsRequest(duration_filter=duration), 1)
    for pattern in ("", "list-.*", "list", ".*one|.*three", "(", "list-(?!o).*"):
        await session.call("a", ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    await session.call("p", end("list-one", one, commit=False), 4)
    await session.settle("list-one")
