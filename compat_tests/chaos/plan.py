"""Which faults a run has, in which order, and for how long: a seed decides all of it before the cluster says anything.

Whom a fault hits is a role, for which the cluster says who has it then: the same seed kills "the leader of a partition
with the draw 0.4" again, whichever node that is. A journal of an earlier run has the nodes as well (`journal.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEADER, FOLLOWER, CONTROLLER = ROLES = ("leader", "follower", "controller")
"""Who is hit: the leader of some partition, one of its followers, the active controller."""

SESSION_TIMEOUT_S = 6.0
"""Of brokers, in a run: a freeze is shorter, or longer by some seconds."""
SHORTEST_S, LONGEST_S = 1.0, 10.0
LONGEST_ABSENCE_S = 600.0
_ABSENT_PART = 0.15
"""A node is away for as much of a run at a time, and for ten minutes at most."""
_SHORTEST_ABSENCE_S = 60.0
_WAITS_FOR_RECOVERY = 0.6
"""How likely; otherwise the next fault meets a cluster that is still busy with the last one."""

PROCESS_FAULTS = (KILL, STOP, SHORT_FREEZE, LONG_FREEZE) = ("kill -9", "stop", "short freeze", "long freeze")
NETWORK_FAULTS = (ISOLATION, TOTAL_ISOLATION, MUTE, DEAF, BRIDGE) = (
    "isolated from nodes",
    "isolated from all",
    "mute",
    "deaf",
    "bridge",
)
ABSENCE = "away for long"
"""A node is killed, and starts when the others have gone on for minutes: after each three turns, in runs with room."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """draw: in [0, 1), which of those that have the role. node: the one, where it is known. waits: whether the next
    fault comes when all replicas are in sync again.
    """

    kind: str
    role: str
    draw: float
    lasts_s: float
    waits: bool
    node: int | None = None

    def choose(self, candidates: Sequence[int]) -> int:
        """Return the node that is hit, of those that have the role."""
        return candidates[int(self.draw * len(candidates))]


def planned_faults(kinds: Sequence[str], seed: int, run_s: float) -> Iterator[PlannedFault]:
    """Each kind once in every turn, so that a short run has met all of them; after three turns, with each role.

    run_s: how long the run is, which decides for how long a node may be away.
    """
    rng = random.Random(seed)
    absence_s = min(run_s * _ABSENT_PART, LONGEST_ABSENCE_S)
    while True:
        first = {kind: rng.randrange(len(ROLES)) for kind in kinds}
        for turn in range(len(ROLES)):
            for kind in rng.sample(kinds, len(kinds)):
                yield _planned(kind, ROLES[(first[kind] + turn) % len(ROLES)], _duration_s(kind, rng), rng)
        if absence_s >= _SHORTEST_ABSENCE_S:
            yield _planned(ABSENCE, rng.choice(ROLES), rng.uniform(absence_s / 2, absence_s), rng)


def _planned(kind: str, role: str, lasts_s: float, rng: random.Random) -> PlannedFault:
    return PlannedFault(kind, role, rng.random(), lasts_s, rng.random() < _WAITS_FOR_RECOVERY)


def _duration_s(kind: str, rng: random.Random) -> float:
    if kind == LONG_FREEZE:
        return rng.uniform(SESSION_TIMEOUT_S + 2, LONGEST_S + 2)
    if kind == SHORT_FREEZE:
        return rng.uniform(SHORTEST_S, SESSION_TIMEOUT_S - 2)
    return rng.uniform(SHORTEST_S, LONGEST_S)
