"""A broker inside this process: in a thread of its own, on a free port, in a directory that goes with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from .errors import BrokerNotRunning
from .hosted_kafka import HOST, AsyncHostedKafka, HostedKafka
from .lazy_module import LazyModule
from .node_control import AsyncNodeControl, NodeControl

if TYPE_CHECKING:
    from pykbroker import config as kafka_config
    from pykbroker.config import authorizer
    from pykbroker.control.journal.recorded_request import RecordedRequest
    from pykbroker.control.savepoints import saving
    from pykbroker.storage.files import disk, unsynced_disk

    from . import forking, hosted_node, operations, profile
    from .hosted_node import HostedNode
    from .reserved_port import ReservedPort
else:
    authorizer = LazyModule("pykbroker.config.authorizer")
    kafka_config = LazyModule("pykbroker.config")
    disk = LazyModule("pykbroker.storage.files.disk")
    forking = LazyModule("pykbroker.testing.forking")
    hosted_node = LazyModule("pykbroker.testing.hosted_node")
    profile = LazyModule("pykbroker.testing.profile")
    operations = LazyModule("pykbroker.testing.operations")
    saving = LazyModule("pykbroker.control.savepoints.saving")
    unsynced_disk = LazyModule("pykbroker.storage.files.unsynced_disk")

Config = Mapping[str, object]
"""Kafka's keys; True is `true`, a list is `a,b`."""


class Broker(HostedKafka, NodeControl):
    """A broker and its controller.

    config: Kafka's keys, which win over the settings for tests (`config.development.TEST`). port: 0 for a free one; the
    broker keeps it until it is closed, also while it is stopped. data_dir: where its data stays; without it the data
    goes with the broker. savepoint: a file of `save`, with which a broker begins that has no data yet.
    client_properties: with listeners of one's own that take TLS or SASL, how to log in there. journal: the bound of the
    journal of all requests, in bytes; False for none.
    """

    _kind = "pykbroker"
    """The name in messages and reports."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        port: int = 0,
        data_dir: str | Path | None = None,
        savepoint: str | Path | None = None,
        client_properties: Mapping[str, str] | None = None,
        journal: int | bool = True,
    ) -> None:
        super().__init__(self._kind, None if data_dir is None else Path(data_dir), client_properties, journal)
        NodeControl.__init__(self, self, 0)
        self._config: Final = dict(config or {})
        self._port = port
        self._journal_size: Final = journal
        self._savepoint = None if savepoint is None else Path(savepoint)

    @property
    def aio(self) -> AsyncBroker:
        """The same broker for coroutines."""
        return AsyncBroker(self)

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT`, which stays the same while the broker is open. Raises BrokerNotRunning before."""
        self.running_loop()
        return self.nodes[0].address

    def fork(self, *, at: RecordedRequest | int | None = None, port: int = 0) -> Broker:
        """Return a second broker, open and on a port of its own, which begins with all that this one has at this
        moment: topics, records, offsets, groups, producers, transactions, configurations, users and rights.

        at: a request of the journal, or the number of one of its entries: all that there was when it had ended. From
        then on neither sees what the other one does. Raises BrokerNotRunning, SavepointRefused, BrokerFailed; PointLost
        where what there was then is not there any more.
        """
        fork = self._fork(port, at)
        fork.open()
        return fork

    def save(self, path: str | Path, *, at: RecordedRequest | int | None = None) -> None:
        """Write a savepoint, all that `fork` would have, into one file. Raises BrokerNotRunning, SavepointRefused.

        The file has what users log in with, where they are in the cluster's metadata, and only its owner may read it.
        """
        self.running_loop().call(self._save, Path(path), number_of(at))

    async def _save(self, path: Path, at: int | None) -> None:
        await forking.save(self.nodes[0], path, at)

    def _fork(self, port: int, at: RecordedRequest | int | None) -> Fork:
        return Fork(self, port=port, at=number_of(at))

    def _make_nodes(self, directory: Path, reserve: Callable[[int], ReservedPort]) -> Sequence[HostedNode]:
        given = {**self._of_its_own(directory), **texts(self._config)}
        if self._savepoint is not None and not {"node.id", "broker.id"} & given.keys():
            given["node.id"] = str(saving.node_id_of(self._savepoint))
        properties, ports = self._at_ports(profile.with_defaults(given, profile.TEST), reserve)
        return [hosted_node.HostedNode(properties, disk_of(self._data_dir), ports)]

    def _fill_directories(self, nodes: Sequence[HostedNode]) -> None:
        """Raises InvalidSavepoint, SavepointRefused."""
        if self._savepoint is not None:
            forking.unpack(self._savepoint, nodes[0], durably=self._data_dir is not None)

    def _of_its_own(self, directory: Path) -> dict[str, str]:
        """Return the properties that are the broker's own where the configuration has none: where its data goes."""
        return {"log.dirs": str(directory / "data")}

    def _at_ports(
        self, properties: dict[str, str], reserve: Callable[[int], ReservedPort]
    ) -> tuple[dict[str, str], list[ReservedPort]]:
        """Return the properties with listeners, and the ports that are kept for them."""
        if "listeners" not in properties:
            port = reserve(self._port)
            return {**properties, "listeners": f"PLAINTEXT://{HOST}:{port.port}"}, [port]
        check_no_port(self._port)
        return properties, []

    async def __aenter__(self) -> AsyncBroker:
        await self.open_async()
        return self.aio

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close_async()


class Fork(Broker):
    """A broker that begins with all that `source` has when it is opened; its data goes with it.

    Neither sees what the other one does, and either may be closed first. at: the number of an entry in the source's
    journal, with what there was when that had ended.
    """

    _kind = "pykbroker fork"

    def __init__(self, source: Broker, *, port: int, at: int | None = None) -> None:
        source.running_loop()
        self._source: Broker | None = source
        self._at: Final = at
        self._source_config = source.nodes[0].config
        super().__init__(
            forking.without_directories(source._config),
            port=port,
            client_properties=source._client_properties,
            journal=source._journal_size,
        )

    def open(self) -> None:
        """Take over what the source has. Raises BrokerNotRunning, SavepointRefused, BrokerFailed."""
        if self._source is None and not self.is_open:
            raise BrokerNotRunning("the fork was closed, and its data is gone: make another one")
        super().open()
        self._source = None

    def __enter__(self) -> Self:
        return self if self.is_open else super().__enter__()

    async def __aenter__(self) -> AsyncBroker:
        return self.aio if self.is_open else await super().__aenter__()

    def _ephemeral_directory(self) -> AbstractContextManager[Path]:
        return forking.new_directory(self._source_config)

    def _of_its_own(self, directory: Path) -> dict[str, str]:
        node_id = str(self._source_config.node_id)  # which a savepoint has told the source
        return {"node.id": node_id, **forking.log_directories(self._source_config, directory)}

    def _at_ports(
        self, properties: dict[str, str], reserve: Callable[[int], ReservedPort]
    ) -> tuple[dict[str, str], list[ReservedPort]]:
        if "listeners" in properties:
            check_no_port(self._port)
            return forking.at_other_ports(properties, reserve)
        own = self._source_config.originals["listeners"]  # with the port that is advertised where one is
        return forking.at_other_ports({**properties, "listeners": own}, reserve, self._port)

    def _fill_directories(self, nodes: Sequence[HostedNode]) -> None:
        assert self._source is not None
        self._source.running_loop().call(forking.copy, self._source.nodes[0], nodes[0], self._at)


class AsyncBroker(AsyncHostedKafka, AsyncNodeControl):
    """`Broker` for coroutines."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        AsyncNodeControl.__init__(self, broker)
        self._broker = broker

    def fork(self, *, at: RecordedRequest | int | None = None, port: int = 0) -> Broker:
        """Return a fork for `async with`, which opens it and gives its `AsyncBroker`; see `Broker.fork`."""
        return self._broker._fork(port, at)

    async def save(self, path: str | Path, *, at: RecordedRequest | int | None = None) -> None:
        """Write a savepoint; see `Broker.save`."""
        await self._broker.running_loop().call_async(self._broker._save, Path(path), number_of(at))


def check_no_port(port: int) -> None:
    if port:
        raise ValueError("`port` goes with the broker's own listener, and `listeners` is given")


def number_of(at: RecordedRequest | int | None) -> int | None:
    """Return the number of an entry of the journal. Raises TypeError."""
    number = getattr(at, "number", at)
    if number is not None and not isinstance(number, int):
        raise TypeError(f"`at` is a request of the journal, or the number of an entry, not {type(at).__name__}")
    return number


def texts(config: Config) -> dict[str, str]:
    """Return the configuration as a properties file has it. Raises ConfigurationError for a key that nobody knows."""
    from pykbroker.config.own_keys import OF_WEB_LISTENERS

    own = set(kafka_config.own_keys()) - OF_WEB_LISTENERS  # a broker in a test's process has none
    known = {*kafka_config.broker_keys(), *own, authorizer.SUPER_USERS, authorizer.ALLOW_EVERYONE}
    for key in config:
        if key not in known and not kafka_config.is_of_a_listener(key):
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "it is none of a broker's"
            raise kafka_config.ConfigurationError(f"there is no configuration {key}; {hint}")
    return {key: operations.config_text(value) for key, value in config.items()}


def disk_of(data_dir: Path | None) -> disk.Disk:
    """Return the disk of data that stays, or of data that goes with its broker."""
    return unsynced_disk.UnsyncedDisk() if data_dir is None else disk.OsDisk()
