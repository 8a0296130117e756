"""`python -m benchmarks`: runs the measures against both brokers in turns and prints the ratios."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

from benchmarks import (
    cleaning,
    clusters,
    cores,
    flushes,
    growth,
    journal,
    limits,
    log_growth,
    metrics,
    moved_suites,
    rebalances,
    security,
    spark,
    starts,
    suites,
    tails,
    transactions,
)
from benchmarks.basics import BASICS
from benchmarks.bench import Bench, Figures, Measure, Scene
from benchmarks.brokers import KINDS, compile_bytecode, new_broker
from benchmarks.clusters import CLUSTER_NODE_KINDS, ClusterBench, ClusterMeasure, ClusterScene
from benchmarks.commands import COMMANDS
from benchmarks.fetches import FETCHES
from benchmarks.group_loading import load_groups
from benchmarks.java_tools import JavaTools
from benchmarks.metadata_requests import METADATA
from benchmarks.offset_commits import COMMITS
from benchmarks.produce_matrix import MATRIX
from benchmarks.profiles import NoProfiler, Profiler
from benchmarks.report import Results, print_report
from benchmarks.run_record import RunRecord
from benchmarks.share_groups import SHARES
from compat_tests import python_examples
from compat_tests.apache_kafka import class_path, find_java
from compat_tests.brokers import BrokerProcess
from compat_tests.clusters.cluster import Cluster

SCENES: dict[str, Scene | ClusterScene] = {
    "basics": Scene(BASICS, is_started=False),
    "matrix": Scene(MATRIX),
    "flushes": Scene({"flush.messages=1": flushes.flush_every_message}),
    "fetches": Scene(FETCHES),
    "cleaning": Scene({"compaction": cleaning.compaction}, cleaning.PROPERTIES),
    "groups": Scene({**rebalances.REBALANCES, **COMMITS}, rebalances.PROPERTIES),
    "metadata": Scene(METADATA),
    "share groups": Scene(SHARES),
    "transactions": Scene(
        {
            "transactions of 100 records": transactions.transactional_produce,
            "exactly-once copy": transactions.exactly_once_copy,
        }
    ),
    "security": Scene(security.TLS_AND_SASL, is_started=False),
    "rights": Scene(security.RIGHTS),
    "test suites": Scene(
        {"in-process broker": suites.in_process_broker, "100 tests": suites.hundred_tests}, suites.AS_IT_COMES
    ),
    "commands": Scene(COMMANDS),
    "metrics": Scene({"idle, visited": metrics.idle, "metrics scraped each second": metrics.scraped_produce}),
    "journal": Scene({"journal on": journal.journal_cost}, is_started=False),
    "forks": Scene({"forks of 1 GB": suites.forks_of_a_gigabyte}),
    "test suites, tuned": Scene({"100 tests, no rebalance delay": suites.hundred_tests}),
    "moved suites": Scene(
        {name: moved_suites.moved_suite(name) for name in python_examples.NAMES},
        python_examples.CONTAINER_PROPERTIES,
        is_started=False,
    ),
    "many groups": Scene({"10,000 groups with 100,000 offsets": load_groups}),
    "many partitions": Scene({"start with 10,000 partitions": starts.clean_start}),
    "killed": Scene({"start after kill -9, 64 kB batches": starts.start_after_kill(65536)}),
    "killed, small batches": Scene({"start after kill -9, 16 kB batches": starts.start_after_kill(16384)}),
    "spark": spark.SPARK,
    "spark pipeline": spark.PIPELINE,
    "spark growth": spark.GROWTH,
    "limits": Scene(limits.LIMITS, limits.PROPERTIES),
    "cores": Scene(cores.CORES, is_started=False),
    "growth": Scene(growth.GROWTH, growth.PROPERTIES),
    "logs": Scene(log_growth.LOG_GROWTH),
    "tails": Scene(tails.TAILS, tails.PROPERTIES),
    "cluster": clusters.CLUSTER,
    "cluster, many partitions": clusters.MANY,
}
T = TypeVar("T")
NAMES = [name for scene in SCENES.values() for name in scene.measures]


@click.command()
@click.option("--rounds", default=3, show_default=True, help="How often each broker is measured, in turns.")
@click.option("--scale", default=1.0, show_default=True, help="1.0 is the full amount of work.")
@click.option(
    "--scene", "scenes", multiple=True, type=click.Choice(list(SCENES)), help="Just these groups of measures."
)
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Just these measures, and what they need.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every round's figures here, after each scene. `python -m benchmarks.page` makes a page of them.",
)
@click.option(
    "--profile",
    "profiles",
    type=click.Path(path_type=Path, file_okay=False),
    help="Run one more round on pykbroker, which is not measured, and keep here where its processor time goes.",
)
def main(
    rounds: int,
    scale: float,
    scenes: tuple[str, ...],
    only: tuple[str, ...],
    json_file: Path | None,
    profiles: Path | None,
) -> None:
    """Measures pykbroker beside Apache Kafka on this machine."""
    console = Console(width=None if sys.stdout.isatty() else 130)
    profiler = _profiler(profiles)
    compile_bytecode()
    tools = JavaTools(find_java(), class_path())
    record = RunRecord.of_this_machine(rounds, scale, tools.java)
    chosen = {name: SCENES[name] for name in scenes or SCENES}
    with tempfile.TemporaryDirectory(prefix="pykbroker-bench-") as directory:
        run = Run(Path(directory), tools, scale, only, console)
        for number in range(1, rounds + 1):
            for scene in chosen.values():
                for kind in KINDS:
                    run.one_round(kind, scene, record.results[kind.kind], f"round {number}")
                if json_file is not None:
                    record.write(json_file, SCENES)
        if profiler is not None:
            beside = (json_file or profiler.directory / "results.json").parent

            def recording(name: str) -> AbstractContextManager[None]:
                return profiler.recording(name, record.profiles.setdefault(name, []), beside)

            for scene in chosen.values():
                run.one_round(KINDS[0], scene, {}, "profile", recording)
                if json_file is not None:
                    record.write(json_file, SCENES)
    ours, theirs = record.results.values()
    print_report(ours, theirs, console)


Around = Callable[[str], AbstractContextManager[None]]
"""What surrounds a measure, by its name."""


def _profiler(directory: Path | None) -> Profiler | None:
    try:
        return None if directory is None else Profiler(directory)
    except NoProfiler as error:
        raise click.ClickException(str(error)) from error


def _nothing_around(_: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Run:
    """directory: for what brokers write. only: the measures that were asked for, all if none."""

    directory: Path
    tools: JavaTools
    scale: float
    only: tuple[str, ...]
    console: Console

    def one_round(
        self,
        kind: type[BrokerProcess],
        scene: Scene | ClusterScene,
        into: Results,
        called: str,
        around: Around = _nothing_around,
    ) -> None:
        """One round of a scene on one kind of broker. called: how the log calls it."""
        log = Log(self.console, called)
        match scene:
            case Scene() if wanted := _with_their_needs(scene.measures, self.only):
                broker = new_broker(kind, self.directory, scene.properties)
                measure(Bench(broker, self.tools, self.scale), wanted, scene.is_started, into, log, around)
            case ClusterScene() if steps := _with_their_needs(scene.measures, self.only):
                measure_cluster(kind.kind, self.directory, self.tools, self.scale, steps, into, log, around)


@dataclass(frozen=True, slots=True)
class Log:
    """Every figure as it comes."""

    console: Console
    called: str

    def __call__(self, kind: str, name: str, figures: Figures) -> None:
        text = ", ".join(f"{value:.3g} {figure}" for figure, value in figures.items())
        self.console.print(f"{self.called}  {kind:12}  {name}: {text}", highlight=False)


def _with_their_needs(measures: Mapping[str, T], only: Sequence[str]) -> dict[str, T]:
    """What comes before a measure in its scene may have made what it works on."""
    last = max((number for number, name in enumerate(measures) if name in only), default=-1)
    return dict(measures) if not only else dict(list(measures.items())[: last + 1])


def measure(
    bench: Bench, measures: Mapping[str, Measure], is_started: bool, into: Results, log: Log, around: Around
) -> None:
    """One round of one scene on one broker."""
    broker = bench.broker
    try:
        if is_started:
            broker.start()
        for name, step in measures.items():
            with around(name):
                figures = step(bench)
            into.setdefault(name, []).append(figures)
            log(broker.kind, name, figures)
    finally:
        broker.close()
        shutil.rmtree(broker.directory)


def measure_cluster(
    kind: str,
    directory: Path,
    tools: JavaTools,
    scale: float,
    measures: Mapping[str, ClusterMeasure],
    into: Results,
    log: Log,
    around: Around,
) -> None:
    """One round of one scene on a cluster of that kind."""
    own = Path(tempfile.mkdtemp(dir=directory))
    nodes = [kind] * clusters.NODES
    with Cluster(own, nodes, properties=clusters.PROPERTIES, node_kinds=CLUSTER_NODE_KINDS) as cluster:
        cluster.set_up()
        for name, step in measures.items():
            with around(name):
                figures = step(ClusterBench(cluster, tools, scale))
            into.setdefault(name, []).append(figures)
            log(cluster.nodes[1].kind, name, figures)
    shutil.rmtree(own)


if __name__ == "__main__":
    main()
