"""The plan of a reset of groups' offsets: read from a file, shown, exported, and asked for."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import click

from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .confirmation import ask, can_ask
from .entries import Field, Value, print_entries
from .offset_reset import ResetPlace, parse_datetime_ms, parse_duration_ms, write_plan

INACTIVE_STATES = ("Empty", "Dead")
_FIELDS = (
    Field("group", width=15),
    Field("topic", width=15),
    Field("partition", right=True, width=10),
    Field("current_offset", "", right=True),
    Field("new_offset", right=True, width=15),
)
_WITH_CURRENT = (*_FIELDS[:3], Field("current_offset", right=True, width=15), _FIELDS[4])

Offsets = dict[TopicPartition, int]


class PlaceOptions(Protocol):
    """The options that say where to reset to, of which one is given."""

    @property
    def to_earliest(self) -> bool: ...
    @property
    def to_latest(self) -> bool: ...
    @property
    def to_current(self) -> bool: ...
    @property
    def to_offset(self) -> int | None: ...
    @property
    def shift_by(self) -> int | None: ...
    @property
    def to_datetime(self) -> str | None: ...
    @property
    def by_duration(self) -> str | None: ...


class WordOptions(Protocol):
    """The options of the word `reset-offsets` that say what becomes of a plan."""

    @property
    def dry_run(self) -> bool: ...
    @property
    def execute(self) -> bool: ...
    @property
    def yes(self) -> bool: ...
    @property
    def as_json(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """The offsets that each group has, and those that it is to have."""

    current: dict[str, Offsets] = field(default_factory=dict)
    new: dict[str, Offsets] = field(default_factory=dict)

    @property
    def rows(self) -> list[list[Value]]:
        return [
            [group_id, of.topic, of.partition, self.current.get(group_id, {}).get(of), offset]
            for group_id, offsets in self.new.items()
            for of, offset in sorted(offsets.items())
        ]

    def print(self, *, as_json: bool) -> None:
        """Print it in the columns of Kafka's tools."""
        print_entries(_FIELDS, self.rows, as_json=as_json, apart=True)

    def export(self) -> None:
        """Print it as CSV, as `--from-file` reads it."""
        click.echo(write_plan(self.new), nl=False)


async def carry_out_in_words(
    plan: ResetPlan, options: WordOptions, execute: Callable[[ResetPlan], Awaitable[None]], *, also: str = ""
) -> None:
    """Show a plan, and execute it when somebody said so. Raises CommandFailed where nobody did.

    also: what else is done then, for the question: ` and delete 2 internal topics`.
    """
    print_entries(_WITH_CURRENT, plan.rows, as_json=options.as_json)
    changed = sum(row[3] != row[4] for row in plan.rows)
    if options.dry_run or not plan.rows:
        return
    if not (options.execute or options.yes):
        if not can_ask():
            raise CommandFailed(
                "Nothing was reset: nobody can be asked here, and neither --execute nor --yes was given"
            )
        await ask(f"Reset {changed} offset{'' if changed == 1 else 's'}{also}")
    await execute(plan)


def place_of(options: PlaceOptions) -> ResetPlace:
    """Return the place that the options name. Raises CommandFailed for a time that is none."""
    return ResetPlace(
        to_earliest=options.to_earliest,
        to_latest=options.to_latest,
        to_current=options.to_current,
        to_offset=options.to_offset,
        shift_by=options.shift_by,
        to_timestamp_ms=_timestamp_ms(options),
    )


def _timestamp_ms(options: PlaceOptions) -> int | None:
    if options.to_datetime is not None:
        return parse_datetime_ms(options.to_datetime)
    if options.by_duration is not None:
        return time.time_ns() // 1_000_000 - parse_duration_ms(options.by_duration)
    return None


def read_plan_file(path: Path) -> str:
    """Return the text of a plan. Raises CommandFailed."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
