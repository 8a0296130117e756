"""`python -m compat_tests.hostile.load`: a table of what each attack did, measured on brokers of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from .every_attack import ATTACKS
from .measurement import Felt, measure, p99_elsewhere_ms

COLUMNS = (
    "quiet p99 ms",
    "p99 ms",
    "p99 elsewhere ms",
    "×",
    "slowest ms",
    "errors",
    "peak MiB",
    "left MiB",
    "descriptors left",
    "longest hold ms",
    "",
)


@click.command()
@click.option("--seconds", default=10.0, show_default=True, help="How long each attack lasts, and the quiet before it.")
@click.option("--only", multiple=True, help="Just the attacks whose name contains this.")
@click.option("--elsewhere", is_flag=True, help="Attack another broker of this machine, too, beside the honest client.")
def main(seconds: float, only: tuple[str, ...], elsewhere: bool) -> None:
    """Attacks a pykbroker in every way that is known, one after another."""
    console = Console(width=240)
    table = Table(title=f"{seconds:g} s of each attack")
    table.add_column("attack")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for name in ATTACKS:
        if not only or any(part in name for part in only):
            with tempfile.TemporaryDirectory(prefix="pykbroker-hostile-") as directory:
                felt = measure(name, Path(directory) / "broker", seconds)
                elsewhere_ms = p99_elsewhere_ms(name, Path(directory), seconds) if elsewhere else None
            row = _row(felt, elsewhere_ms)
            table.add_row(name, *row)
            console.print(name, *row)
    console.print(table)


def _row(felt: Felt, elsewhere_ms: float | None) -> tuple[str, ...]:
    memory = (felt.peak_mib, felt.left_mib)
    return (
        f"{felt.quiet_p99_ms:.1f}",
        f"{felt.p99_ms:.1f}",
        "" if elsewhere_ms is None else f"{elsewhere_ms:.1f}",
        f"{felt.p99_ms / felt.quiet_p99_ms:.1f}",
        f"{felt.slowest_ms:.1f}",
        str(len(felt.errors)),
        *(f"{number:.0f}" for number in memory),
        str(felt.descriptors_left),
        "" if felt.longest_hold is None else f"{felt.longest_hold.cpu_ms} {felt.longest_hold.who}",
        _verdict(felt),
    )


def _verdict(felt: Felt) -> str:
    if not felt.is_alive:
        return "THE BROKER IS GONE"
    return "" if felt.serves_again else "DOES NOT SERVE AGAIN"


if __name__ == "__main__":
    main()
