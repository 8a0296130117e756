"""`python -m benchmarks`: runs the measures against both brokers in turns and prints the ratios."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from benchmarks.brokers import ApacheKafkaProcess, BrokerProcess, PykbrokerProcess
from benchmarks.java_tools import JavaTools
from benchmarks.measures import STEADY, Bench, Figures, start
from benchmarks.report import Results, print_report
from compat_tests.apache_kafka import class_path, find_java

START = "start to first produce"
NAMES = [START, *STEADY]


@click.command()
@click.option("--rounds", default=3, show_default=True, help="How often each broker is measured, in turns.")
@click.option("--scale", default=1.0, show_default=True, help="1.0 is the full amount of work.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Just these measures; may be given again.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every round's figures here.")
def main(rounds: int, scale: float, only: tuple[str, ...], json_file: Path | None) -> None:
    """Measures pykbroker beside Apache Kafka on this machine."""
    console = Console()
    java, jars = find_java(), class_path()
    tools = JavaTools(java, jars)
    brokers: list[Callable[[], BrokerProcess]] = [PykbrokerProcess, lambda: ApacheKafkaProcess(java, jars)]
    results: list[Results] = [{}, {}]
    for round_number in range(1, rounds + 1):
        for make_broker, into in zip(brokers, results, strict=True):
            measure_broker(make_broker, tools, scale, only or tuple(NAMES), into, console, f"round {round_number}")
    print_report(results[0], results[1], console)
    if json_file is not None:
        json_file.write_text(json.dumps({"pykbroker": results[0], "Apache Kafka": results[1]}, indent=2))


def measure_broker(
    make_broker: Callable[[], BrokerProcess],
    tools: JavaTools,
    scale: float,
    names: tuple[str, ...],
    into: Results,
    console: Console,
    label: str,
) -> None:
    """One round of one broker: the start on an empty directory, then the rest on that same process."""
    broker = make_broker()
    try:
        broker.prepare()
        bench = Bench(broker, tools, scale)
        if START in names:
            _record(into, START, start(bench), broker, console, label)
        else:
            broker.start()
        for name in NAMES[1:]:
            if name in names:
                _record(into, name, STEADY[name](bench), broker, console, label)
    finally:
        broker.stop()


def _record(into: Results, name: str, figures: Figures, broker: BrokerProcess, console: Console, label: str) -> None:
    into.setdefault(name, []).append(figures)
    text = ", ".join(f"{value:.3g} {figure}" for figure, value in figures.items())
    console.print(f"{label}  {broker.name:13} {name}: {text}", highlight=False)


if __name__ == "__main__":
    main()
