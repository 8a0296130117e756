"""A cluster of several brokers inside this process, each of which a test stops, kills and starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn

from .broker import Config, disk_of, texts
from .hosted_kafka import AsyncHostedKafka, HostedKafka
from .lazy_module import LazyModule
from .node_control import AsyncNodeControl, NodeControl

if TYPE_CHECKING:
    from pykbroker.config import cluster_plan, keys
    from pykbroker.control.savepoints import errors

    from . import hosted_node, profile
    from .hosted_node import HostedNode
    from .reserved_port import ReservedPort
else:
    cluster_plan = LazyModule("pykbroker.config.cluster_plan")
    keys = LazyModule("pykbroker.config.keys")
    errors = LazyModule("pykbroker.control.savepoints.errors")
    hosted_node = LazyModule("pykbroker.testing.hosted_node")
    profile = LazyModule("pykbroker.testing.profile")


class ClusterBroker(NodeControl):
    """One broker of a `Cluster`."""

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT` of this broker alone."""
        return self._node.address


class AsyncClusterBroker(AsyncNodeControl):
    """`ClusterBroker` for coroutines."""

    def __init__(self, broker: ClusterBroker) -> None:
        super().__init__(broker)
        self.bootstrap_servers: Final = broker.bootstrap_servers


class Cluster(HostedKafka):
    """Brokers with the ids from 1 on; three of them are controllers, too, or one where there are fewer than three.

    config: Kafka's keys, for every broker; they win over the settings for tests (`profile`).
    Topics have three replicas, or as many as there are brokers. data_dir: where the data stays; without it the data
    goes with the cluster. journal: the bound of each broker's journal of all requests, in bytes; False for none.
    """

    def __init__(
        self,
        brokers: int = 3,
        config: Config | None = None,
        *,
        data_dir: str | Path | None = None,
        journal: int | bool = True,
    ) -> None:
        super().__init__("pykbroker cluster", None if data_dir is None else Path(data_dir), journal=journal)
        self._broker_count = brokers
        self._config: Final = dict(config or {})

    @property
    def brokers(self) -> list[ClusterBroker]:
        """Each broker, by its id."""
        self.running_loop()
        return [ClusterBroker(self, index) for index in range(len(self.nodes))]

    def broker(self, node_id: int) -> ClusterBroker:
        """Return the broker with this id. Raises LookupError."""
        for broker in self.brokers:
            if broker.node_id == node_id:
                return broker
        raise LookupError(f"there is no broker {node_id}; there are 1 to {len(self.nodes)}")

    @property
    def aio(self) -> AsyncCluster:
        """The same cluster for coroutines."""
        return AsyncCluster(self)

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT` of every broker, with commas between them. Raises BrokerNotRunning before the cluster is open."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def fork(self) -> NoReturn:
        """Raises SavepointRefused, always: there is no such thing so far."""
        self._refuse("forked", "fork")

    def save(self, path: str | Path) -> NoReturn:
        """Raises SavepointRefused, always: there is no such thing so far."""
        self._refuse("saved", "save")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise errors.SavepointRefused(
            f"a `Cluster` cannot be {what}: a moment that all of its nodes agree on is not known; {instead} a `Broker`"
        )

    def _make_nodes(self, directory: Path, reserve: Callable[[int], ReservedPort]) -> Sequence[HostedNode]:
        if not 1 <= self._broker_count <= cluster_plan.MOST_BROKERS:
            raise ValueError(f"a cluster has 1 to {cluster_plan.MOST_BROKERS} brokers, not {self._broker_count}")
        for key in self._config:
            if key in cluster_plan.OWN_KEYS:
                raise keys.ConfigurationError(f"{key} is another one for each broker of a cluster, which sets it")
        ports = [reserve(0) for _ in range(cluster_plan.listener_count(self._broker_count))]
        plan = cluster_plan.plan_cluster(self._broker_count, 0, [port.port for port in ports])
        by_number = {port.port: port for port in ports}
        configs = profile.with_defaults(texts(self._config), profile.TEST, profile.CLUSTER)
        nodes = [
            hosted_node.HostedNode(
                cluster_plan.node_properties(plan, node, directory / node.name, configs),
                disk_of(self._data_dir),
                [by_number[port] for port in (node.broker_port, node.controller_port) if port is not None],
            )
            for node in plan.nodes
        ]
        hosted_node.format_together(nodes)
        hosted_node.introduce(nodes)
        return nodes

    async def __aenter__(self) -> AsyncCluster:
        await self.open_async()
        return self.aio

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close_async()


class AsyncCluster(AsyncHostedKafka):
    """`Cluster` for coroutines."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._cluster = cluster

    def fork(self) -> NoReturn:
        """Raises SavepointRefused, as `Cluster.fork` does."""
        self._cluster.fork()

    async def save(self, path: str | Path) -> NoReturn:
        """Raises SavepointRefused, as `Cluster.save` does."""
        self._cluster.save(path)

    @property
    def brokers(self) -> list[AsyncClusterBroker]:
        return [AsyncClusterBroker(broker) for broker in self._cluster.brokers]

    def broker(self, node_id: int) -> AsyncClusterBroker:
        """Return the broker with this id. Raises LookupError."""
        return AsyncClusterBroker(self._cluster.broker(node_id))
