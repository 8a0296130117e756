"""Plant bugs, one after the other, and see which of them the tests find.

    python -m tests.mutations [--package P ...] [--only TEXT ...] [--jobs N] [--rounds R]
                              [--sample N [--seed S]] [--results FILE]

Without `--sample` the bugs are those of the list; with it N random ones of each package, which the tests of that
package alone are asked about. `--only` takes those whose name or file has the text in it. A line is printed for each
bug, then the score; FILE gets a line of JSON for each. The exit code is 1 where a bug survived without a reason.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from .mutant import PACKAGES, Mutant
from .planted_bugs import planted_bugs
from .score import Result, commit, table, write
from .tree import Tree
from .trial import try_mutant

_SEED = 13
OF_THE_PACKAGE = 2


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    mutants = [each for each in _mutants(options) if _is_asked_for(each, options.only)]
    _tell(f"{len(mutants)} mutants of {commit()}" + (f", seed {options.seed}" if options.sample else ""))
    rounds = min(options.rounds, OF_THE_PACKAGE) if options.sample else options.rounds
    results = list(_try_all(mutants, options.jobs, rounds))
    if options.results:
        write(results, options.results)
    _tell("\n" + table(results))
    return 0 if all(each.is_expected for each in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--package", action="append", choices=PACKAGES, help="all of them, unless it is given")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rounds", type=int, choices=(1, 2, 3), default=3, help="1: only the tests that are near")
    parser.add_argument("--sample", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--results", type=Path, metavar="FILE")
    return parser


def _mutants(options: argparse.Namespace) -> list[Mutant]:
    packages = options.package or list(PACKAGES)
    if options.sample:
        from .sample import sample  # it needs cosmic-ray, which nothing else does

        return [mutant for package in packages for mutant in sample(package, options.sample, options.seed)]
    return [bug.mutant() for package in packages for bug in planted_bugs(package)]


def _is_asked_for(mutant: Mutant, texts: Sequence[str]) -> bool:
    return not texts or any(text.lower() in f"{mutant.name} {mutant.path}".lower() for text in texts)


def _try_all(mutants: Sequence[Mutant], jobs: int, rounds: int) -> Iterator[Result]:
    """Yield the results as they come, in the order of the mutants."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as directory, ThreadPoolExecutor(jobs) as threads:
        trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(jobs):
            trees.put(Tree(Path(directory, str(number))))

        def try_one(mutant: Mutant) -> Result:
            tree = trees.get()
            try:
                return Result(mutant, try_mutant(tree, mutant, rounds))
            finally:
                trees.put(tree)

        for result in threads.map(try_one, mutants):
            _tell(result.line())
            yield result


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
