"""`python -m tests.cluster [-v] SEED [FILE]` plays a run again, prints the verdict, and writes the history."""

from __future__ import annotations

import sys

from tests.simulations import play_again

from .simulation import Cast, simulate


def main(arguments: list[str]) -> int:
    return play_again(arguments, lambda seed: str(Cast.of(seed)), simulate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
