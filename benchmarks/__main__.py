"""`python -m benchmarks`: runs the measures against both brokers in turns and prints the ratios."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from benchmarks.brokers import KINDS, compile_bytecode, new_broker
from benchmarks.java_tools import JavaTools
from benchmarks.measures import STEADY, Bench, Figures, start
from benchmarks.report import Results, print_report
from compat_tests.apache_kafka import class_path, find_java
from compat_tests.brokers import BrokerProcess

START = "start to first produce"
NAMES = [START, *STEADY]


@click.command()
@click.option("--rounds", default=3, show_default=True, help="How often each broker is measured, in turns.")
@click.option("--scale", default=1.0, show_default=True, help="1.0 is the full amount of work.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Just these measures; may be given again.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every round's figures here.")
def main(rounds: int, scale: float, only: tuple[str, ...], json_file: Path | None) -> None:
    """Measures pykbroker beside Apache Kafka on this machine."""
    console = Console(width=None if sys.stdout.isatty() else 130)
    compile_bytecode()
    tools = JavaTools(find_java(), class_path())
    results: dict[str, Results] = {kind.kind: {} for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="pykbroker-bench-") as directory:
        for number in range(1, rounds + 1):
            for kind in KINDS:
                broker = new_broker(kind, Path(directory))
                measure(Bench(broker, tools, scale), only or NAMES, results[kind.kind], Log(console, number))
    ours, theirs = results.values()
    print_report(ours, theirs, console)
    if json_file is not None:
        json_file.write_text(json.dumps(results, indent=2))


@dataclass(frozen=True, slots=True)
class Log:
    """Every figure as it comes."""

    console: Console
    round_number: int

    def __call__(self, broker: BrokerProcess, name: str, figures: Figures) -> None:
        text = ", ".join(f"{value:.3g} {figure}" for figure, value in figures.items())
        self.console.print(f"round {self.round_number}  {broker.kind:12}  {name}: {text}", highlight=False)


def measure(bench: Bench, names: Sequence[str], into: Results, log: Log) -> None:
    """One round of one broker: the start on an empty directory, then the rest on that same process."""
    broker = bench.broker
    steps = {START: start, **STEADY} if START in names else STEADY
    try:
        if START not in names:
            broker.start()
        for name, step in steps.items():
            if name in names:
                figures = step(bench)
                into.setdefault(name, []).append(figures)
                log(broker, name, figures)
    finally:
        broker.close()
        shutil.rmtree(broker.directory)


if __name__ == "__main__":
    main()
