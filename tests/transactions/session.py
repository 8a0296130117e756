"""A conversation with a transaction coordinator, written down as a transcript (see `tests.groups.session`).

What is different in every run gets a name: producer ids are P1, P2 and so on, times are `<time>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsResponse,
)
from pykbroker.protocol.schema import Message, Struct
from pykbroker.transactions.records import TransactionRecord, decode_record
from pykbroker.transactions.transaction import TransactionState

_UNTOLD = {"throttle_time_ms"}
_POLL_MS = 20
_TIMES = re.compile("timestamp_ms$|time_ms$")


@dataclass(frozen=True, order=True)
class Marker:
    """A control record in a partition of somebody's topic."""

    partition: str
    producer_id: int
    producer_epoch: int
    is_commit: bool


class Broker(Protocol):
    async def call(self, client: str, request: Message, version: int) -> Message:
        """One request of one client; clients are connections whose client id is their name."""
        ...

    async def sleep(self, ms: int) -> None: ...

    async def use_up_epochs(self, transactional_id: str, last: int) -> tuple[int, int]:
        """A producer that begins, and comes again until it has this epoch."""
        ...

    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values in `__transaction_state`, partition by partition."""
        ...

    def markers(self) -> list[Marker]:
        """In the partitions of all topics; in each in their order."""
        ...


class Session:
    """lines: the transcript so far."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.lines: list[str] = []
        self._producer_ids: dict[int, str] = {}
        self._transactional_ids: set[str] = set()

    async def call(self, client: str, request: Message, version: int) -> Any:
        self._tell(client, ">", request, version)
        self._transactional_ids.add(getattr(request, "transactional_id", None) or "")
        response = await self.broker.call(client, request, version)
        if isinstance(response, ListTransactionsResponse):
            response.transaction_states = [
                each for each in response.transaction_states if each.transactional_id in self._transactional_ids
            ]
        self._tell(client, "<", response, version)
        return response

    async def settle(self, transactional_id: str) -> None:
        """Until all markers are written."""
        while True:
            asked = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            response = await self.broker.call("settle", asked, 0)
            assert isinstance(response, DescribeTransactionsResponse)
            (described,) = response.transaction_states
            if not described.transaction_state.startswith("Prepare"):
                return
            await self.broker.sleep(_POLL_MS)

    async def wait_for_state(self, transactional_id: str, state: str) -> None:
        """Something that the coordinator does of its own accord; "" is an id that is gone."""
        while True:
            asked = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            response = await self.broker.call("settle", asked, 0)
            assert isinstance(response, DescribeTransactionsResponse)
            if response.transaction_states[0].transaction_state == state:
                self.lines.append(f"... until {transactional_id} is {state or 'gone'}")
                return
            await self.broker.sleep(_POLL_MS)

    async def sleep(self, ms: int) -> None:
        self.lines.append(f"... {ms} ms")
        await self.broker.sleep(ms)

    def note(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def tell_log(self, *, last: int | None = None) -> None:
        """What the conversation left in the coordinator's log, and the markers it led to; the last of each.

        Of a transaction that is complete one record is told: pykbroker writes it once more where Apache Kafka's
        coordinator answers a repeated EndTxn of the first protocol without asking whether it still is the coordinator.
        """
        found = [decode_record(key, value) for key, value in self.broker.records()]
        for transactional_id in sorted(self._transactional_ids - {""}):
            records: list[TransactionRecord] = []
            for each in found:
                if each.key.transactional_id == transactional_id and not (
                    records[-1:] == [each] and _is_complete(each)
                ):
                    records.append(each)
            for record in records[-(last or len(records)) :]:
                shown = "tombstone" if record.value is None else f"v{record.value_version} {self._struct(record.value)}"
                self.lines.append(f"log: {transactional_id}: {shown}")
        markers = [marker for marker in self.broker.markers() if marker.producer_id in self._producer_ids]
        for marker in sorted(markers, key=lambda marker: marker.partition):
            outcome = "COMMIT" if marker.is_commit else "ABORT"
            producer = f"{self._producer_ids[marker.producer_id]} epoch {marker.producer_epoch}"
            self.lines.append(f"marker: {marker.partition}: {producer} {outcome}")

    def _tell(self, client: str, direction: str, message: Message, version: int) -> None:
        self.lines.append(f"{client} {direction} {type(message).__name__} v{version} {self._struct(message)}")

    def _struct(self, struct: Struct) -> str:
        shown = []
        for field in type(struct).__schema__.fields:
            value = getattr(struct, field.name)
            if field.name not in _UNTOLD and value != field.new_default():
                shown.append(f"{field.name}={self._value(field.name, value)}")
        return "{" + ", ".join(shown) + "}"

    def _value(self, name: str, value: Any) -> str:
        match value:
            case Struct():
                return self._struct(value)
            case list():
                # Kafka's hash maps have no order that anyone could rely on.
                each_name = "producer_id" if name == "producer_id_filters" else name
                return "[" + ", ".join(sorted(self._value(each_name, each) for each in value)) + "]"
            case int() if name == "transaction_status":
                return TransactionState(value).wire_name
            case int() if name.endswith("producer_id") and value >= 0:
                return self._producer_ids.setdefault(value, f"P{len(self._producer_ids) + 1}")
            case int() if name.endswith("error_code"):
                return ErrorCode(value).name
            case int() if _TIMES.search(name) and value > 0:
                return "<time>"
            case _:
                return repr(value)


def _is_complete(record: TransactionRecord) -> bool:
    complete = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    return record.value is not None and record.value.transaction_status in complete
