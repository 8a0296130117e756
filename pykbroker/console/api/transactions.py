"""Transactions: `/api/transactions` lists those of all coordinators, `/api/transaction` describes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.connection import Connection
from pykbroker.client.errors import check
from pykbroker.client.metadata import Node
from pykbroker.client.transactions import describe_transaction
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.messages.transaction_admin import ListTransactionsRequest, ListTransactionsResponse

from .every_broker import ask_every, nodes_of
from .pages import Page, PageAsked, page_of

_LONGEST_ID: Final = 32_767
_MOST_PARTITIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id with the state of its latest transaction."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class Transactions:
    """One page. states: those that there are; errors: of brokers whose transactions are missing."""

    transactions: Page[TransactionRow]
    states: Sequence[str]
    errors: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction. started_ms: None where none is open; partitions: the first ones, as `orders-0`, of so many."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: Sequence[str]
    count: int


async def transactions(asking: Asking, given: Arguments) -> Transactions:
    """Return a page. Raises BadInput, ClientError."""
    asked, text = PageAsked.of(given), given.text("filter", "", longest=1024).lower()
    state = given.text("state", "")
    nodes = await nodes_of(asking.cluster)
    listed = await ask_every(asking.cluster, nodes.values(), _list)

    def page(found: Mapping[int, Sequence[TransactionRow]]) -> tuple[Page[TransactionRow], list[str]]:
        rows = [row for of_node in found.values() for row in of_node]
        wanted = [row for row in rows if text in row.transactional_id.lower() and state in ("", row.state)]
        wanted.sort(key=lambda row: row.transactional_id)
        return page_of(wanted, asked), sorted({row.state for row in rows})

    rows, states = await asking.threads.run(page, listed.of)
    return Transactions(rows, states, listed.errors)


async def transaction(asking: Asking, given: Arguments) -> Transaction:
    """Raises BadInput, KafkaError, ClientError."""
    node, found = await describe_transaction(asking.cluster, given.text("id", longest=_LONGEST_ID))
    partitions = [f"{topic.topic}-{each}" for topic in found.topics for each in topic.partitions]
    return Transaction(
        transactional_id=found.transactional_id,
        coordinator=node.node_id,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        state=found.transaction_state,
        timeout_ms=found.transaction_timeout_ms,
        started_ms=found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
        partitions=partitions[:_MOST_PARTITIONS],
        count=len(partitions),
    )


async def _list(node: Node, connection: Connection) -> list[TransactionRow]:
    response = await connection.request(ListTransactionsRequest(), ListTransactionsResponse)
    check(response.error_code)
    return [
        TransactionRow(each.transactional_id, node.node_id, each.producer_id, each.transaction_state)
        for each in response.transaction_states
    ]
