"""The open transactions that hold the last stable offset of a partition, their producers and whose these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pykbroker.replication.partition import Partition
from pykbroker.server.coordinators.cause_history import Transition
from pykbroker.server.coordinators.transaction_coordinator import TRANSACTION_STATE
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.log_lines import printable
from pykbroker.storage.producers.producer_entry import ProducerEntry
from pykbroker.transactions.transaction import NO_TIMEOUT_MS, Transaction

from .answers import LsoAnswer, OpenTransaction
from .sources import Sources, Turns
from .steps import step_of
from .wording import client, counted, duration, moment

MOST_TRANSACTIONS: Final = 20
"""The oldest ones, of which the first holds the offset."""


async def why_lso(sources: Sources, topic: str, index: int) -> LsoAnswer:
    """Say what holds the last stable offset of a partition."""
    place = f"{printable(topic)}-{index}"
    leader_id = sources.leader_id(topic, index)
    if leader_id is None:
        return LsoAnswer(
            verdict=f"There is no partition {place}.", reason="no-such-partition", topic=topic, partition=index
        )
    partition = sources.led(topic, index)
    if partition is None:
        words = f"Partition {place} has no leader" if leader_id < 0 else f"Broker {leader_id} leads {place}"
        reason = "no-leader" if leader_id < 0 else "led-elsewhere"
        ending = ": nobody reads it now" if leader_id < 0 else ", and was not asked or does not lead it yet"
        return LsoAnswer(verdict=f"{words}{ending}.", reason=reason, topic=topic, partition=index)
    turns = Turns()
    began: list[tuple[int, ProducerEntry]] = []
    for entry in list(partition.log.producers.producers.values()):
        if entry.current_transaction_first_offset is not None:
            began.append((entry.current_transaction_first_offset, entry))
        await turns.took()
    began.sort(key=lambda each: each[0])
    known = await _Coordinators(sources).of({entry.producer_id for _, entry in began[:MOST_TRANSACTIONS]}, turns)
    # One that has ended meanwhile would seem to hang: its coordinator knows nothing of it any more.
    entries = [entry for first_offset, entry in began if entry.current_transaction_first_offset == first_offset]
    transactions = tuple(_open(sources, entry, known, (topic, index)) for entry in entries[:MOST_TRANSACTIONS])
    reason, verdict = _verdict(sources, partition, place, transactions)
    return LsoAnswer(
        verdict=verdict,
        reason=reason,
        facts=tuple(_facts(transactions, len(entries))),
        topic=topic,
        partition=index,
        last_stable_offset=partition.last_stable_offset,
        high_watermark=partition.high_watermark,
        log_end_offset=partition.log.log_end_offset,
        transactions=transactions,
        transaction_count=len(entries),
    )


class _Coordinators:
    """The coordinators that can be asked, and whether these are all."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.are_all = True
        self.by_producer_id: dict[int, tuple[Broker, Transaction]] = {}

    async def of(self, producer_ids: set[int], turns: Turns) -> _Coordinators:
        """Look for the transactions of the producers. There is no index by producer id: all of them are looked at."""
        topic = self._sources.image.topic(TRANSACTION_STATE)
        for index in topic.partitions if topic is not None and producer_ids else ():
            broker = self._sources.broker(topic.partitions[index].leader) if topic is not None else None
            shard = None if broker is None else broker.transactions.coordinator.shard(index)
            if broker is None or shard is None:
                self.are_all = False
                continue
            for transaction in list(shard.transactions.values()):
                if transaction.producer_id in producer_ids:
                    self.by_producer_id[transaction.producer_id] = broker, transaction
                await turns.took()
        return self


def _open(
    sources: Sources, entry: ProducerEntry, coordinators: _Coordinators, place: tuple[str, int]
) -> OpenTransaction:
    first_offset = entry.current_transaction_first_offset or 0
    found = coordinators.by_producer_id.get(entry.producer_id)
    is_known = found is not None and _is_about(found[1], place)
    is_hanging = coordinators.are_all and not is_known
    command = None
    if is_hanging:
        command = (
            f"pykbroker transactions --bootstrap-server HOST:PORT abort --topic {place[0]} --partition {place[1]} "
            f"--start-offset {first_offset}"
        )
    if found is None:
        return OpenTransaction(
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            first_offset=first_offset,
            last_timestamp_ms=entry.last_timestamp,
            is_hanging=is_hanging,
            command=command,
        )
    broker, transaction = found
    now_ms = broker.clock.now_ms()
    history = broker.transactions.coordinator.history.transitions(transaction.transactional_id)
    origin = _newest_client(history)
    is_timed = is_known and transaction.state.wire_name == "Ongoing" and transaction.timeout_ms != NO_TIMEOUT_MS
    return OpenTransaction(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        first_offset=first_offset,
        last_timestamp_ms=entry.last_timestamp,
        transactional_id=transaction.transactional_id,
        coordinator=broker.node_id,
        state=transaction.state.wire_name,
        started_timestamp_ms=transaction.start_timestamp_ms if is_known else None,
        timeout_ms=transaction.timeout_ms,
        ends_in_ms=transaction.start_timestamp_ms + transaction.timeout_ms - now_ms if is_timed else None,
        client_id=None if origin is None else origin.origin.client_id,
        host=None if origin is None else origin.origin.client_host.lstrip("/"),
        principal=None if origin is None else origin.origin.principal,
        is_hanging=is_hanging,
        command=command,
        history=tuple(step_of(each) for each in reversed(history)),
    )


def _is_about(transaction: Transaction, place: tuple[str, int]) -> bool:
    """Tell whether the coordinator will end the transaction in this partition."""
    return not transaction.state.is_at_rest and place in transaction.partitions


def _newest_client(history: Sequence[Transition]) -> Transition | None:
    """Return the newest step that a client asked for itself, and not a partition's leader in its name."""
    return next((each for each in reversed(history) if each.origin.client_host), None)


def _verdict(
    sources: Sources, partition: Partition, place: str, transactions: Sequence[OpenTransaction]
) -> tuple[str, str]:
    stable, high_watermark = partition.last_stable_offset, partition.high_watermark
    if not transactions:
        if stable < high_watermark:
            words = f"a transaction that ended at {stable} waits until its marker is replicated"
            return "marker-not-replicated", f"The last stable offset of {place} is {stable}: {words}."
        where = f"the last stable offset is the high watermark {high_watermark}"
        return "nothing-holds-it", f"No transaction is open in {place}: {where}."
    oldest = transactions[0]
    who = f"producer {oldest.producer_id} at epoch {oldest.producer_epoch}"
    if oldest.transactional_id is not None:
        who = f"{printable(oldest.transactional_id)} ({who})"
    start = f"The last stable offset of {place} stays at {stable}, {high_watermark - stable} before the high watermark"
    if oldest.is_hanging:
        words = f"the transaction of {who} hangs: no coordinator will end it"
        return "hanging-transaction", f"{start}: {words}."
    if oldest.coordinator is None:
        return "open-transaction", f"{start}: a transaction of {who} is open; its coordinator was not asked."
    since = ""
    if oldest.started_timestamp_ms is not None:
        now_ms = sources.any.clock.now_ms()
        since = f" since {duration(now_ms - oldest.started_timestamp_ms)}"
    whose = "" if oldest.client_id is None else f" by {client(oldest.client_id, oldest.host or '')}"
    if oldest.state == "Ongoing":
        return "open-transaction", f"{start}: a transaction of {who} is open{since}{whose}."
    return "undecided-marker", f"{start}: the marker of {who} ({oldest.state}) is not written here yet."


def _facts(transactions: Sequence[OpenTransaction], count: int) -> list[str]:
    facts = []
    for each in transactions:
        words = f"Producer {each.producer_id} has a transaction open from offset {each.first_offset} on"
        words += f"; its newest record has the timestamp {moment(each.last_timestamp_ms)}"
        facts.append(words + ".")
        if each.principal is not None:
            whose = client(each.client_id or "", each.host or "")
            facts.append(f"{printable(each.transactional_id)} is used by {whose}, as {printable(each.principal)}.")
        elif each.transactional_id is not None:
            facts.append(f"Whose client {printable(each.transactional_id)} is, its coordinator has not seen.")
        if each.ends_in_ms is not None:
            left = "is over" if each.ends_in_ms <= 0 else f"is over in {duration(each.ends_in_ms)}"
            facts.append(f"Its time of {duration(each.timeout_ms or 0)} {left}; then the coordinator aborts it.")
        elif each.timeout_ms == NO_TIMEOUT_MS:
            facts.append("It never times out: a two-phase commit decides elsewhere (KIP-939).")
        if each.is_hanging:
            facts.append(f"Nobody but an operator ends it: {each.command}")
    if count > len(transactions):
        facts.append(f"{counted(count - len(transactions), 'further transaction')} began later.")
    return facts
