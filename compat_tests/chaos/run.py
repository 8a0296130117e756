"""A run: a cluster, rounds of clients under a nemesis, and the judgement of what the clients saw.

The directory of a run has `faults.jsonl`, the journal, `outcome.json`, and of each round `round-N/history.jsonl`, what
its clients saw.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from compat_tests.clusters.cluster import Cluster
from compat_tests.clusters.layout import PYKBROKER, NodeSpec
from compat_tests.clusters.topics import create_replicated_topic
from compat_tests.clusters.view import ask_cluster
from pykbroker.cli.main import main
from tests.history.recorder import Recorder

from .contents import Contents, SecondReading
from .java_producer import produce_with_java
from .journal import Journal
from .judge import Judge, Verdict
from .nemesis import Nemesis, Say
from .network import Network
from .outcome import Outcome
from .plan import NETWORK_FAULTS, PROCESS_FAULTS, SESSION_TIMEOUT_S, PlannedFault, planned_faults
from .reading import read_to_the_end
from .returns import ANSWER_DEADLINE_S, ReturnWatch
from .rounds import WRITERS, play
from .sharing import PROPERTIES as SHARING_PROPERTIES
from .stage import TOPICS, Stage, Work, all_partitions

PROPERTIES = {
    # Shorter than the defaults, so that a minute sees more elections.
    "broker.session.timeout.ms": f"{SESSION_TIMEOUT_S * 1000:.0f}",
    "broker.heartbeat.interval.ms": "1000",
    "replica.lag.time.max.ms": "10000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.create.topics.enable": "false",
    # As the members of classic groups have it, in whose protocol they say it themselves.
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    **SHARING_PROPERTIES,
}
ROUND_S = 600.0
"""A longer run has rounds of about this length: the judge holds the history of one."""
SECONDS_PER_STEP = 30.0
"""While faults go on clients of each kind get something done as often as that, on average, also where a machine is so
busy that three nodes take half a minute to start; most do it a hundred times."""

JAVA_WRITERS: dict[str, Work] = {"Java producer": produce_with_java}


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run is asked for. faults: those of an earlier run, which are played again; otherwise the seed decides.

    back_within_s: how long after the end of a fault all replicas may need to be in sync again. keeps: whether histories
    that are good stay in the directory. librdkafka_debug: its `debug` setting.
    """

    seed: int
    seconds: float
    back_within_s: float
    faults: list[PlannedFault] = field(default_factory=list)
    has_java: bool = True
    keeps: bool = False
    librdkafka_debug: str = ""

    @property
    def round_s(self) -> float:
        return self.seconds / max(math.ceil(self.seconds / ROUND_S), 1)

    @property
    def rounds(self) -> int:
        return max(round(self.seconds / self.round_s), 1)

    def plan(self, network: Network | None) -> Iterator[PlannedFault]:
        kinds = (*PROCESS_FAULTS, *(NETWORK_FAULTS if network is not None else ()))
        return iter(self.faults) if self.faults else planned_faults(kinds, self.seed, self.seconds)


def run_chaos(nodes: list[NodeSpec | str], directory: Path, network: Network | None, terms: Terms, say: Say) -> Outcome:
    """Play all rounds, or those up to the first one with a bad history. Raises AssertionError."""
    began_s = time.monotonic()

    def say_when(text: str) -> None:
        say(f"{time.monotonic() - began_s:7.1f} s  {text}")

    places = network.places if network is not None else None
    with (
        Judge(keeps=terms.keeps) as judge,
        Cluster(directory, nodes, properties=PROPERTIES, places=places) as cluster,
        Journal(directory / "faults.jsonl") as journal,
        ReturnWatch(
            cluster.nodes, lambda node: ask_cluster(cluster.nodes[node].address, deadline_s=ANSWER_DEADLINE_S)
        ) as watch,
    ):
        cluster.start()
        for topic, count in TOPICS.items():
            create_replicated_topic(cluster, topic, count)
        say_when(f"{len(nodes)} nodes serve")
        plan = terms.plan(network)
        nemesis = Nemesis(cluster, network, plan, journal, watch, say_when, back_within_s=terms.back_within_s)
        run = _Run(directory, cluster, nemesis, terms, judge, say_when)
        run.play_rounds()
        differences = run.read_again()
        _assert_no_traceback(cluster)
    _assert_directories_are_sound(cluster)
    least = max(int(terms.seconds / SECONDS_PER_STEP), 1)
    return Outcome(judge.verdicts, journal, run.done, least, run.given_up, differences)


class _Run:
    """The rounds of a run, one after another on the same cluster."""

    def __init__(
        self, directory: Path, cluster: Cluster, nemesis: Nemesis, terms: Terms, judge: Judge, say: Say
    ) -> None:
        self._directory = directory
        self._cluster = cluster
        self._nemesis = nemesis
        self._terms = terms
        self._judge = judge
        self._say = say
        self._contents: list[Contents] = []
        self.done: Counter[str] = Counter()
        self.given_up: Counter[tuple[str, str]] = Counter()

    def play_rounds(self) -> None:
        """Raises AssertionError."""
        for number in range(1, self._terms.rounds + 1):
            self._play(number)
            if self._is_any_bad(self._judge.ready()):
                break
        self._is_any_bad(self._judge.rest())

    def _play(self, number: int) -> None:
        directory = self._directory / f"round-{number}"
        directory.mkdir()
        history = directory / "history.jsonl"
        works = WRITERS | (JAVA_WRITERS if self._terms.has_java else {})
        beginnings = self._contents[-1].ends if self._contents else {}
        with history.open("w", encoding="utf-8") as file:
            stage = Stage(
                directory,
                self._cluster.bootstrap,
                Recorder(file),
                self._terms.seed,
                librdkafka_debug=self._terms.librdkafka_debug,
                round_number=number,
                beginnings=beginnings,
            )
            played = play(stage, works, self._nemesis, self._terms.round_s, self._say)
        self._contents.append(played.contents)
        self.done.update(played.done)  # with `+=` whoever did nothing would be left out
        self.given_up += played.given_up
        self._judge.submit(history)

    def _is_any_bad(self, verdicts: Iterable[Verdict]) -> bool:
        bad = False
        for each in verdicts:
            self._say(f"{each.path.parent.name}: {each.text}")
            bad |= not each.is_good
        return bad

    def read_again(self) -> list[str]:
        """Return what is not as it was when its round was over."""
        self._say("all rounds are read once more")
        stage = Stage(self._directory, self._cluster.bootstrap, Recorder(), self._terms.seed)
        reading = SecondReading(self._contents)
        for found in read_to_the_end(stage, [*map(stage.beginning, all_partitions())]):
            reading.add(found)
        return reading.differences()


def _assert_no_traceback(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        if node.kind == PYKBROKER:
            log = node.log_text()
            assert "Traceback" not in log, f"node {node.node_id}: {log[max(log.index('Traceback') - 2000, 0) :][:6000]}"


def _assert_directories_are_sound(cluster: Cluster) -> None:
    """What a node that was killed leaves behind: batches, indexes, leader epochs, checkpoints."""
    for node in cluster.nodes.values():
        if node.kind == PYKBROKER:
            found = CliRunner().invoke(main, ["verify", "--quiet", str(node.data_directory)])
            assert found.exit_code == 0, f"node {node.node_id}: {found.output[-6000:]}"
