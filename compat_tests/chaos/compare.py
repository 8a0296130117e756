"""`python -m compat_tests.chaos.compare DIRECTORY...`: runs that were kept, side by side.

A client that Apache Kafka's nodes drive to the same words under the same faults has them of its own accord.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from .journal import FaultEntry, NodesReturns, recorded_entries, returns_of
from .outcome import Told


@dataclass(frozen=True, slots=True)
class KeptRun:
    told: Told
    faults: list[FaultEntry]

    @classmethod
    def read(cls, directory: Path) -> KeptRun:
        """Raises OSError, ValueError or TypeError where it is not the directory of a run that came to its end."""
        lines = (directory / "faults.jsonl").read_text(encoding="utf-8").splitlines()
        return cls(Told.read(directory), [*recorded_entries(lines)])

    @property
    def returns(self) -> NodesReturns:
        return returns_of(self.faults)


Row = tuple[str, ...]


@click.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(directories: tuple[Path, ...]) -> None:
    """Runs that were kept, side by side."""
    try:
        runs = [KeptRun.read(each) for each in directories]
    except (OSError, ValueError, TypeError) as error:
        raise click.ClickException(f"not a run that came to its end: {error}") from error
    click.echo("\n".join(compared(runs)))


def compared(runs: Sequence[KeptRun]) -> Iterator[str]:
    """Yield the lines of what the runs have in common and what each has."""
    yield f"{same_faults(runs)} faults are the same in each run, from the first on"
    yield from _table([*_figures(runs), *_steps(runs), *_ends(runs)])


def same_faults(runs: Sequence[KeptRun]) -> int:
    """Return how many faults, from the first on, each run has with the same role and duration, on whatever node."""
    plans = [[(each.kind, each.role, each.draw, each.lasts_s, each.waits) for each in run.faults] for run in runs]
    together = [*zip(*plans, strict=False)]
    return next((number for number, each in enumerate(together) if len(set(each)) > 1), len(together))


def _figures(runs: Sequence[KeptRun]) -> Iterator[Row]:
    def row(name: str, figure: Callable[[KeptRun], object]) -> Row:
        return (name, *(f"{figure(run)}" for run in runs))

    yield row("nodes", lambda run: ", ".join(f"{count} × {kind}" for kind, count in Counter(run.told.nodes).items()))
    yield row("seed", lambda run: run.told.seed)
    yield row("minutes", lambda run: f"{run.told.minutes:g}")
    yield row("verdict", lambda run: "good" if run.told.is_good else "BAD")
    yield row("faults", lambda run: len(run.faults))
    yield row("operations", lambda run: run.told.operations)
    yield row("acknowledged records", lambda run: run.told.acknowledged)
    yield row("nodes that were back", lambda run: len(run.returns.seconds))
    for share, name in ((0.5, "half of them"), (0.99, "99 %"), (1, "all")):
        yield row(f"  {name} within s", lambda run, share=share: f"{run.returns.within_s(share):.1f}")
    yield row("nodes that were hit again first", lambda run: run.returns.unknown)
    for library in runs[0].told.versions:
        yield row(library, lambda run, library=library: run.told.versions.get(library, "-"))


def _steps(runs: Sequence[KeptRun]) -> Iterator[Row]:
    for client in sorted({client for run in runs for client in run.told.done}):
        yield (f"done by the {client}", *(f"{run.told.done.get(client, 0)}" for run in runs))


def _ends(runs: Sequence[KeptRun]) -> Iterator[Row]:
    counts = [{(client, reason): count for client, reason, count in run.told.given_up} for run in runs]
    for client, reason in sorted({each for found in counts for each in found}):
        yield (f"another {client} after {reason}", *(f"{found.get((client, reason), 0)}" for found in counts))


def _table(rows: Iterable[Row]) -> Iterator[str]:
    rows = [*rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *figures in rows:
        cells = (f"{each:>{width}}" for each, width in zip(figures, widths[1:], strict=True))
        yield "  ".join((f"{name:<{widths[0]}}", *cells))


if __name__ == "__main__":
    main()
