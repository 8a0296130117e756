"""Search for seeds whose runs find planted bugs, where the pinned ones do so no more.

    python -m tests.find_seed SIMULATION [BUG ...]

SIMULATION is coordination, raft, replication or cluster; without BUG all of its bugs are sought. Each bug is tried with
its pinned seed first, then with those behind it. What is found is printed, and belongs in the simulation's `bugs`
(`planted_bugs` for raft). The exit code is 1 where a pinned seed is to be replaced, 2 where nothing was found.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from tests.simulations import Hunt

HUNTS = {
    "coordination": "tests.coordination.bugs",
    "raft": "tests.raft.planted_bugs",
    "replication": "tests.replication.simulation.bugs",
    "cluster": "tests.cluster.bugs",
}
MOST_RUNS = 2000


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in HUNTS:
        sys.stderr.write(__doc__ or "")
        return 64
    logging.disable(logging.CRITICAL)
    hunt: Hunt = import_module(HUNTS[arguments[0]]).HUNT
    status = 0
    for bug in arguments[1:] or hunt.seeds:
        status = max(status, _find(hunt, bug))
    return status


def _find(hunt: Hunt, bug: str) -> int:
    pinned, found = hunt.seeds[bug], hunt.find(bug, MOST_RUNS)
    if found is None:
        _tell(f"{bug}: no seed from {pinned} to {pinned + MOST_RUNS - 1}")
        return 2
    _tell(f"{bug}: {found}" if found == pinned else f"{bug}: {found} instead of {pinned}")
    return int(found != pinned)


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
