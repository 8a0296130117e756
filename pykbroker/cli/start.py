"""`pykbroker start`: one node in this process, until SIGTERM or Ctrl-C.

Where the data goes: `--data-dir`, else `log.dirs` of the properties, else `pykbroker-data` in the current directory.
Standard output gets one line, when the node serves; the log goes to standard error. What cannot be started is one line
there and exit code 1. `docs/testing.md` tells programs that start a broker what they may rely on.

What takes time to import is imported when signals are heard.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykbroker.error_groups import first_of

from .command import ClientCommand, CommandFailed, forget_stdout, one_line
from .stop_requests import StopRequests

if TYPE_CHECKING:
    import trio

    from pykbroker.config import BrokerConfig
    from pykbroker.control.clocks.clocks import Clocks
    from pykbroker.security.sasl.process_options import ProcessOptions
    from pykbroker.server.logs.log_loading import OnLoading
    from pykbroker.server.network.offer import Offer
    from pykbroker.server.node.node import Node, NodeReady

    from .port_file import PortFile
    from .secure.directory import SecureDirectory
    from .start_as import StartAs
    from .start_control import StartControl
    from .start_web import StartWeb

_log = logging.getLogger(__name__)

DEFAULT_DATA_DIRECTORY = "pykbroker-data"
_LOG_DIRECTORY_KEYS = ("log.dirs", "log.dir")


@click.command("start", cls=ClientCommand)
@click.argument("properties", required=False, type=click.Path(path_type=Path), metavar="[server.properties]")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A property that wins over the file.")
@click.option("--data-dir", type=click.Path(path_type=Path), help=f"Where the data goes [./{DEFAULT_DATA_DIRECTORY}].")
@click.option("--ephemeral", is_flag=True, help="Keep the data in a temporary directory that is removed at the end.")
@click.option(
    "--savepoint",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Begin with the state that a savepoint has, in a directory that is empty so far.",
)
@click.option(
    "--secure",
    "secure_dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With TLS, users and rights: certificates, passwords and clients' configurations are in DIR, made at first.",
)
@click.option("--as", "as_name", metavar="NAME|FILE", help="Offer what another Kafka offers: 2.8, or a file of probe.")
@click.option("--dev", is_flag=True, help="Settings for a developer's machine, where the file gives no others.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port for clients; 0 is any free one.")
@click.option(
    "--port-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file that says where the node serves, from when it serves until it ends.",
)
@click.option("--die-with-parent", is_flag=True, help="End when the process that started this one is gone.")
@click.option(
    "--parent-pid",
    type=click.IntRange(1),
    metavar="PID",
    help="The process with which this one ends, where it is not the parent but its parent, say.",
)
@click.option(
    "--ctl-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Have programs of this machine control the broker over HTTP, for tests: pykbroker ctl; 0 is any free port.",
)
@click.option(
    "--ctl-token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --ctl-port: a file, which others cannot read, with the token that whoever controls the broker sends.",
)
def command(
    properties: Path | None,
    overrides: tuple[str, ...],
    data_dir: Path | None,
    ephemeral: bool,
    savepoint: Path | None,
    secure_dir: Path | None,
    as_name: str | None,
    dev: bool,
    port: int | None,
    port_file: Path | None,
    die_with_parent: bool,
    parent_pid: int | None,
    ctl_port: int | None,
    ctl_token_file: Path | None,
) -> None:
    """Start a node: a broker and its controller, unless process.roles says otherwise."""
    stop = StopRequests()
    stop.listen()
    if die_with_parent or parent_pid is not None:
        from .parent_watch import ParentWatch

        ParentWatch(parent_pid).start(stop.ask)
    with stop.interrupting():
        from pykbroker.config import ConfigurationError
        from pykbroker.config.development import DEVELOPMENT
        from pykbroker.server.runtime.log_lines import write_log_to

    if ephemeral and data_dir is not None:
        raise CommandFailed("--ephemeral and --data-dir exclude each other")
    if savepoint is not None and secure_dir is not None:
        raise CommandFailed("--savepoint and --secure exclude each other: a savepoint has its own users and rights")
    if secure_dir is not None and properties is not None:
        raise CommandFailed("--secure has a server.properties of its own in its directory; give it alone")
    if ctl_token_file is not None and ctl_port is None:
        raise CommandFailed("--ctl-token-file goes with --ctl-port")
    write_log_to(sys.stderr)
    _allow_all_descriptors()
    with _port_file(port_file) as where, _directory_of_flags(data_dir, ephemeral) as directory:
        try:
            secure = None if secure_dir is None else _open_secure(secure_dir)
            file = properties if secure is None else secure.properties
            defaults = DEVELOPMENT if dev else {}
            start_as = None if as_name is None else _start_as(as_name)
            below = dict({} if start_as is None else start_as.properties)
            if savepoint is not None:
                below["node.id"] = str(_node_id_of(savepoint))
            config = load_config(file, key_values(overrides), directory, port=port, defaults=defaults, below=below)
            options = checked_sasl(config, asks=True)
            offer = None if start_as is None else start_as.offer(config)
            ctl = None if ctl_port is None else _control(config, ctl_port, ctl_token_file)
            web = _web(config)
        except ConfigurationError as error:
            raise CommandFailed(one_line(error)) from None
        try:
            clocks = None
            if savepoint is not None:
                with stop.interrupting():
                    clocks = _unpack(savepoint, config, durably=not ephemeral)
            _serve(_Start(config, options, secure, where, ephemeral, offer, ctl, web, clocks), stop)
        except SystemExit:
            _log.info("the node stops before it starts%s", f": {stop.reason}" if stop.reason else "")
        finally:
            web.close()


@dataclass(frozen=True, slots=True)
class _Start:
    """One start: what is served, and what the flags want beside it. clocks: those of a savepoint."""

    config: BrokerConfig
    options: ProcessOptions
    secure: SecureDirectory | None
    port_file: PortFile | None
    is_ephemeral: bool
    offer: Offer | None
    ctl: StartControl | None
    web: StartWeb
    clocks: Clocks | None = None


def load_config(
    properties: Path | None,
    overrides: Mapping[str, str],
    directory: Path | None,
    *,
    port: int | None = None,
    defaults: Mapping[str, str] | None = None,
    below: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """The configuration of a node.

    directory, port: what flags asked for, which wins over the properties. defaults: those where they give none. below:
    those of a personality, in the same place.
    """
    from pykbroker.config import BrokerConfig
    from pykbroker.config.client_port import at_client_port
    from pykbroker.config.development import without_given

    values = dict(overrides)
    if directory is not None:
        values |= {"log.dirs": str(directory), "metadata.log.dir": str(directory)}
    config = BrokerConfig.load(properties, values, below)
    if not any(key in config.originals for key in _LOG_DIRECTORY_KEYS):
        values["log.dirs"] = DEFAULT_DATA_DIRECTORY
    if port is not None:
        values |= at_client_port(config, port)
    if defaults:
        chosen = without_given(defaults, config.originals)
        _log.info("settings of --dev: %s", " ".join(f"{key}={value}" for key, value in chosen.items()))
        values |= chosen
    if values != overrides:
        config = BrokerConfig.load(properties, values, below)
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
    from pykbroker.config.listeners import uses_sasl
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
    from pykbroker.config import ConfigurationError

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
    import resource

    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # where the system says "unlimited" and does not mean it, as macOS does
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))


@contextmanager
def _port_file(path: Path | None) -> Iterator[PortFile | None]:
    if path is None:
        yield None
        return
    from .port_file import PortFile

    file = PortFile(path)
    file.prepare()
    try:
        yield file
    finally:
        file.remove()


@contextmanager
def _directory_of_flags(data_dir: Path | None, ephemeral: bool) -> Iterator[Path | None]:
    if not ephemeral:
        yield data_dir
        return
    from pykbroker.server.runtime.ephemeral_directories import ephemeral_directory

    with ExitStack() as stack:
        try:
            path = stack.enter_context(ephemeral_directory())
        except OSError as error:
            raise CommandFailed(f"--ephemeral: no temporary directory can be made: {error.strerror or error}") from None
        yield path


def _node_id_of(savepoint: Path) -> int:
    from pykbroker.control.savepoints.errors import SavepointError
    from pykbroker.control.savepoints.saving import node_id_of

    try:
        return node_id_of(savepoint)
    except SavepointError as error:
        raise CommandFailed(one_line(error)) from None


def _unpack(savepoint: Path, config: BrokerConfig, *, durably: bool) -> Clocks:
    from pykbroker.control.clocks.clocks import Clocks
    from pykbroker.control.savepoints.errors import SavepointError
    from pykbroker.control.savepoints.saving import unpack

    try:
        manifest = unpack(savepoint, config, durably=durably)
    except SavepointError as error:
        raise CommandFailed(one_line(error)) from None
    _log.info("%d files with %d bytes come from the savepoint %s", len(manifest.files), manifest.size_bytes, savepoint)
    return Clocks(manifest.advances)


def _open_secure(path: Path) -> SecureDirectory:
    from .secure.directory import open_directory

    return open_directory(path)


def _start_as(name: str) -> StartAs:
    from .start_as import StartAs

    return StartAs(name)


def _control(config: BrokerConfig, port: int, token_file: Path | None) -> StartControl:
    from .start_control import StartControl

    return StartControl(config, port, token_file)


def _web(config: BrokerConfig) -> StartWeb:
    from .start_web import StartWeb

    return StartWeb(config)


def _serve(start: _Start, stop: StopRequests) -> None:
    """Run the node to its end. Raises ClickException, which is one line and exit code 1."""
    with stop.interrupting():
        import trio

        import pykbroker.api  # noqa: F401 - of what `_node` imports, the most by far
        from pykbroker.client.errors import ClientError
        from pykbroker.config import ConfigurationError
        from pykbroker.server.node.node import NeverServed
        from pykbroker.server.runtime.startup_error import StartupError
        from pykbroker.storage.files.errors import StorageError

    failure: BaseException | None = None
    try:
        trio.run(_serve_until_stopped, start, stop)
    except* NeverServed:
        pass
    except* (StartupError, StorageError, ConfigurationError, ClientError, CommandFailed) as group:
        failure = first_of(group)
    if failure is not None:
        raise CommandFailed(one_line(failure))


async def _serve_until_stopped(start: _Start, stop: StopRequests) -> None:
    import trio

    from pykbroker.server.runtime.clock import SystemClock
    from pykbroker.server.runtime.free_memory import give_back_free_memory, map_large_blocks, trimming
    from pykbroker.server.runtime.garbage_collection import GarbageCollection, no_full_collections
    from pykbroker.server.runtime.loop_monitor import logging_holds
    from pykbroker.server.runtime.thread_switches import quick_switches
    from pykbroker.server.runtime.threads import WorkerThreads

    from .loading_bar import loading_bar

    map_large_blocks()
    with loading_bar(sys.stderr) as on_loading:
        node = _node(start, on_loading)
        gc.freeze()  # what is imported by now stays: the collector need not look at it again
        async with trio.open_nursery() as nursery:
            starting = trio.CancelScope()
            nursery.start_soon(_stop_when_asked, stop, node, starting, start.ctl)
            nursery.start_soon(GarbageCollection().run)
            await start.web.serve(nursery, node)
            with starting, no_full_collections():
                ready = await nursery.start(*([node.run] if start.ctl is None else [start.ctl.run, node]))
                if start.secure is not None:
                    await _prepare_clients(start.secure, ready)
                ctl = "" if start.ctl is None else await start.ctl.serve(nursery, ready)
                start.web.node_serves(ready)
                _announce(start, ready, ctl)
                gc.freeze()  # … nor at what was loaded: a pass over the state of 10,000 partitions would hold the loop
                nursery.start_soon(give_back_free_memory, WorkerThreads(1), trimming())
                with logging_holds(SystemClock()) as start.web.monitor, quick_switches():
                    await node.stopped.wait()
            gc.freeze()  # what is left goes with the process; its last passes would take most of a second
            nursery.cancel_scope.cancel()


def _announce(start: _Start, ready: NodeReady, ctl: str) -> None:
    """Say where the node serves. Whoever reads the line finds the port file. ctl: where its control is, or nothing."""
    if start.port_file is not None:
        start.port_file.write(ready.listeners, ctl)
    try:
        click.echo(f"pykbroker ready: {ready.told(f'ctl={ctl}') if ctl else ready}")
    except BrokenPipeError:
        forget_stdout()
    if start.is_ephemeral:
        from pykbroker.server.runtime.ephemeral_directories import sweep_in_background

        sweep_in_background()


async def _prepare_clients(secure: SecureDirectory, ready: NodeReady) -> None:
    """Give users their rights, and write their clients' configurations. Raises ClientError, ConfigurationError."""
    from pykbroker.config import ConfigurationError

    from .secure.rights import give_rights

    secured = [each for each in ready.listeners if each.security_protocol == "SASL_SSL"]
    if not secured:
        raise ConfigurationError(f"--secure needs a SASL_SSL listener, and there is none among {ready.where}")
    bootstrap = ",".join(each.address for each in secured)
    await give_rights(secure, bootstrap)
    secure.write_client_files(bootstrap)


async def _stop_when_asked(
    stop: StopRequests, node: Node, starting: trio.CancelScope, ctl: StartControl | None
) -> None:
    """The first request asks for a clean shutdown, the second one does not wait for it."""
    await stop.asked(1)
    if ctl is not None:
        ctl.control.mishaps.end_all()  # a node that is paused would not hear of it
    if stop.reason:
        _log.info("the node stops: %s", stop.reason)
    node.stop()
    await stop.asked(2)
    starting.cancel()


def _node(start: _Start, on_loading: OnLoading | None) -> Node:
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
    )
    if start.ctl is None:
        if start.clocks is not None:
            environment = replace(environment, time=start.clocks.scopes())
        return Node(start.config, HANDLERS, environment)
    if start.clocks is not None:
        start.ctl.control.clocks = start.clocks
    node = start.ctl.control.node = Node(start.config, HANDLERS, start.ctl.control.equip(environment))
    return node
