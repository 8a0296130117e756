"""`pykbroker start`: one node in this process, until SIGTERM or Ctrl-C.

Where the data goes: `--data-dir`, else `log.dirs` of the properties, else `pykbroker-data` in the current directory.
Standard output gets one line, when the node serves; the log goes to standard error. What cannot be started is one line
there and exit code 1.
"""

from __future__ import annotations

import gc
import logging
import random
import resource
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import trio

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.listeners import uses_sasl
from pykbroker.server.runtime.log_lines import write_log_to

from .command import ClientCommand, CommandFailed, one_line
from .loading_bar import loading_bar

if TYPE_CHECKING:
    from pykbroker.security.sasl.process_options import ProcessOptions
    from pykbroker.server.logs.log_loading import OnLoading
    from pykbroker.server.network.offer import Offer
    from pykbroker.server.node.node import Node, NodeReady

    from .secure.directory import SecureDirectory
    from .start_as import StartAs

_log = logging.getLogger(__name__)

DEFAULT_DATA_DIRECTORY = "pykbroker-data"
_LOG_DIRECTORY_KEYS = ("log.dirs", "log.dir")


@click.command("start", cls=ClientCommand)
@click.argument("properties", required=False, type=click.Path(path_type=Path), metavar="[server.properties]")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A property that wins over the file.")
@click.option("--data-dir", type=click.Path(path_type=Path), help=f"Where the data goes [./{DEFAULT_DATA_DIRECTORY}].")
@click.option("--ephemeral", is_flag=True, help="Keep the data in a temporary directory that is removed at the end.")
@click.option(
    "--secure",
    "secure_dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With TLS, users and rights: certificates, passwords and clients' configurations are in DIR, made at first.",
)
@click.option("--as", "as_name", metavar="NAME|FILE", help="Offer what another Kafka offers: 2.8, or a file of probe.")
def command(
    properties: Path | None,
    overrides: tuple[str, ...],
    data_dir: Path | None,
    ephemeral: bool,
    secure_dir: Path | None,
    as_name: str | None,
) -> None:
    """Start a node: a broker and its controller, unless process.roles says otherwise."""
    if ephemeral and data_dir is not None:
        raise CommandFailed("--ephemeral and --data-dir exclude each other")
    if secure_dir is not None and properties is not None:
        raise CommandFailed("--secure has a server.properties of its own in its directory; give it alone")
    write_log_to(sys.stderr)
    _allow_all_descriptors()
    with _directory_of_flags(data_dir, ephemeral) as directory:
        try:
            secure = None if secure_dir is None else _open_secure(secure_dir)
            start_as = None if as_name is None else _start_as(as_name)
            config = load_config(
                properties if secure is None else secure.properties,
                key_values(overrides),
                directory,
                None if start_as is None else start_as.properties,
            )
            options = checked_sasl(config, asks=True)
            offer = None if start_as is None else start_as.offer(config)
        except ConfigurationError as error:
            raise CommandFailed(one_line(error)) from None
        _serve(config, options, secure, offer)


def load_config(
    properties: Path | None,
    overrides: Mapping[str, str],
    directory: Path | None,
    defaults: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """The configuration of a node. `directory` is what a flag asked for; it wins over the properties. defaults: what
    holds where the properties and `overrides` say nothing.
    """
    values = dict(overrides)
    if directory is not None:
        values |= {"log.dirs": str(directory), "metadata.log.dir": str(directory)}
    config = BrokerConfig.load(properties, values, defaults)
    if not any(key in config.originals for key in _LOG_DIRECTORY_KEYS):
        config = BrokerConfig.load(properties, values | {"log.dirs": DEFAULT_DATA_DIRECTORY}, defaults)
    if config.unknown_keys:
        _log.warning(
            "these settings are unknown, and ignored; check their spelling: %s", ", ".join(config.unknown_keys)
        )
    if config.without_effect:
        _log.warning("these settings have no effect in pykbroker: %s", ", ".join(config.without_effect))
    return config


def checked_sasl(config: BrokerConfig, *, asks: bool) -> ProcessOptions:
    """Check the SASL of a node, and return what those say of it who start the process. Raises ConfigurationError.

    asks: the node will ask for keys and tokens, at addresses that must be allowed.
    """
    from pykbroker.security.sasl.process_options import NO_OPTIONS

    if not any(map(uses_sasl, config.listeners.security_protocols)):
        return NO_OPTIONS
    from pykbroker.security.java_options import options_of_process
    from pykbroker.security.sasl.node_settings import check_sasl

    options = options_of_process()
    check_sasl(config, options if asks else replace(options, allowed_urls=None))
    return options


def key_values(overrides: tuple[str, ...]) -> dict[str, str]:
    """`--override key=value …` as a mapping; of two for one key the last wins."""
    values = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"--override expects KEY=VALUE, not '{text}'")
        values[key.strip()] = value.strip()
    return values


def _allow_all_descriptors() -> None:
    """Raise the limit of open files to what the system allows, as the JVM does for Apache Kafka.

    Shells begin with 1,024, which segments and connections soon use up.
    """
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # where the system says "unlimited" and does not mean it, as macOS does
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))


@contextmanager
def _directory_of_flags(data_dir: Path | None, ephemeral: bool) -> Iterator[Path | None]:
    if ephemeral:
        with tempfile.TemporaryDirectory(prefix="pykbroker-") as directory:
            yield Path(directory)
    else:
        yield data_dir


def _open_secure(path: Path) -> SecureDirectory:
    from .secure.directory import open_directory

    return open_directory(path)


def _start_as(name: str) -> StartAs:
    from .start_as import StartAs

    return StartAs(name)


def _serve(config: BrokerConfig, options: ProcessOptions, secure: SecureDirectory | None, offer: Offer | None) -> None:
    """Run the node to its end. Raises ClickException, which is one line and exit code 1."""
    from pykbroker.client.errors import ClientError
    from pykbroker.server.node.node import NeverServed
    from pykbroker.server.runtime.startup_error import StartupError
    from pykbroker.storage.files.errors import StorageError

    failure: BaseException | None = None
    try:
        trio.run(_serve_until_signal, config, options, secure, offer)
    except* NeverServed:
        pass
    except* (StartupError, StorageError, ConfigurationError, ClientError) as group:
        failure = _first_of(group)
    if failure is not None:
        raise CommandFailed(one_line(failure))


def _first_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _serve_until_signal(
    config: BrokerConfig, options: ProcessOptions, secure: SecureDirectory | None, offer: Offer | None
) -> None:
    from pykbroker.server.runtime.clock import SystemClock
    from pykbroker.server.runtime.free_memory import give_back_free_memory, map_large_blocks, trimming
    from pykbroker.server.runtime.garbage_collection import GarbageCollection, no_full_collections
    from pykbroker.server.runtime.loop_monitor import logging_holds
    from pykbroker.server.runtime.thread_switches import quick_switches
    from pykbroker.server.runtime.threads import WorkerThreads

    map_large_blocks()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals, loading_bar(sys.stderr) as on_loading:
        node = _node(config, options, on_loading, offer)
        gc.freeze()  # what is imported by now stays: the collector need not look at it again
        async with trio.open_nursery() as nursery:
            starting = trio.CancelScope()
            nursery.start_soon(_stop_on_signal, signals, node, starting)
            nursery.start_soon(GarbageCollection().run)
            with starting, no_full_collections():
                ready = await nursery.start(node.run)
                if secure is not None:
                    await _prepare_clients(secure, ready)
                click.echo(f"pykbroker ready: {ready}")
                gc.freeze()  # … nor at what was loaded: a pass over the state of 10,000 partitions would hold the loop
                nursery.start_soon(give_back_free_memory, WorkerThreads(1), trimming())
                with logging_holds(SystemClock()), quick_switches():
                    await node.stopped.wait()
            gc.freeze()  # what is left goes with the process; its last passes would take most of a second
            nursery.cancel_scope.cancel()


async def _prepare_clients(secure: SecureDirectory, ready: NodeReady) -> None:
    """Give users their rights, and write their clients' configurations. Raises ClientError, ConfigurationError."""
    from .secure.rights import give_rights

    secured = [each for each in ready.listeners if each.security_protocol == "SASL_SSL"]
    if not secured:
        raise ConfigurationError(f"--secure needs a SASL_SSL listener, and there is none among {ready.where}")
    bootstrap = ",".join(each.address for each in secured)
    await give_rights(secure, bootstrap)
    secure.write_client_files(bootstrap)


async def _stop_on_signal(signals: AsyncIterator[int], node: Node, starting: trio.CancelScope) -> None:
    """The first signal asks for a clean shutdown, the second one does not wait for it."""
    await anext(signals)
    node.stop()
    await anext(signals)
    starting.cancel()


def _node(config: BrokerConfig, options: ProcessOptions, on_loading: OnLoading | None, offer: Offer | None) -> Node:
    from pykbroker.api import HANDLERS
    from pykbroker.server.logs.cleaning_process import CleaningProcess
    from pykbroker.server.network.socket_transport import SocketNetwork
    from pykbroker.server.node.environment import Environment
    from pykbroker.server.node.node import Node, socket_options
    from pykbroker.server.runtime.clock import SystemClock
    from pykbroker.server.runtime.threads import WorkerThreads
    from pykbroker.storage.files.disk import OsDisk

    threads = WorkerThreads()
    environment = Environment(
        disk=OsDisk(),
        network=SocketNetwork(socket_options(config), threads),
        clock=SystemClock(),
        threads=threads,
        rng=random.Random(),  # noqa: S311 - nothing secret is drawn
        new_workplace=CleaningProcess,
        on_loading=on_loading,
        process_options=options,
        offer=offer,
    )
    return Node(config, HANDLERS, environment)
