"""One seed, one run: who acts, what goes wrong, how it ends, and the verdict on the history."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar
from unittest.mock import patch

import trio

from pykbroker.groups.offsets import pending_offsets
from pykbroker.server.coordinators import assignment_threads
from pykbroker.server.network.transport import Address
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.disk import SimulatedDisk
from tests.cluster.oracles.directories import check_directories
from tests.simulations import Outcome, Played

from .consumer_members import CONSUMER_GROUP, live_in_a_consumer_group
from .copying import COPIERS, copy, copy_the_rest
from .faults import DURABLE, Faults, cut_connections, kill_the_node
from .group_offsets import SIMPLE_GROUP, commit, commit_simply, committed_offsets
from .members import CLASSIC_GROUP, live_in_a_classic_group
from .partitions import batch_of, produce_request, produced
from .pipelining import produce_pipelined
from .producing import produce_idempotently
from .reading import look_at_offsets, read, read_everything, wait_for_the_end_of_transactions
from .sessions import read_in_sessions
from .sizes import LATEST, TRIMMED, WIDE, Sizes
from .stage import COPY, ORDERS, SOURCE, Lost, Stage, Wire, topic_of
from .transactional import transact
from .trimming import delete_records


class Client(Protocol):
    """A function that acts on a stage."""

    __name__: str

    async def __call__(self, stage: Stage, /) -> None: ...


GROUPS = (SIMPLE_GROUP, CLASSIC_GROUP, CONSUMER_GROUP)
QUIET_WITHIN_S = 30.0

FaultsT = TypeVar("FaultsT")


@dataclass(frozen=True, slots=True)
class Acting(Generic[FaultsT]):
    """Who acts in a run, what goes wrong, and how large all is."""

    clients: Sequence[Client]
    faults: FaultsT
    sizes: Sizes

    def __str__(self) -> str:
        names = ", ".join(client.__name__.strip("_") for client in self.clients)
        return f"{self.faults}\n{self.sizes}\n{names}"


class Cast(Acting[Faults]):
    __slots__ = ()

    @classmethod
    def of(cls, seed: int) -> Cast:
        rng = random.Random(f"cast {seed}")
        faults = Faults(
            is_power_cut=rng.random() < 0.25,
            deaths=rng.choice((0, 1, 1, 2, 2, 3)),
            cuts_s=rng.choice((None, 0.3, 1.0)),
            lasts_s=rng.uniform(0.4, 1.3),
        )
        writers = rng.choice((*_WRITERS, [_producer, copy], [_producer, copy, copy]))
        readers = rng.sample([_committed_reader, _uncommitted_reader, _observer], 2)
        sizes = Sizes.of(seed)
        return cls([*writers, *readers, *_of_sizes(sizes)], faults, sizes)


def _of_sizes(sizes: Sizes) -> list[Client]:
    clients: list[Client] = [_pipelining_producer] * (sizes.in_flight > 0)
    if sizes.keeps or sizes.is_compacted:
        clients.append(_producer_of_short_logs)
    if sizes.keeps:
        clients.append(delete_records)
    return [*clients, read_in_sessions] if sizes.has_sessions else clients


async def _producer(stage: Stage) -> None:
    await produce_idempotently(stage, [*ORDERS, SOURCE])


async def _pipelining_producer(stage: Stage) -> None:
    await produce_pipelined(stage, [*ORDERS, *stage.keys_of(WIDE, TRIMMED)])


async def _producer_of_short_logs(stage: Stage) -> None:
    await produce_idempotently(stage, stage.keys_of(TRIMMED, LATEST))


async def _one_transactional_id(stage: Stage) -> None:
    await transact(stage, "one")


async def _another_transactional_id(stage: Stage) -> None:
    await transact(stage, "another")


async def _member(stage: Stage) -> None:
    """All those of a run follow one protocol."""
    if stage.seed % 2:
        await live_in_a_classic_group(stage)
    else:
        await live_in_a_consumer_group(stage)


async def _committed_reader(stage: Stage) -> None:
    await read(stage, is_committed=True)


async def _uncommitted_reader(stage: Stage) -> None:
    await read(stage, is_committed=False)


async def _observer(stage: Stage) -> None:
    places = [(group, key) for group in GROUPS for key in ORDERS]
    await look_at_offsets(stage, [*places, (COPIERS, SOURCE)])


_WRITERS: list[list[Client]] = [
    [_producer, _one_transactional_id, _one_transactional_id],
    [_one_transactional_id, _one_transactional_id, _another_transactional_id],
    [_member, _member, _member, commit_simply],
]


def simulate(seed: int) -> Outcome:
    """Raises whatever the node or a client found wrong by itself. In some runs every assignment counts as a large one,
    which is computed beside the event loop, and in some every transaction, whose offsets move one after another."""
    small = 0 if seed % 4 == 0 else assignment_threads.SMALL
    most_moved = 1 if seed % 4 == 1 else pending_offsets.MOST_MOVED
    with patch.object(assignment_threads, "SMALL", small), patch.object(pending_offsets, "MOST_MOVED", most_moved):
        played, disk = run_deterministic(_run, seed, seed=seed)
    check_directories({1: disk})
    return played.judged()


async def _run(seed: int) -> tuple[Played, SimulatedDisk]:
    cast = Cast.of(seed)
    async with trio.open_nursery() as nursery:
        stage = Stage(seed, nursery, DURABLE if cast.faults.is_power_cut else None)
        await stage.node.start(nursery)
        await stage.prepare()
        if copy in cast.clients:
            stage.recorder.tell(stage.recorder.new_process(), "copy", pairs=[[SOURCE, COPY]])
        await _act(stage, cast)
        await end(stage, cast.clients)
        await stage.node.stop()
        nursery.cancel_scope.cancel()
    told = [f"the node died {stage.deaths} times"]
    return Played(stage.recorder.operations(), stage.deaths, told), stage.node.disk


async def _act(stage: Stage, cast: Cast) -> None:
    """Whoever still waits for an answer when all was quiet for long enough waits in vain: TooSlowError."""
    async with trio.open_nursery() as acting:
        acting.start_soon(cut_connections, stage, cast.faults)
        for client in cast.clients:
            acting.start_soon(client, stage)
        end = trio.current_time() + cast.faults.lasts_s
        await kill_the_node(stage, cast.faults)
        await trio.sleep_until(end)
        stage.is_quiet = True
        acting.cancel_scope.deadline = trio.current_time() + QUIET_WITHIN_S
    if acting.cancel_scope.cancelled_caught:
        raise trio.TooSlowError("clients do not get on when all is quiet")


async def end(stage: Stage, clients: Sequence[Client]) -> None:
    """All is quiet: transactions end, everything can be written, committed and read."""
    proc = stage.recorder.new_process()
    stage.recorder.tell(proc, "heal")
    wire = Wire(stage, "last")
    with trio.fail_after(QUIET_WITHIN_S):
        await _until_answered(stage.find_coordinators, wire)
    await wait_for_the_end_of_transactions(stage, QUIET_WITHIN_S)
    is_copied = copy in clients
    await _last_send(stage, wire, [key for key in stage.keys if not (is_copied and key == COPY)])
    if is_copied:
        with trio.fail_after(QUIET_WITHIN_S):
            await copy_the_rest(stage)
        await wait_for_the_end_of_transactions(stage, QUIET_WITHIN_S)
    for group in GROUPS:
        for key in ORDERS:
            await _last_commit(stage, wire, proc, group, key)
    few, many = [[key] for key in stage.keys if topic_of(key)[0] != WIDE], stage.keys_of(WIDE)
    for keys in [*few, *([many] if many else [])]:
        for is_committed in (True, False):
            await read_everything(stage, keys, is_committed=is_committed)
    wire.cut()


async def _until_answered(ask: Callable[[Wire], Awaitable[None]], wire: Wire) -> None:
    while True:
        try:
            await ask(wire)
        except Lost:
            await trio.sleep(0.1)
        else:
            return


async def _last_send(stage: Stage, wire: Wire, keys: Sequence[str]) -> None:
    """To all partitions, of each broker's in one request."""
    of_brokers: dict[Address, list[str]] = {}
    for key in keys:
        address, _ = await wire.attempt(lambda of=key: stage.leader_of(wire, of))  # type: ignore[misc]
        of_brokers.setdefault(address, []).append(key)
    for address, led in of_brokers.items():
        sends = {key: stage.recorder.invoke(stage.recorder.new_process(), "send") for key in led}
        batches: dict[str, bytes] = {}
        for key, recording in sends.items():
            value = stage.new_value_for(key)
            batches[key] = batch_of([value])
            recording.sending(key, value)
            recording.note(bytes=len(batches[key]))
        request = produce_request(batches, blocks_s=2.0)
        answers = produced(await wire.attempt(partial(wire.ask_at, address, request, 9)))
        for key, recording in sends.items():
            assert answers[key].error_code == 0, answers[key]
            recording.sent(0, answers[key].base_offset)
            recording.ok()


async def _last_commit(stage: Stage, wire: Wire, proc: int, group: str, key: str) -> None:
    """What members left behind is over after their session, and the group takes anybody's offsets."""
    with trio.fail_after(QUIET_WITHIN_S):
        while await commit(stage, wire, proc, group, key):  # noqa: ASYNC110 - nobody tells when a session is over
            await trio.sleep(0.5)
    await committed_offsets(stage, wire, proc, group, key)
