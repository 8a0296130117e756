"""Three nodes of both roles on this machine: throughput with three replicas, the end of a node, the start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise

from confluent_kafka import KafkaError, Producer

from benchmarks.bench import PARTITIONS, Figures
from benchmarks.brokers import PRODUCTION_JVM_OPTIONS, cpu_seconds, rss_bytes
from benchmarks.java_tools import JavaTools
from compat_tests.brokers import START_DEADLINE_S, BrokerFailed
from compat_tests.clusters.cluster import Cluster
from compat_tests.clusters.layout import KAFKA
from compat_tests.clusters.nodes import NODE_KINDS, KafkaNode, Node
from compat_tests.clusters.topics import create_replicated_topic
from compat_tests.clusters.view import ClusterView, NoAnswer, PartitionView
from compat_tests.raw_client import RawClient, Refused, produce_request
from compat_tests.steady_producers import JavaProducer, finished
from compat_tests.waiting import until
from compat_tests.wire import Closed, Silent, Wire
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

NODES = 3
PROPERTIES = {"default.replication.factor": "3", "min.insync.replicas": "2"}
"""Timeouts are the defaults."""
MANY_PARTITIONS = 5_000
PARTITIONS_PER_TOPIC = 1_000

_FIRST = "first"
_DEADLINE_S = 600.0
_IDLE_S = 10.0
_CREATE_TOPICS_VERSION = 7


class ProductionKafkaNode(KafkaNode):
    """With the heap and the collector of `kafka-server-start.sh`."""

    jvm_options = PRODUCTION_JVM_OPTIONS


CLUSTER_NODE_KINDS: Mapping[str, type[Node]] = {**NODE_KINDS, KAFKA: ProductionKafkaNode}


@dataclass(frozen=True, slots=True)
class ClusterBench:
    """scale: 1.0 is the full amount of work."""

    cluster: Cluster
    tools: JavaTools
    scale: float

    def count(self, full: int) -> int:
        return max(int(full * self.scale), 1000)


ClusterMeasure = Callable[[ClusterBench], Figures]


@dataclass(frozen=True, slots=True)
class ClusterScene:
    """Measures that run one after another on one cluster, which is formatted and not started at the beginning."""

    measures: Mapping[str, ClusterMeasure]


def first_produce(bench: ClusterBench) -> Figures:
    """From the start of three processes to the first record with acks=all in a topic of three replicas."""
    cluster = bench.cluster
    started = time.perf_counter()
    for node in cluster.nodes.values():
        node.launch()
    while True:
        with suppress(ConnectionError, TimeoutError, Refused, NoAnswer, KeyError):
            return {"s": _produce_first(cluster) - started}
        if time.perf_counter() - started > START_DEADLINE_S:
            logs = "\n".join(node.log_tail() for node in cluster.nodes.values())
            raise BrokerFailed(f"the cluster acknowledged nothing:\n{logs}")
        time.sleep(0.002)


def _produce_first(cluster: Cluster) -> float:
    """When it was acknowledged."""
    with RawClient(cluster.nodes[1].address, timeout_s=START_DEADLINE_S) as client:
        client.create_topic(_FIRST)
    leader = cluster.view(_FIRST).topics[_FIRST][0].leader
    with RawClient(cluster.nodes[leader].address, timeout_s=START_DEADLINE_S) as client:
        client.produce(produce_request(_FIRST, b"first"))
    return time.perf_counter()


def produce_1_kb(bench: ClusterBench) -> Figures:
    """ProducerPerformance, 1 kB, acks=all, idempotent, three replicas, min.insync.replicas=2, 6 partitions."""
    cluster = bench.cluster
    cluster.wait_until_unfenced()
    create_replicated_topic(cluster, "kilobyte", PARTITIONS)
    config = {"acks": "all", "linger.ms": "5", "batch.size": "65536"}
    nodes = list(cluster.nodes.values())
    before = sum(map(cpu_seconds, nodes))
    reached = bench.tools.produce(cluster.bootstrap, "kilobyte", bench.count(1_000_000), 1000, config)
    return {
        "MB/s": reached,
        "CPU s of all nodes": sum(map(cpu_seconds, nodes)) - before,
        "RSS MB of all nodes": sum(map(rss_bytes, nodes)) / 1e6,
    }


def kill_leader(bench: ClusterBench) -> Figures:
    """kill -9 of a leader that is not the active controller: the longest time without an acknowledged produce.

    librdkafka looks for a new leader once a second.
    """
    cluster = bench.cluster
    leader = _create_led_elsewhere(cluster, "bereft")
    with _producing(cluster, "bereft") as acknowledged_s:
        _kill_under_produces(cluster, leader, acknowledged_s)
    return _longest_gap(cluster, leader, "bereft", acknowledged_s)


def kill_leader_of_java(bench: ClusterBench) -> Figures:
    """The same with Java's VerifiableProducer and 500 records a second."""
    cluster = bench.cluster
    leader = _create_led_elsewhere(cluster, "bereft-java")
    producer = JavaProducer(cluster, "bereft-java", cluster.directory, records_per_second=500)
    with finished(producer), _noting(producer.acknowledged) as acknowledged_s:
        _kill_under_produces(cluster, leader, acknowledged_s)
    return _longest_gap(cluster, leader, "bereft-java", acknowledged_s)


def _create_led_elsewhere(cluster: Cluster, topic: str) -> int:
    """One partition; returns its leader, which is not the active controller."""
    active = cluster.active_controller()
    leader, *others = [node_id for node_id in cluster.nodes if node_id != active]
    create_replicated_topic(cluster, topic, assignment=[[leader, *others, active]])
    cluster.wait_until_in_sync(topic)
    return leader


def _kill_under_produces(cluster: Cluster, leader: int, acknowledged_s: list[float]) -> None:
    until(lambda: len(acknowledged_s) > 100, "produces are acknowledged")
    killed_s = time.perf_counter()
    cluster.kill(leader)
    until(lambda: acknowledged_s[-1] > killed_s + 0.5, "produces are acknowledged by another leader")


def _longest_gap(cluster: Cluster, leader: int, topic: str, acknowledged_s: list[float]) -> Figures:
    cluster.start(leader)
    cluster.wait_until_in_sync(topic)
    return {"longest gap s": max(later - earlier for earlier, later in pairwise(acknowledged_s))}


@contextmanager
def _noting(acknowledged: Sized) -> Iterator[list[float]]:
    """When there were more of them, to a millisecond."""
    noted_s: list[float] = []
    over = threading.Event()

    def note() -> None:
        count = 0
        while not over.wait(0.001):
            if len(acknowledged) > count:
                count = len(acknowledged)
                noted_s.append(time.perf_counter())

    with _meanwhile(note, over):
        yield noted_s


@contextmanager
def _producing(cluster: Cluster, topic: str) -> Iterator[list[float]]:
    """librdkafka, one record at a time: when each was acknowledged."""
    config = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 2}
    producer = Producer(config | {"enable.idempotence": True, "reconnect.backoff.max.ms": 200})
    acknowledged_s: list[float] = []
    over = threading.Event()

    def produce() -> None:
        while not over.is_set():
            producer.produce(topic, b"x" * 100, on_delivery=note)
            producer.flush(60)

    def note(error: KafkaError | None, _: object) -> None:
        if error is None:
            acknowledged_s.append(time.perf_counter())

    with _meanwhile(produce, over):
        yield acknowledged_s


@contextmanager
def _meanwhile(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    """work: until `over` is set."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def kill_active_controller(bench: ClusterBench) -> Figures:
    """kill -9: the time until one of the others has a topic created."""
    cluster = bench.cluster
    active = cluster.active_controller()
    cluster.kill(active)
    killed_s = time.perf_counter()
    asked = next(node for node_id, node in cluster.nodes.items() if node_id != active)
    until(lambda: _creates_topic(asked, f"after-{active}"), "a topic is created", _DEADLINE_S)
    figures = {"s": time.perf_counter() - killed_s}
    cluster.start(active)
    return figures


def _creates_topic(node: Node, name: str) -> bool:
    """False where the answer is an error, or does not come in a second: then it is to be asked again."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=2)
    try:
        with Wire(node.address) as wire:
            request = CreateTopicsRequest(topics=[topic], timeout_ms=1_000)
            answer = wire.call(request, _CREATE_TOPICS_VERSION, deadline_s=1.5)
    except (OSError, Closed, Silent):
        return False
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code in (0, _TOPIC_ALREADY_EXISTS)


_TOPIC_ALREADY_EXISTS = 36
"""An earlier request, whose answer nobody saw, was carried out."""


def many_partitions(bench: ClusterBench) -> Figures:
    """kill -9 of a node that leads a third of 5,000 partitions with three replicas, and its return into all ISRs; then
    of all nodes, and their start. Idle: nobody produces or consumes.
    """
    cluster = bench.cluster
    cluster.start()
    topics = [f"many-{number}" for number in range(bench.count(MANY_PARTITIONS) // PARTITIONS_PER_TOPIC)]
    created = _timed(lambda: create_many(cluster, topics))
    _wait_until_in_sync(cluster, topics)
    nodes = list(cluster.nodes.values())
    before = sum(map(cpu_seconds, nodes))
    time.sleep(_IDLE_S)
    idle = sum(map(cpu_seconds, nodes)) - before
    victim = next(node_id for node_id in cluster.nodes if node_id != cluster.active_controller())
    cluster.kill(victim)
    failover = _timed(lambda: _wait_until_led(cluster, topics, without=victim))
    returned_s = time.perf_counter()
    cluster.start(victim)
    _wait_until_in_sync(cluster, topics)
    returned = time.perf_counter() - returned_s
    cluster.kill()
    started_s = time.perf_counter()
    for node in nodes:
        node.launch()
    _wait_until_led(cluster, topics)
    started = time.perf_counter() - started_s
    return {
        "failover s": failover,
        "start s": started,
        "creation s": created,
        "return into all ISRs s": returned,
        "CPU s of all nodes in 10 idle s": idle,
        "RSS MB of all nodes": sum(map(rss_bytes, nodes)) / 1e6,
    }


def create_many(cluster: Cluster, topics: list[str]) -> None:
    for topic in topics:
        create_replicated_topic(cluster, topic, PARTITIONS_PER_TOPIC, awaited_partitions=0)
        _wait_until_led(cluster, [topic])


def _wait_until_led(cluster: Cluster, topics: list[str], without: int | None = None) -> None:
    """Every broker that runs tells of a leader for every partition."""

    def is_led(partition: PartitionView) -> bool:
        return partition.leader not in (-1, without)

    until(lambda: _all_tell(cluster, topics, is_led), "every partition has a leader", _DEADLINE_S)


def _wait_until_in_sync(cluster: Cluster, topics: list[str]) -> None:
    """Every broker that runs tells of all replicas in the ISR."""
    until(lambda: _all_tell(cluster, topics, _is_in_sync), "all replicas are in sync", _DEADLINE_S)


def _is_in_sync(partition: PartitionView) -> bool:
    return partition.isr >= set(partition.replicas)


def _all_tell(cluster: Cluster, topics: list[str], of_each: Callable[[PartitionView], bool]) -> bool:
    try:
        views = [cluster.view(*topics, of=node.node_id) for node in cluster.brokers() if node.answers]
    except NoAnswer:
        return False
    return all(_holds(view, topics, of_each) for view in views)


def _holds(view: ClusterView, topics: list[str], of_each: Callable[[PartitionView], bool]) -> bool:
    partitions = [each for topic in topics for each in view.topics.get(topic, {}).values()]
    return len(partitions) == len(topics) * PARTITIONS_PER_TOPIC and all(map(of_each, partitions))


def _timed(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


CLUSTER = ClusterScene(
    {
        "cluster: start to first produce": first_produce,
        "cluster: produce 1 kB": produce_1_kb,
        "cluster: kill of a leader": kill_leader,
        "cluster: kill of a leader, Java producer": kill_leader_of_java,
        "cluster: kill of the active controller": kill_active_controller,
    }
)
MANY = ClusterScene({"cluster: 5,000 partitions": many_partitions})
