"""What goes wrong: the node dies at any change of its disk, also while it starts; connections are cut."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.sim.process import ProcessDied
from pykbroker.transactions.records import decode_record
from pykbroker.transactions.transaction import TransactionState

from .stage import Stage

_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

DURABLE = {"log.flush.interval.messages": "1"}
"""What a broker needs that is to keep its promises through a power cut."""


@dataclass(frozen=True, slots=True)
class Faults:
    """deaths: how often the node dies. cuts_s: the mean time between two cuts of connections; None is never."""

    deaths: int
    is_power_cut: bool
    cuts_s: float | None
    lasts_s: float


def _is_decision(path: str, data: bytes) -> bool:
    """A transaction that is to be committed or aborted: its markers follow."""
    if "__transaction_state" not in path or not path.endswith(".log"):
        return False
    for batch in iter_batches(data):
        for record in iter_records(batch):
            value = decode_record(record.key, record.value).value
            if value is not None and value.transaction_status in _PREPARED:
                return True
    return False


def _is_marker(path: str, data: bytes) -> bool:
    return path.endswith(".log") and any(batch.header.is_control for batch in iter_batches(data))


def _is_of_groups(path: str, data: bytes) -> bool:
    return "__consumer_offsets" in path and path.endswith(".log")


async def kill_the_node(stage: Stage, faults: Faults) -> None:
    """Ends when the node is up for the last time."""
    for _ in range(faults.deaths):
        await trio.sleep(stage.rng.uniform(0.05, faults.lasts_s / faults.deaths))
        await _die(stage, faults)
        await _start_again(stage, faults)


async def _die(stage: Stage, faults: Faults) -> None:
    """At one of the next changes of its disk, mostly around a decision of a coordinator; at once where nothing changes.

    A decision is an append to a coordinator's log, and what follows from it are the next changes.
    """
    stage.deaths += 1
    node = stage.node
    node.die_at(None, is_power_cut=faults.is_power_cut)
    aim = stage.rng.choice((_is_decision, _is_marker, _is_of_groups, None))
    if aim is None:
        node.die_at(node.process.changes + stage.rng.randint(0, 12), is_power_cut=faults.is_power_cut)
    else:
        node.process.die_after_append(aim, changes=stage.rng.randint(0, 2))
    with trio.move_on_after(stage.rng.uniform(0.2, 1)):
        await node.wait_until_ended()
        return
    if faults.is_power_cut:
        await node.crash()
    else:
        await node.kill()


async def _start_again(stage: Stage, faults: Faults) -> None:
    while True:
        await stage.pause(500)
        dies_at = stage.rng.randint(0, 40) if stage.chance(0.3) else None
        try:
            await stage.node.start(stage.nursery, dies_at=dies_at, is_power_cut=faults.is_power_cut)
        except ProcessDied:
            stage.deaths += 1
            continue
        stage.node.die_at(None)
        if not stage.node.process.is_dead:
            return
        await stage.node.wait_until_ended()


async def cut_connections(stage: Stage, faults: Faults) -> None:
    while faults.cuts_s is not None and not stage.is_quiet:
        await trio.sleep(stage.rng.expovariate(1 / faults.cuts_s))
        stage.cut_a_connection()
