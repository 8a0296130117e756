"""`python -m tests.raft.simulate SEED` plays one run again and prints what happened."""

from __future__ import annotations

import sys

from .simulation import Simulation, Violation


def main(arguments: list[str]) -> int:
    simulation = Simulation(int(arguments[0]), log=True)
    status = 0
    try:
        result = str(simulation.run())
    except Violation as violation:
        result, status = str(violation), 1
    for line in simulation.world.log or []:
        sys.stdout.write(line[:400] + "\n")
    sys.stdout.write(f"{simulation.plan}\n{result}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
