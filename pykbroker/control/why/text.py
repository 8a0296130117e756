"""An answer as lines, from its JSON: for `str()` in tests, and for `pykbroker why`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pykbroker.control.one_line import one_line

from .wording import moment

Json: TypeAlias = Mapping[str, Any]

_SHOWN: Final = 10
_NONE: Final = "-"


def of_answer(answer: Json) -> str:
    """Return an answer as text: the verdict, the facts, and then what there is in tables."""
    lines = [one_line(answer["verdict"])]
    lines += [f"  - {one_line(fact)}" for fact in answer.get("facts", ())]
    for title, rows in _TABLES.get(answer.get("question", ""), _no_tables)(answer):
        if len(rows) > 1:
            lines += ["", f"{title}:", *_aligned(rows)]
    return "\n".join(lines)


def _no_tables(answer: Json) -> Iterator[tuple[str, list[list[str]]]]:
    return iter(())


def _of_group(answer: Json) -> Iterator[tuple[str, list[list[str]]]]:
    members = answer["members"]
    title = f"Members ({answer['member_count']})"
    rows = [["MEMBER", "CLIENT", "HOST", "EPOCH", "STATE", "LAST SIGN OF LIFE", "ASSIGNMENT"]]
    for each in members[:_SHOWN]:
        rows.append(
            [
                each["member_id"],
                each["client_id"],
                each["host"],
                _text(each["epoch"]),
                _text(each["state"]),
                _ago(each["last_sign_ago_ms"]),
                _assignment(each["assignment"]),
            ]
        )
    yield title, rows
    rows = [["WHEN", "WHY", "REQUEST", "CLIENT", "HOST"]]
    for each in answer["rebalances"][:_SHOWN]:
        rows.append([_moment(each["timestamp_ms"]), each["why"], *_origin(each)])
    yield "Last rebalances", rows
    rows = [["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"]]
    for each in answer["partitions"][:_SHOWN]:
        rows.append(
            [each["topic"], *map(_text, (each["partition"], each["committed"], each["end_offset"], each["lag"]))]
        )
        rows[-1].append(_text(each["member_id"]))
    yield f"Partitions ({answer['partition_count']})", rows
    yield from _of_tasks(members[:_SHOWN])
    yield from _of_shared(answer)


def _of_shared(answer: Json) -> Iterator[tuple[str, list[list[str]]]]:
    title = f"Partitions ({answer['partition_count']})"
    rows = [["TOPIC", "PARTITION", "STATE", "START", "HIGH", "LAG", "IN FLIGHT UNTIL", "ACQUIRED", "BY"]]
    for each in answer.get("shared", ())[:_SHOWN]:
        row = [each["topic"], *map(_text, (each["partition"], each["state"], each["start_offset"]))]
        row += map(_text, (each["high_watermark"], each["lag"], each["end_offset"], each["acquired"] or None))
        holders = [f"{holder['member_id']} ({holder['client_id']})" for holder in each["holders"]]
        rows.append([*row, ", ".join(holders[:_SHOWN]) or _NONE])
    yield title, rows


def _of_tasks(members: Sequence[Json]) -> Iterator[tuple[str, list[list[str]]]]:
    rows = [["MEMBER", "ACTIVE", "STANDBY", "WARMUP"]]
    for each in members:
        if tasks := each.get("tasks"):
            rows.append([each["member_id"], *(_cut(tasks.get(kind, ())) for kind in ("active", "standby", "warmup"))])
    yield "Tasks", rows


def _of_consumer(answer: Json) -> Iterator[tuple[str, list[list[str]]]]:
    rows = [["TOPIC", "PARTITION", "REASON", "POSITION", "COMMITTED", "STABLE", "HIGH", "END", "LAST FETCH", "MEMBER"]]
    for each in answer["partitions"][:_SHOWN]:
        offsets = (
            each[name] for name in ("position", "committed", "last_stable_offset", "high_watermark", "log_end_offset")
        )
        last = "now" if each["is_fetching"] else _ago(each["last_fetch_ago_ms"])
        row = [each["topic"], _text(each["partition"]), each["reason"], *map(_text, offsets), last]
        rows.append([*row, _text(each["member_id"])])
    yield f"Partitions ({answer['partition_count']})", rows


def _of_lso(answer: Json) -> Iterator[tuple[str, list[list[str]]]]:
    rows = [["PRODUCER", "EPOCH", "FIRST OFFSET", "TRANSACTIONAL ID", "STATE", "SINCE", "CLIENT", "HOST", "PRINCIPAL"]]
    for each in answer["transactions"][:_SHOWN]:
        since = each["started_timestamp_ms"]
        rows.append(
            [
                *map(_text, (each["producer_id"], each["producer_epoch"], each["first_offset"])),
                _text(each["transactional_id"]),
                "hangs" if each["is_hanging"] else _text(each["state"]),
                _NONE if since is None else _moment(since),
                *map(_text, (each["client_id"], each["host"], each["principal"])),
            ]
        )
    yield f"Open transactions ({answer['transaction_count']})", rows


def _of_throttle(answer: Json) -> Iterator[tuple[str, list[list[str]]]]:
    rows = [["QUOTA", "OF", "LIMIT", "RATE", "THROTTLED FOR"]]
    for each in answer["quotas"]:
        rate = _NONE if each["rate"] is None else f"{each['rate']:.1f}"
        limit = _NONE if each["limit"] is None else f"{each['limit']:g}"
        rows.append([each["key"], each["entity"], limit, rate, f"{each['throttle_ms']} ms"])
    yield "Quotas", rows


_Tables: TypeAlias = Callable[[Json], Iterator[tuple[str, list[list[str]]]]]
_TABLES: Final[Mapping[str, _Tables]] = {
    "group": _of_group,
    "consumer": _of_consumer,
    "lso": _of_lso,
    "throttle": _of_throttle,
}


def _origin(step: Json) -> list[str]:
    return [step["api"] or _NONE, step["client_id"] or _NONE, step["host"] or _NONE]


def _assignment(assignment: Json) -> str:
    return _cut([f"{topic}-{index}" for topic, indexes in assignment.items() for index in indexes])


def _cut(names: Sequence[str]) -> str:
    """Return as many as a line has room for."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more or _NONE


def _moment(timestamp_ms: int) -> str:
    return _NONE if timestamp_ms < 0 else moment(timestamp_ms)


def _ago(ms: int | None) -> str:
    return _NONE if ms is None else f"{ms / 1000:.1f} s ago"


def _text(value: object) -> str:
    return _NONE if value is None or value == "" else str(value)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    clean = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in clean) for column in range(len(clean[0]))]
    for row in clean:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
