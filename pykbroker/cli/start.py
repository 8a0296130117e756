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
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykbroker.error_groups import first_of

from .command import EXIT_INTERRUPTED, ClientCommand, CommandFailed, forget_stdout, one_line
from .examples import examples
from .service_manager import tell_service_manager
from .start_files import allow_all_descriptors, announced_in, directory_of_flags
from .start_flags import StartFlags, start_options
from .start_node import Start, make_node
from .stop_requests import StopRequests

if TYPE_CHECKING:
    import trio

    from pykbroker.config import BrokerConfig
    from pykbroker.control.clocks.clocks import Clocks
    from pykbroker.server.node.node import Node, NodeReady

    from .port_file import PortFile
    from .start_as import StartAs
    from .start_control import StartControl
    from .start_web import StartWeb

_log = logging.getLogger(__name__)


@click.command(
    "start",
    cls=ClientCommand,
    epilog=examples(
        ("On 127.0.0.1:9092, with data in ./pykbroker-data", "pykbroker start"),
        ("In a temporary directory, on a free port", "pykbroker start --ephemeral --port 0"),
        ("By Apache Kafka's property names", "pykbroker start server.properties --override num.partitions=3"),
    ),
)
@start_options
def command(flags: StartFlags) -> None:
    """Start a node: a broker and its controller, unless process.roles says otherwise."""
    stop = StopRequests()
    stop.listen()
    if flags.cores > 1 and not flags.check_config:
        from .start_cores import run_cores

        flags.check()
        run_cores(flags, stop, _start_of)
    if flags.is_node_of_cores:
        from .start_cores import settings_from_stdin

        flags = settings_from_stdin(flags)
    if flags.die_with_parent or flags.parent_pid is not None:
        from .parent_watch import ParentWatch

        ParentWatch(flags.parent_pid).start(stop.ask)
    with stop.interrupting():
        from pykbroker.deferred_imports import deferred

        # Archives, all that OpenSSL has, and properties in XML: two megabytes.
        with deferred("bz2", "lzma", "hashlib", "hmac", "xml.etree.ElementTree"):
            import hashlib  # noqa: F401
            import hmac  # noqa: F401
            import shutil  # noqa: F401
            import xml.etree.ElementTree  # noqa: F401

        import pykbroker.config  # noqa: F401 - takes a while
        from pykbroker.server.runtime.log_lines import write_log_to

    flags.check()
    if flags.check_config:
        write_log_to(sys.stderr, logging.ERROR)
        try:
            with _waits_for_properties(flags, stop):
                _check_config(flags)
        except SystemExit:  # of a signal: a check that did not come to its end found nothing
            raise SystemExit(EXIT_INTERRUPTED) from None
        return
    write_log_to(sys.stderr, style=flags.log_format, levels=flags.levels)
    allow_all_descriptors()
    try:
        _run(flags, stop)
    except CommandFailed as error:
        if flags.log_format != "json":
            raise
        _log.critical("%s", one_line(error))
        raise SystemExit(1) from None


def _run(flags: StartFlags, stop: StopRequests) -> None:
    """Run the node that the flags ask for. Raises CommandFailed."""
    with (
        announced_in(flags.port_file) as port_file,
        directory_of_flags(flags.data_dir, flags.ephemeral) as directory,
    ):
        try:
            with _waits_for_properties(flags, stop):
                start = _start_of(flags, directory, port_file)
            _run_to_its_end(flags, start, stop)
        except SystemExit:
            _log.info("the node stops before it starts%s", f": {stop.reason}" if stop.reason else "")


def _waits_for_properties(flags: StartFlags, stop: StopRequests) -> AbstractContextManager[None]:
    """Let a request to stop end the reading of properties, which for a pipe may take for ever.

    Directories of --secure are made there as well, and what is made is not interrupted.
    """
    return stop.interrupting() if flags.secure_dir is None else nullcontext()


def _run_to_its_end(flags: StartFlags, start: Start, stop: StopRequests) -> None:
    """Raises CommandFailed; SystemExit where a stop is asked for before the node starts."""
    web = _web(start.config)
    try:
        with stop.interrupting():
            clocks = _unpacked(flags, start)
        _serve(replace(start, web=web, clocks=clocks), stop)
    finally:
        web.close()


def _check_config(flags: StartFlags) -> None:
    """Print the settings that a start would have. Raises CommandFailed where it could not start with them."""
    from pykbroker.config import ConfigurationError

    from .settings_told import print_settings
    from .start_config import check_tls

    config = _start_of(flags, flags.data_dir, None).config
    others = []
    try:
        check_tls(config)
        if flags.cores > 1:
            from .start_cores import plan_of_check

            config, *others = plan_of_check(config, flags.cores)
    except ConfigurationError as error:
        raise CommandFailed(one_line(error)) from None
    print_settings(config)
    for other in others:
        click.echo(f"\nnode {other.node_id}, where it differs:")
        print_settings(other)


def _start_of(flags: StartFlags, directory: Path | None, port_file: PortFile | None) -> Start:
    """Return what the flags ask for. Raises CommandFailed."""
    from pykbroker.config import ConfigurationError
    from pykbroker.config.development import DEVELOPMENT
    from pykbroker.security.packages import CERTIFICATES, need

    from .start_config import checked_sasl, key_values, load_config

    try:
        secure = None
        if flags.secure_dir is not None:
            need(CERTIFICATES, "--secure")
            from .secure.directory import open_directory

            secure = open_directory(flags.secure_dir)
        start_as = None
        if flags.as_name is not None:
            from .start_as import StartAs

            start_as = StartAs(flags.as_name)
        config = load_config(
            flags.properties if secure is None else secure.properties,
            {**key_values(flags.overrides), **flags.settings},
            directory,
            directory_flag="--ephemeral" if flags.ephemeral else "--data-dir",
            port=flags.port,
            defaults=DEVELOPMENT if flags.dev else {},
            below=_below(flags, start_as),
            origins=flags.origins,
        )
        if not flags.is_node_of_cores:
            from .core_directories import check_none_left_out

            check_none_left_out(config, flags.cores)
        return Start(
            config,
            checked_sasl(config, asks=True),
            secure,
            port_file,
            flags.ephemeral or flags.settings_ephemeral,
            None if start_as is None else start_as.offer(config),
            _control(flags, config),
            has_text_log=flags.log_format == "text",
        )
    except ConfigurationError as error:
        raise CommandFailed(one_line(error)) from None


def _below(flags: StartFlags, start_as: StartAs | None) -> dict[str, Mapping[str, str]]:
    """The settings below those of the file, by their flag: a personality's, and the id of a savepoint's node."""
    below: dict[str, Mapping[str, str]] = {}
    if flags.savepoint is not None:
        from .start_savepoint import read_node_id

        below["--savepoint"] = {"node.id": str(read_node_id(flags.savepoint))}
    if start_as is not None:
        below[f"--as {flags.as_name}"] = start_as.properties
    return below


def _control(flags: StartFlags, config: BrokerConfig) -> StartControl | None:
    if flags.ctl_port is None:
        return None
    from .start_control import StartControl

    return StartControl(config, flags.ctl_port, flags.ctl_token_file)


def _web(config: BrokerConfig) -> StartWeb:
    """Return the listeners of the console, metrics and health. Raises CommandFailed."""
    from pykbroker.config import ConfigurationError

    from .start_web import StartWeb

    try:
        return StartWeb(config)
    except ConfigurationError as error:
        raise CommandFailed(one_line(error)) from None


def _unpacked(flags: StartFlags, start: Start) -> Clocks | None:
    """The clocks of the savepoint, whose files are in place then; None without one."""
    if flags.savepoint is None:
        return None
    from .start_savepoint import unpack_savepoint

    return unpack_savepoint(flags.savepoint, start.config, durably=not flags.ephemeral)


def _serve(start: Start, stop: StopRequests) -> None:
    """Run the node to its end. Raises ClickException, which is one line and exit code 1."""
    with stop.interrupting():
        import trio

        from pykbroker.deferred_imports import deferred

        with deferred("argparse", "csv"):  # for its command, and by what finds its version
            import crc32c  # noqa: F401

        import pykbroker.api  # noqa: F401 - of what `make_node` imports, the most by far
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
        from .start_failures import told_failure

        raise CommandFailed(told_failure(failure, start.config))


async def _serve_until_stopped(start: Start, stop: StopRequests) -> None:
    import trio

    from pykbroker.server.runtime.clock import SystemClock
    from pykbroker.server.runtime.free_memory import give_back_free_memory, map_large_blocks, trimming
    from pykbroker.server.runtime.garbage_collection import (
        GarbageCollection,
        no_full_collections,
        passes_between_rounds,
    )
    from pykbroker.server.runtime.loop_monitor import logging_holds
    from pykbroker.server.runtime.thread_switches import quick_switches
    from pykbroker.server.runtime.threads import WorkerThreads

    from .loading_bar import loading_bar

    assert start.web is not None
    map_large_blocks()
    with loading_bar(sys.stderr) as on_loading:
        node = make_node(start, on_loading)
        gc.freeze()  # what is imported by now stays: the collector need not look at it again
        async with trio.open_nursery() as nursery:
            starting = trio.CancelScope()
            nursery.start_soon(_stop_when_asked, stop, node, starting, start.ctl)
            nursery.start_soon(GarbageCollection().run)
            await start.web.serve(nursery, node)
            with starting, passes_between_rounds(), no_full_collections():
                ready = await nursery.start(*([node.run] if start.ctl is None else [start.ctl.run, node]))
                if start.secure is not None:
                    from .secure.rights import prepare_clients

                    await prepare_clients(start.secure, ready)
                ctl = "" if start.ctl is None else await start.ctl.serve(nursery, ready)
                start.web.node_serves(ready)
                _announce(start, ready, ctl)
                gc.freeze()  # … nor at what was loaded: a pass over the state of 10,000 partitions would hold the loop
                nursery.start_soon(give_back_free_memory, WorkerThreads(1), trimming())
                with logging_holds(SystemClock()) as start.web.monitor, quick_switches():
                    await node.stopped.wait()
            gc.freeze()  # what is left goes with the process; its last passes would take most of a second
            nursery.cancel_scope.cancel()


def _announce(start: Start, ready: NodeReady, ctl: str) -> None:
    """Say where the node serves. Whoever reads the line finds the port file. ctl: where its control is, or nothing."""
    from .settings_told import tell_settings

    tell_settings(start.config)
    if start.port_file is not None:
        start.port_file.write(ready.listeners, ctl)
    tell_service_manager("READY=1")
    try:
        click.echo(f"pykbroker ready: {ready.told(f'ctl={ctl}') if ctl else ready}")
    except OSError:  # nobody reads it any more, or the disk that it goes to is full: the node serves all the same
        forget_stdout()
    if start.has_text_log:
        from .next_steps import tell_next_steps

        tell_next_steps(start, ready, start.web.console if start.web is not None else "")
    if start.is_ephemeral:
        from pykbroker.server.runtime.ephemeral_directories import sweep_in_background

        sweep_in_background()


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
