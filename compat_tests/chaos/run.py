"""One run: a cluster, clients, a nemesis for some minutes, and the judgement of what the clients saw."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from compat_tests.clusters.cluster import Cluster
from compat_tests.clusters.layout import PYKBROKER, NodeSpec
from compat_tests.clusters.topics import create_replicated_topic
from compat_tests.waiting import until
from pykbroker.cli.verify import command as verify
from tests.history.check import check_lines
from tests.history.findings import Report
from tests.history.recorder import Recorder

from .java_producer import produce_with_java
from .nemesis import SESSION_TIMEOUT_S, Nemesis, Say
from .network import Network
from .producing import produce_plainly, produce_with_confluent, produce_with_kafka_python
from .reading import (
    live_in_a_classic_group,
    live_in_a_consumer_group,
    look_at_committed_offsets,
    read_committed,
    read_everything,
    read_uncommitted,
)
from .stage import COPY, PLAIN, TOPICS, Client, Stage, Work, key_of, partitions
from .transacting import begin_copies, copy_as_another, copy_as_one, is_all_copied, transact

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
}
LIVELY_S = 25.0
"""How long all goes on, unharmed, and the judge looks for whoever is stuck."""
CLIENTS_END_S = 120.0
GOING_AGAIN_S = 120.0
"""From the end of the last fault, with everything running: until each client has got something done."""
SECONDS_PER_STEP = 15.0
"""While faults go on each client gets something done as often as that, on average; most do it a hundred times."""

WRITERS: dict[str, Work] = {
    "confluent producer": produce_with_confluent,
    "kafka-python producer": produce_with_kafka_python,
    "plain producer": produce_plainly,
    "transactions": transact,
}
JAVA_WRITERS: dict[str, Work] = {"Java producer": produce_with_java}
READERS: dict[str, Work] = {
    "reader of committed records": read_committed,
    "reader of all records": read_uncommitted,
    "member 1": live_in_a_classic_group,
    "member 2": live_in_a_classic_group,
    "newer member 1": live_in_a_consumer_group,
    "newer member 2": live_in_a_consumer_group,
    "observer of offsets": look_at_committed_offsets,
    "copier 1": copy_as_one,
    "copier 2": copy_as_another,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    report: Report
    faults: Mapping[tuple[str, str], int]
    """By kind, and by the role that was hit."""
    done: Mapping[str, int]
    """What each client got done while faults went on."""
    least: int
    """What each has to have done by then: a run of clients that do nothing finds nothing."""

    @property
    def idle(self) -> list[str]:
        return [name for name, count in self.done.items() if count < self.least]

    @property
    def is_good(self) -> bool:
        return not self.report.bad and not self.idle


def run_chaos(
    nodes: list[NodeSpec | str],
    directory: Path,
    network: Network | None,
    *,
    seed: int,
    seconds: float,
    say: Say,
    has_java: bool = True,
    librdkafka_debug: str = "",
) -> Outcome:
    """What the clients saw is `history.jsonl` in the directory, beside the nodes' own."""
    began_s = time.monotonic()

    def say_when(text: str) -> None:
        say(f"{time.monotonic() - began_s:6.1f} s  {text}")

    places = network.places if network is not None else None
    history = directory / "history.jsonl"
    with (
        history.open("w", encoding="utf-8") as file,
        Cluster(directory, nodes, properties=PROPERTIES, places=places) as cluster,
    ):
        cluster.start()
        for topic, count in TOPICS.items():
            create_replicated_topic(cluster, topic, count)
        say_when(f"{len(nodes)} nodes serve")
        stage = Stage(directory, cluster.bootstrap, Recorder(file), seed, librdkafka_debug)
        nemesis = Nemesis(cluster, network, seed, say_when)
        writers = WRITERS | (JAVA_WRITERS if has_java else {})
        done = _work(stage, writers, nemesis, seconds, say_when)
        _assert_no_traceback(cluster)
    _assert_directories_are_sound(cluster)
    with history.open(encoding="utf-8") as lines:
        report = check_lines(lines)
    return Outcome(report, nemesis.done, done, max(int(seconds / SECONDS_PER_STEP), 1))


def _work(stage: Stage, works: Mapping[str, Work], nemesis: Nemesis, seconds: float, say: Say) -> Mapping[str, int]:
    """What each client got done while faults went on. Raises AssertionError."""
    pairs = [[key_of(each), f"{COPY}-{each.partition}"] for each in partitions(PLAIN)]
    stage.recorder.tell(stage.recorder.new_process(), "copy", pairs=pairs)
    begin_copies(stage)
    writers, readers = _started(stage, works), _started(stage, READERS)
    clients = [*writers, *readers]
    nemesis.work_for(seconds)
    done = stage.progress.so_far()
    nemesis.recover()
    say("all is healed")
    nemesis.wait_until_in_sync()
    _wait_until_going_again(stage, clients)
    say("all are going again")
    stage.recorder.tell(stage.recorder.new_process(), "heal")
    time.sleep(LIVELY_S)
    stage.writing.clear()
    _finish(writers)
    until(lambda: is_all_copied(stage), "all is copied", CLIENTS_END_S)
    stage.reading.clear()
    _finish(readers)
    read_everything(stage)
    say("everything is read")
    return {client.name: done[client.name] for client in clients}


def _wait_until_going_again(stage: Stage, clients: list[Client]) -> None:
    """Raises AssertionError with what ended a client, or with where those are who get nothing done."""
    before = stage.progress.so_far()

    def late() -> list[Client]:
        for client in clients:
            client.assert_not_failed()
        done = stage.progress.so_far() - before
        return [client for client in clients if not done[client.name]]

    try:
        until(lambda: not late(), "each client gets one more thing done", GOING_AGAIN_S)
    except AssertionError as failed:
        raise AssertionError("\n".join([f"{failed}", *(client.where() for client in late())])) from None


def _started(stage: Stage, works: Mapping[str, Work]) -> list[Client]:
    clients = [Client(stage, name, work) for name, work in works.items()]
    for client in clients:
        client.start()
    return clients


def _finish(clients: list[Client]) -> None:
    for client in clients:
        client.finish(CLIENTS_END_S)


def _assert_no_traceback(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        if node.kind == PYKBROKER:
            log = node.log_text()
            assert "Traceback" not in log, f"node {node.node_id}: {log[max(log.index('Traceback') - 2000, 0) :][:6000]}"


def _assert_directories_are_sound(cluster: Cluster) -> None:
    """What a node that was killed leaves behind: batches, indexes, leader epochs, checkpoints."""
    for node in cluster.nodes.values():
        if node.kind == PYKBROKER:
            found = CliRunner().invoke(verify, ["--quiet", str(node.data_directory)])
            assert found.exit_code == 0, f"node {node.node_id}: {found.output[-6000:]}"
