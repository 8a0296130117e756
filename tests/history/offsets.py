"""Offsets only grow: what was given away, or told, is never taken back in a later operation.

Only where a trimmed log begins may be an older answer again, if its topic is declared with `start_returns`: retention
is each replica's own, and one that lags behind may be elected.
"""

from __future__ import annotations

from collections.abc import Iterator

from .findings import Anomaly
from .index import History
from .operations import NEVER_NS, Operation

_Floor = dict[tuple[str, str], tuple[int, Operation]]
"""By kind of mark and partition: how high it was, and who knew."""


def check_offsets(history: History) -> Iterator[Anomaly]:
    floor: _Floor = {}
    returning = {
        ("start", key)
        for each in history.operations
        if each.kind == "trimmed" and each.details.get("start_returns")
        for key in each.keys
    }
    by_completion = history.by_completion
    position = 0
    for operation in history.by_invocation:
        if not (operation.sends or operation.marks):
            continue
        while position < len(by_completion):
            ended = by_completion[position]
            if ended.completed_ns >= operation.invoked_ns or ended.completed_ns == NEVER_NS:
                break
            _raise(floor, ended)
            position += 1
        for name in returning:
            floor.pop(name, None)
        yield from _below(floor, operation)


def _raise(floor: _Floor, operation: Operation) -> None:
    for kind, key, offset in operation.marks:
        _raise_one(floor, (kind, key), offset, operation)
    if operation.outcome == "ok":
        # What is acknowledged, or read, is below the high watermark.
        for key, sent, _ in operation.sends:
            if sent is not None:
                _raise_one(floor, ("hw", key), sent + 1, operation)
        for key, offset, _ in operation.reads:
            _raise_one(floor, ("hw", key), offset + 1, operation)


def _raise_one(floor: _Floor, name: tuple[str, str], offset: int, operation: Operation) -> None:
    known = floor.get(name)
    if known is None or known[0] < offset:
        floor[name] = offset, operation


def _below(floor: _Floor, operation: Operation) -> Iterator[Anomaly]:
    for kind, key, offset in operation.marks:
        known = floor.get((kind, key))
        if known is not None and offset < known[0]:
            message = f"{kind} of {key} was at least {known[0]}, and is {offset} later"
            yield Anomaly("offset-reuse", message, (known[1], operation))
    for key, sent, _ in operation.sends:
        known = floor.get(("hw", key))
        if sent is not None and known is not None and sent < known[0]:
            message = f"{key} was written up to {known[0]}, and offset {sent} is given away later"
            yield Anomaly("offset-reuse", message, (known[1], operation))
