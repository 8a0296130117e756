"""The node that `pykbroker start` runs, on this machine's disk, network and clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykbroker.config import BrokerConfig
    from pykbroker.control.clocks.clocks import Clocks
    from pykbroker.security.sasl.process_options import ProcessOptions
    from pykbroker.server.logs.log_loading import OnLoading
    from pykbroker.server.network.offer import Offer
    from pykbroker.server.node.node import Node

    from .port_file import PortFile
    from .secure.directory import SecureDirectory
    from .start_control import StartControl
    from .start_web import StartWeb


@dataclass(frozen=True, slots=True)
class Start:
    """One start: what is served, and what the flags want beside it.

    clocks: those of a savepoint. web: where the node serves HTTP. has_text_log: people may read standard error, and not
    only programs.
    """

    config: BrokerConfig
    options: ProcessOptions
    secure: SecureDirectory | None
    port_file: PortFile | None
    is_ephemeral: bool
    offer: Offer | None
    ctl: StartControl | None
    clocks: Clocks | None = None
    web: StartWeb | None = None
    has_text_log: bool = True


def make_node(start: Start, on_loading: OnLoading | None) -> Node:
    import random

    from pykbroker.api import HANDLERS
    from pykbroker.server.logs.cleaning_process import CleaningProcess
    from pykbroker.server.network.socket_transport import SocketNetwork
    from pykbroker.server.node.environment import Environment
    from pykbroker.server.node.node import Node, socket_options
    from pykbroker.server.runtime.clock import SystemClock
    from pykbroker.server.runtime.threads import OnTheLoop, WorkerThreads
    from pykbroker.storage.files.disk import OsDisk
    from pykbroker.storage.files.unsynced_disk import UnsyncedDisk

    threads = WorkerThreads()
    environment = Environment(
        disk=UnsyncedDisk() if start.is_ephemeral else OsDisk(),
        network=SocketNetwork(socket_options(start.config), threads),
        clock=SystemClock(),
        threads=threads,
        rng=random.Random(),  # noqa: S311 - nothing secret is drawn
        new_workplace=CleaningProcess,
        on_loading=on_loading,
        process_options=start.options,
        offer=start.offer,
        flush_threads=OnTheLoop() if start.is_ephemeral else None,
        takes_telemetry=start.web is not None and start.web.shows_telemetry,
    )
    if start.ctl is None:
        if start.clocks is not None:
            environment = replace(environment, time=start.clocks.scopes())
        return Node(start.config, HANDLERS, environment)
    if start.clocks is not None:
        start.ctl.control.clocks = start.clocks
    node = start.ctl.control.node = Node(start.config, HANDLERS, start.ctl.control.equip(environment))
    return node
