"""Share groups (KIP-932): a record is delivered until a member settles it, by `accept` or `reject`; not behind that.

A settlement that was answered is stored, so that no leader takes a second one of the same record, whoever led
meanwhile. A leader that was cut off or stood still may give out once more what its successor has had settled: it asks
nobody before a delivery, and has its member's acknowledgement refused. So a delivery counts where its acknowledgement
was taken, or where it was asked for after `heal`, when every node knows who leads; others are told as `stale-delivery`.

A delivery's count is stored with its release, and not with the delivery: the successor of a leader that dies gives
records with the counts of their last releases. So counts rise from an answered release on, and none falls from one
delivery to the next where both were asked for after `heal`: where the leader changes then, a count may stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .findings import Anomaly
from .index import History
from .operations import OK, Operation, Value
from .values import describe

_SETTLES = ("accept", "reject")
_MOST_UNSEEN = 2
"""Of a record that the limit ended, as many of its deliveries were seen at least as make the limit when multiplied by
this: not every answer gets to its member.
"""


class _Given(NamedTuple):
    """One delivery. asked_ns: nobody had asked for it before. is_sure: whether a leader gave it that still was one."""

    operation: Operation
    delivery_count: int
    asked_ns: int
    is_sure: bool


class _Said(NamedTuple):
    """One acknowledgement, of the delivery with this count."""

    operation: Operation
    kind: str
    delivery_count: int
    outcome: str


@dataclass(slots=True)
class _Record:
    given: list[_Given] = field(default_factory=list)
    said: list[_Said] = field(default_factory=list)

    @property
    def settlements(self) -> list[_Said]:
        return [each for each in self.said if each.kind in _SETTLES and each.outcome == OK]

    @property
    def may_be_settled(self) -> bool:
        return any(each.kind in _SETTLES and each.outcome != "fail" for each in self.said)

    @property
    def witness(self) -> tuple[Operation, ...]:
        return tuple(dict.fromkeys([each.operation for each in self.given] + [each.operation for each in self.said]))


_Place = tuple[str, str, int]
"""Group, partition and offset."""


def check_shares(history: History) -> Iterator[Anomaly]:
    declared = [operation for operation in history.operations if operation.kind == "shared"]
    limits: dict[str, int] = {each.details["group"]: each.details["limit"] for each in declared}
    records = _records(history)
    for place, record in records.items():
        yield from _counts(place, record, limits.get(place[0]))
        yield from _settled_twice(place, record)
        yield from _delivered_behind_settlement(place, record)
        yield from _count_behind_release(place, record)
        yield from _falling_counts(place, record, history.healed_ns)
    for operation in declared:
        for key in operation.keys:
            yield from _unsettled(history, records, operation, key)


def _records(history: History) -> dict[_Place, _Record]:
    found: dict[_Place, _Record] = defaultdict(_Record)
    acknowledged = _acknowledged(history)
    for operation in history.operations:
        asked_ns = operation.details.get("asked_ns", operation.invoked_ns)
        is_quiet = history.healed_ns is not None and asked_ns >= history.healed_ns
        for group, key, offset, count in operation.deliveries:
            is_sure = is_quiet or (operation.number, group, key, offset) in acknowledged
            found[group, key, offset].given.append(_Given(operation, count, asked_ns, is_sure))
        for group, key, offset, count, kind, outcome in operation.acknowledgements:
            found[group, key, offset].said.append(_Said(operation, kind, count, outcome))
    return found


def _acknowledged(history: History) -> set[tuple[int, str, str, int]]:
    """Deliveries, by their operations' numbers, of which a leader took the acknowledgement. An operation that has both,
    as a fetch does, acknowledges what came before.
    """
    found: set[tuple[int, str, str, int]] = set()
    for operations in history.by_process.values():
        last: dict[_Place, int] = {}
        for operation in operations:
            for group, key, offset, _, _, outcome in operation.acknowledgements:
                if outcome == OK and (group, key, offset) in last:
                    found.add((last[group, key, offset], group, key, offset))
            for group, key, offset, _ in operation.deliveries:
                last[group, key, offset] = operation.number
    return found


def _name(place: _Place) -> str:
    group, key, offset = place
    return f"{key} offset {offset} of {group}"


def _counts(place: _Place, record: _Record, limit: int | None) -> Iterator[Anomaly]:
    for each in record.given:
        if each.delivery_count < 1 or (limit is not None and each.delivery_count > limit):
            message = f"{_name(place)} was delivered with the count {each.delivery_count}, the limit is {limit}"
            yield Anomaly("delivery-limit", message, (each.operation,))


def _settled_twice(place: _Place, record: _Record) -> Iterator[Anomaly]:
    settlements = record.settlements
    if len(settlements) > 1:
        kinds = " and ".join(each.kind for each in settlements)
        message = f"{_name(place)} was settled {len(settlements)} times: {kinds}"
        yield Anomaly("settled-twice", message, tuple(each.operation for each in settlements))


def _delivered_behind_settlement(place: _Place, record: _Record) -> Iterator[Anomaly]:
    for settlement in record.settlements:
        for each in record.given:
            if each.asked_ns > settlement.operation.completed_ns:
                name = "delivered-again" if each.is_sure else "stale-delivery"
                message = f"{_name(place)} was delivered behind an answered {settlement.kind}"
                yield Anomaly(name, message, (settlement.operation, each.operation))


def _count_behind_release(place: _Place, record: _Record) -> Iterator[Anomaly]:
    for release in record.said:
        if release.kind != "release" or release.outcome != OK:
            continue
        for each in record.given:
            if each.asked_ns > release.operation.completed_ns and each.delivery_count <= release.delivery_count:
                name = "delivery-count" if each.is_sure else "stale-delivery-count"
                counts = f"{each.delivery_count} behind a release of {release.delivery_count}"
                message = f"{_name(place)} was delivered with the count {counts}"
                yield Anomaly(name, message, (release.operation, each.operation))


def _falling_counts(place: _Place, record: _Record, healed_ns: int | None) -> Iterator[Anomaly]:
    if healed_ns is None:
        return
    quiet = sorted((each for each in record.given if each.asked_ns >= healed_ns), key=lambda each: each.asked_ns)
    for index, later in enumerate(quiet):
        for earlier in quiet[:index]:
            if earlier.operation.completed_ns < later.asked_ns and later.delivery_count < earlier.delivery_count:
                message = (
                    f"{_name(place)} was delivered with the count {later.delivery_count} after {earlier.delivery_count}"
                )
                yield Anomaly("delivery-count", message, (earlier.operation, later.operation))


def _unsettled(history: History, records: dict[_Place, _Record], declared: Operation, key: str) -> Iterator[Anomaly]:
    """Of what the last reader of all found, when the group was at the end of the partition."""
    group, limit = declared.details["group"], declared.details["limit"]
    for operation in history.operations:
        if not (operation.is_final and operation.outcome == OK and operation.reads_committed):
            continue
        for read in operation.reads:
            if read.key == key:
                record = records.get((group, key, read.offset), _Record())
                if not record.may_be_settled and not _is_spent(record, limit):
                    yield _unsettled_anomaly(history, group, key, read.value, record)


def _is_spent(record: _Record, limit: int) -> bool:
    return max((each.delivery_count for each in record.given), default=0) * _MOST_UNSEEN >= limit


def _unsettled_anomaly(history: History, group: str, key: str, value: Value, record: _Record) -> Anomaly:
    log = history.logs[key]
    what = f"was delivered {len(record.given)} times, and never accepted" if record.given else "was never delivered"
    writer = log.writers.get(value)
    witness = record.witness if writer is None else (writer, *record.witness)
    return Anomaly("unsettled", f"{describe(log, value)} {what} by {group}", witness)
