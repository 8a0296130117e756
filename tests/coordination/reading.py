"""Readers of both isolation levels, and somebody who looks at offsets."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from tests.history.operations import Value
from tests.history.recorder import Recording

from .group_offsets import committed_offsets
from .partitions import EARLIEST, LATEST, OutOfRange, fetch, list_offsets
from .stage import Lost, Stage, Wire


def isolation_name(*, is_committed: bool) -> str:
    return "read_committed" if is_committed else "read_uncommitted"


async def read(stage: Stage, *, is_committed: bool) -> None:
    """From the beginning on; now and then another reader takes its place."""
    wire = Wire(stage, "reader")
    while not stage.is_quiet:
        proc = stage.recorder.new_process()
        stage.recorder.tell(proc, "assign")
        positions = dict.fromkeys(stage.rng.sample(stage.keys, stage.rng.randint(1, len(stage.keys))), 0)
        while not stage.is_quiet and not stage.chance(0.03):
            await stage.pause(80)
            await _poll(stage, wire, proc, positions, is_committed=is_committed)
    wire.cut()


async def _poll(
    stage: Stage, wire: Wire, proc: int, positions: dict[str, int], *, is_committed: bool, is_final: bool = False
) -> bool:
    """Whether there was something."""
    recording = stage.recorder.invoke(proc, "poll")
    recording.note(isolation=isolation_name(is_committed=is_committed))
    if is_final:
        recording.note(final=True, keys=list(positions))
    try:
        found = await fetch(wire, positions, is_committed=is_committed)
    except Lost:
        recording.info()
        return True
    except OutOfRange as behind:
        await _to_the_beginning(wire, recording, positions, behind.key)
        return True
    recording.polled({key: fetched.records for key, fetched in found.items()})
    for name in ("hw", "lso", "start") if stage.are_fetched_marks_kept else ("start",):
        recording.note(**{name: {key: each.marks[name] for key, each in found.items() if name in each.marks}})
    recording.ok()
    moved = any(each.next_offset > positions[key] for key, each in found.items())
    positions.update((key, each.next_offset) for key, each in found.items())
    return moved


async def _to_the_beginning(wire: Wire, recording: Recording, positions: dict[str, int], key: str) -> None:
    """What is there no more is passed over, as by `auto.offset.reset=earliest`; the poll has found nothing."""
    try:
        starts = await list_offsets(wire, [key], EARLIEST, is_committed=False)
    except Lost:
        recording.info()
    else:
        recording.note(start=starts)
        recording.ok()
        positions.update(starts)


async def read_everything(stage: Stage, keys: Sequence[str], *, is_committed: bool) -> None:
    """A fresh reader's last read, in one poll: it is repeated until nothing comes any more."""
    wire = Wire(stage, "last reader")
    proc = stage.recorder.new_process()
    stage.recorder.tell(proc, "assign")
    recording = stage.recorder.invoke(proc, "poll")
    recording.note(isolation=isolation_name(is_committed=is_committed), final=True, keys=list(keys))
    starts = await list_offsets(wire, keys, EARLIEST, is_committed=False)
    positions = dict(starts)
    records: dict[str, list[tuple[int, Value]]] = {key: [] for key in keys}
    has_more = True
    while has_more:
        try:
            found = await fetch(wire, positions, is_committed=is_committed)
        except OutOfRange as behind:
            starts |= await list_offsets(wire, [behind.key], EARLIEST, is_committed=False)
            positions[behind.key] = starts[behind.key]
            continue
        for key, each in found.items():
            records[key] += each.records
        has_more = any(each.next_offset > positions[key] for key, each in found.items())
        positions.update((key, each.next_offset) for key, each in found.items())
    recording.note(start=starts)
    recording.polled(records)
    recording.ok()
    wire.cut()


async def look_at_offsets(stage: Stage, groups: Sequence[tuple[str, str]]) -> None:
    """groups: whose offset of which partition is asked for."""
    wire = Wire(stage, "observer")
    proc = stage.recorder.new_process()
    while not stage.is_quiet:
        await stage.pause(150)
        if stage.rng.random() < 0.5:
            await _list(stage, wire, proc)
        else:
            try:
                await committed_offsets(stage, wire, proc, *stage.rng.choice(groups))
            except Lost:
                await stage.pause(100)
    wire.cut()


async def _list(stage: Stage, wire: Wire, proc: int) -> None:
    recording = stage.recorder.invoke(proc, "offsets")
    name, timestamp, is_committed = stage.rng.choice(
        (("hw", LATEST, False), ("lso", LATEST, True), ("start", EARLIEST, False))
    )
    try:
        recording.note(**{name: await list_offsets(wire, stage.keys, timestamp, is_committed=is_committed)})
    except Lost:
        recording.info()
        await stage.pause(100)
    else:
        recording.ok()


async def open_transactions(stage: Stage) -> dict[str, tuple[int, int]]:
    """Partitions whose last stable offset is below the high watermark: both of them."""
    wire = Wire(stage, "observer")
    ends = await list_offsets(wire, stage.keys, LATEST, is_committed=False)
    stable = await list_offsets(wire, stage.keys, LATEST, is_committed=True)
    wire.cut()
    return {key: (stable[key], ends[key]) for key in stage.keys if stable[key] != ends[key]}


async def wait_for_the_end_of_transactions(stage: Stage, within_s: float) -> None:
    """Raises AssertionError where one hangs."""
    with trio.move_on_after(within_s):
        while await open_transactions(stage):  # noqa: ASYNC110 - what is waited for has no event
            await trio.sleep(0.2)
        return
    hanging = await open_transactions(stage)
    assert not hanging, f"transactions hang: last stable offset, high watermark of {hanging}"
