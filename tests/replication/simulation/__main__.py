"""`python -m tests.replication.simulation SEED` plays a run again and tells what happens."""

from __future__ import annotations

import logging
import sys

from .invariants import Violated
from .world import Plan, simulate


def main(arguments: list[str]) -> int:
    logging.basicConfig(format="          %(message)s", stream=sys.stdout)
    seed = int(arguments[0])
    sys.stdout.write(f"{Plan.of(seed)}\n")
    try:
        world = simulate(seed, is_told=True)
    except Violated as violated:
        sys.stdout.write(f"violated: {violated}\n")
        return 1
    sys.stdout.write(
        f"{len(world.invariants.acknowledged)} of {len(world.invariants.committed)} committed records acknowledged,"
        f" {world.faults} faults, {world.elections} elections\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
