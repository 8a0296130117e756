"""One seed, one run of three nodes: who acts, what goes wrong, how it ends, and the verdict on the history."""

from __future__ import annotations

import trio

from pykbroker.sim.determinism import run_deterministic
from tests.coordination.copying import copy
from tests.coordination.simulation import Acting, end
from tests.coordination.simulation import Cast as SingleCast
from tests.coordination.stage import COPY, SOURCE
from tests.simulations import Outcome, Played

from .administration import Administrator
from .faults import Troublemaker
from .oracles.loop import moving
from .oracles.membership import until_rejoined
from .oracles.watch import Watch
from .plan import Plan
from .quorum import safe_quorum
from .stage import ClusterStage

STARTS_WITHIN_S = 30.0
QUIET_WITHIN_S = 60.0


class Cast(Acting[Plan]):
    __slots__ = ()

    @classmethod
    def of(cls, seed: int) -> Cast:
        single = SingleCast.of(seed)
        return cls(single.clients, Plan.of(seed), single.sizes)


def simulate(seed: int) -> Outcome:
    """Raises whatever a node or a client found wrong by itself."""
    watch = Watch(seed)
    with safe_quorum(), watch.watching():
        return run_deterministic(_run, seed, watch, seed=seed).judged()


async def _run(seed: int, watch: Watch) -> Played:
    played = None
    with moving():
        played = await _play(seed, watch)
    assert played is not None
    return played


async def _play(seed: int, watch: Watch) -> Played:
    cast = Cast.of(seed)
    async with trio.open_nursery() as nursery:
        stage = ClusterStage(seed, nursery, cast.faults, watch.lives)
        with trio.fail_after(STARTS_WITHIN_S):
            await stage.cluster.start(nursery)
            await stage.prepare()
        if copy in cast.clients:
            stage.recorder.tell(stage.recorder.new_process(), "copy", pairs=[[SOURCE, COPY]])
        trouble = Troublemaker(stage)
        await _act(stage, cast, trouble, watch)
        await end(stage, cast.clients)
        await watch.check_end(stage)
        nursery.cancel_scope.cancel()
    return Played(stage.recorder.operations(), stage.deaths, trouble.told)


async def _act(stage: ClusterStage, cast: Cast, trouble: Troublemaker, watch: Watch) -> None:
    """Whoever still waits for an answer when all was quiet for long enough waits in vain: TooSlowError."""
    async with trio.open_nursery() as acting:
        for client in cast.clients:
            acting.start_soon(client, stage)
        with trio.fail_after(cast.faults.lasts_s + 30):
            async with trio.open_nursery() as troubling:
                troubling.start_soon(trouble.run)
                troubling.start_soon(Administrator(stage, trouble.tell).run)
                troubling.start_soon(watch.topics.run, stage)
                await trio.sleep(cast.faults.lasts_s)
                stage.is_quiet = True
                trouble.heal()
            await trouble.start_all()
        await until_rejoined(watch.lives)
        await stage.wait_until_replicated(QUIET_WITHIN_S)
        acting.cancel_scope.deadline = trio.current_time() + QUIET_WITHIN_S
    if acting.cancel_scope.cancelled_caught:
        raise trio.TooSlowError("clients do not get on when all is quiet")
