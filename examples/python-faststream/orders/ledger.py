"""The book of priced orders, in SQLite. An order that comes twice is in it once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from .models import PricedOrder

_SCHEMA = """
create table if not exists entries (id text primary key, customer text not null, total text not null);
create table if not exists batches (number integer primary key, orders integer not null);
"""


class Ledger:
    def __init__(self, path: Path | str = ":memory:") -> None:
        self._database = sqlite3.connect(path, timeout=30)
        self._database.executescript(_SCHEMA)

    def record(self, orders: Iterable[PricedOrder]) -> int:
        """Enter the orders as one batch, and return how many of them are new."""
        rows = [(order.id, order.customer, str(order.total)) for order in orders]
        with self._database:
            before = self._database.total_changes
            self._database.executemany("insert or ignore into entries values (?, ?, ?)", rows)
            new = self._database.total_changes - before
            self._database.execute("insert into batches (orders) values (?)", (len(rows),))
        return new

    def orders(self) -> list[str]:
        return [row[0] for row in self._database.execute("select id from entries order by id")]

    def turnover(self, customer: str) -> Decimal:
        rows = self._database.execute("select total from entries where customer = ?", (customer,))
        return sum((Decimal(row[0]) for row in rows), Decimal(0))

    def batches(self) -> list[int]:
        """How many orders each batch had."""
        return [row[0] for row in self._database.execute("select orders from batches order by number")]

    def close(self) -> None:
        self._database.close()
