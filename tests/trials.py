"""Steps of a coordinator as trials: each is made and taken back first, and has to leave no trace.

So that every test of the rules is a test of this, the harnesses of groups and transactions make their steps here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from random import Random
from typing import Any

from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.schema import Struct
from pykbroker.state_machine import Result
from pykbroker.transactions.shard import TransactionShard

_ALL_OF_THE_FIRST, _ONE_OF = 200, 50
"""Steps that are taken back; looking at all that there is takes its time."""


class Trials:
    """drawn, draw_again: what the shard has drawn from outside so far, so that a step is the same when made again."""

    def __init__(self, drawn: Callable[[], Any], draw_again: Callable[[Any], None]) -> None:
        self._drawn = drawn
        self._draw_again = draw_again
        self._steps = 0

    @classmethod
    def of_random(cls, rng: Random) -> Trials:
        return cls(rng.getstate, rng.setstate)

    def make(self, shard: GroupShard | TransactionShard, step: Callable[[], Result[Any]]) -> Result[Any]:
        """The step happens once: by turns after a trial that stays, and without one."""
        self._steps += 1
        if self._steps <= _ALL_OF_THE_FIRST or self._steps % _ONE_OF == 0:
            self._take_back(shard, step)
        if self._steps % 2:
            return step()
        shard.begin_trial()
        result = step()
        shard.end_trial(is_kept=True)
        return result

    def _take_back(self, shard: GroupShard | TransactionShard, step: Callable[[], Result[Any]]) -> None:
        before = state_of(shard)
        drawn = self._drawn()
        shard.begin_trial()
        step()
        shard.end_trial(is_kept=False)
        assert state_of(shard) == before, "a step that was taken back left a trace"
        self._draw_again(drawn)


def state_of(shard: GroupShard | TransactionShard) -> Any:
    """All that requests and time can change, as values that no later step reaches."""
    if isinstance(shard, TransactionShard):
        table = shard._table  # type: ignore[reportPrivateUsage]
        return _frozen([table.by_id, sorted(table.ongoing), shard.next_deadline_ms()])
    deadlines = {key: entry[0] for key, entry in shard._deadlines._current.items()}
    return _frozen([shard.groups, shard.offsets.committed, shard.offsets.pending, deadlines, shard.next_deadline_ms()])


def _frozen(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _frozen(each) for key, each in value.items()}
        case str() | bytes() | int() | frozenset() | set() | Enum() | None:
            return value
        case Sequence():
            return [_frozen(each) for each in value]
        case Struct():
            return {field.name: _frozen(getattr(value, field.name)) for field in type(value).__schema__.fields}
        case _ if is_dataclass(value):
            return {field.name: _frozen(getattr(value, field.name)) for field in fields(value) if field.name != "order"}
        case _:
            return {name: _frozen(each) for name, each in vars(value).items() if name != "_offsets"}
