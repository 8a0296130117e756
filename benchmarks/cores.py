"""One node, and two behind `pykbroker start --cores 2`: what a second core adds.

The load generator takes part of the same machine, so that requests per second of the clock say how the two share it.
`two cores / one` leaves it aside: requests per second of the nodes' processors, of two nodes by one, times two.
"""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka.admin import AdminClient

from benchmarks.bench import Bench, Figures, Measure
from benchmarks.brokers import new_broker
from benchmarks.limit_rows import BY_SIZE, CLIENTS, SIZES, Options
from benchmarks.limits import PROPERTIES, produce
from compat_tests.brokers import BrokerProcess, Pykbroker, pykbroker_command
from compat_tests.waiting import until

_FIGURES = ("requests/s", "requests/CPU s")


class OneNode(Pykbroker):
    cores = 1

    def command(self) -> list[str]:
        return pykbroker_command("start", str(self.properties_file), "--cores", str(self.cores))


class TwoNodes(OneNode):
    cores = 2


NODES = {"one node": OneNode, "two nodes": TwoNodes}


def on_one_and_two(row: Options) -> Measure:
    def measure(bench: Bench) -> Figures:
        """Apache Kafka is one process on all cores: its figures are 0."""
        names = [f"{figure}, {nodes}" for nodes in NODES for figure in _FIGURES]
        if not isinstance(bench.broker, Pykbroker):
            return dict.fromkeys([*names, "two cores / one"], 0.0)
        figures: Figures = {}
        for nodes, kind in NODES.items():
            measured = _measure(bench, kind, row)
            figures |= {f"{figure}, {nodes}": measured[figure] for figure in _FIGURES}
        per_cpu_s = [figures[f"requests/CPU s, {nodes}"] for nodes in NODES]
        return figures | {"two cores / one": 2 * per_cpu_s[1] / per_cpu_s[0]}

    return measure


def wait_for_any_leaders(broker: BrokerProcess, topic: str, partitions: int) -> None:
    """Until each partition is led by some node; the load's warm-up has what comes before that one knows of it."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3})

    def all_led() -> bool:
        found = admin.list_topics(topic, timeout=30).topics[topic].partitions.values()
        return len(found) == partitions and all(partition.leader > 0 for partition in found)

    until(all_led, "all partitions have a leader")


def _measure(bench: Bench, kind: type[OneNode], row: Options) -> Figures:
    broker = new_broker(kind, bench.broker.directory, PROPERTIES)
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3})
        until(lambda: len(admin.list_topics(timeout=30).brokers) == kind.cores, "all nodes are in the cluster")
        return produce(row | {"clients": CLIENTS * kind.cores}, wait_for_any_leaders)(replace(bench, broker=broker))
    finally:
        broker.close()


CORES: dict[str, Measure] = {f"cores: {size}": on_one_and_two(BY_SIZE[f"limit: {size}"]) for size in SIZES}
