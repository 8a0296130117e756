"""`pykbroker start --cores N`: N nodes on this machine, one cluster, behind one command that only watches them.

The plan is made in a process that ends with it: what reads a configuration and formats directories stays out of this
one's memory for as long as the nodes run. Each node gets its settings through a pipe, so that no secret stands in a
command line or a file, and ends when that pipe ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .cluster_lines import JsonLines, TextLines
from .command import CommandFailed, forget_stdout, one_line
from .log_flags import log_arguments
from .service_manager import tell_service_manager
from .start_files import announced_in, directory_of_flags
from .start_flags import Origins, StartFlags
from .stop_requests import StopRequests

if TYPE_CHECKING:
    from pykbroker.config import BrokerConfig
    from pykbroker.config.cores_plan import CoreNode

    from .port_file import PortFile
    from .start_node import Start

_READ_BYTES = 1 << 16


def run_cores(
    flags: StartFlags, stop: StopRequests, start_of: Callable[[StartFlags, Path | None, PortFile | None], Start]
) -> NoReturn:
    """Run the nodes to their end, and exit. start_of: what one node would be. Raises CommandFailed, SystemExit."""
    arguments = [*log_arguments(flags.log_levels, flags.log_format), *_personality(flags)]
    assert flags.levels is not None  # checked here, before nodes are
    from pykbroker.server.runtime.reserved_port import ReservedPort

    with (
        announced_in(flags.port_file) as port_file,
        directory_of_flags(flags.data_dir, flags.ephemeral) as directory,
        closing(ReservedPort("127.0.0.1")) as reserved,
    ):
        with stop.interrupting():
            nodes, origins = _planned(
                lambda: _plan(start_of(flags, directory, None).config, flags.cores, reserved.port)
            )
        if flags.die_with_parent or flags.parent_pid is not None:
            from .parent_watch import ParentWatch

            ParentWatch(flags.parent_pid).start(stop.ask)
        with stop.interrupting():
            import trio

            from .core_processes import CoreProcesses
        reserved.lend()
        lines = JsonLines("pykbroker.cli.start") if flags.log_format == "json" else TextLines("pykbroker start")

        def announce(line: str) -> None:
            lines.tell(f"{len(nodes)} nodes serve: {', '.join(each.name for each in nodes)}")
            _announce(line, port_file)
            if flags.ephemeral:
                from pykbroker.server.runtime.ephemeral_directories import sweep_in_background

                sweep_in_background()

        processes = CoreProcesses(nodes, lines, arguments, announce, is_ephemeral=flags.ephemeral, origins=origins)
        trio.run(processes.run, stop)
    raise SystemExit(processes.exit_code)


def settings_from_stdin(flags: StartFlags) -> StartFlags:
    """Return the flags of a node of --cores, with the settings that its first line of standard input has."""
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(0, _READ_BYTES)
        if not data:
            raise CommandFailed("--node-of-cores: standard input has no settings; `pykbroker start --cores` gives them")
        line += data
    told = json.loads(line)
    return replace(
        flags,
        cores=1,
        settings=told["settings"],
        origins=Origins(told["origins"]),
        settings_ephemeral=told["ephemeral"],
    )


def plan_of_check(config: BrokerConfig, cores: int) -> list[BrokerConfig]:
    """Return the configurations of all nodes, of the others with what differs alone to be told.

    Raises ConfigurationError.
    """
    from pykbroker.config import BrokerConfig
    from pykbroker.config.cores_plan import plan_cores

    first, *others = plan_cores(config, cores, controller_port=0)
    told = dict.fromkeys(first.derived, f"--cores {cores}")
    return [
        BrokerConfig(first.settings, config.origins | told),
        *(
            BrokerConfig(
                each.settings,
                {
                    key: f"--cores {cores}"
                    for key in each.settings
                    if key in each.derived and each.settings[key] != first.settings.get(key)
                },
            )
            for each in others
        ),
    ]


def _plan(config: BrokerConfig, cores: int, controller_port: int) -> dict[str, Any]:
    """Plan the nodes, and format their directories. Raises ConfigurationError, StorageError."""
    from pykbroker.config.cores_plan import plan_cores

    from .core_directories import format_nodes

    nodes = plan_cores(config, cores, controller_port)
    format_nodes(nodes)
    return {
        "nodes": [[each.node_id, dict(each.settings), sorted(each.derived)] for each in nodes],
        "origins": config.origins,
    }


def _planned(plan: Callable[[], dict[str, Any]]) -> tuple[list[CoreNode], dict[str, str]]:
    """Return the nodes of a plan that a process makes, and the origins of settings. Raises CommandFailed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _make_plan(plan, writing)
    os.close(writing)
    try:
        with open(reading, "rb") as pipe:
            text = pipe.read()
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.waitpid(pid, 0)
    if not text:
        raise CommandFailed("--cores: the process that plans the nodes has died")
    told = json.loads(text)
    if "error" in told:
        raise CommandFailed(told["error"])
    from pykbroker.config.cores_plan import CoreNode

    return [CoreNode(node_id, settings, frozenset(derived)) for node_id, settings, derived in told["nodes"]], told[
        "origins"
    ]


def _make_plan(plan: Callable[[], dict[str, Any]], writing: int) -> NoReturn:
    """Write the plan, or the error that it ended with, and end this process."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        import logging

        from pykbroker.config import ConfigurationError
        from pykbroker.server.runtime.log_lines import write_log_to
        from pykbroker.storage.files.errors import StorageError

        write_log_to(sys.stderr, logging.ERROR)  # each node warns of its settings
        try:
            told = plan()
        except CommandFailed as error:
            told = {"error": error.message}
        except (ConfigurationError, StorageError) as error:
            told = {"error": one_line(error)}
        with open(writing, "wb") as pipe:
            pipe.write(json.dumps(told).encode())
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


def _personality(flags: StartFlags) -> list[str]:
    return [] if flags.as_name is None else ["--as", flags.as_name]


def _announce(line: str, port_file: PortFile | None) -> None:
    """Say where the first node serves, as it has said itself. line: its ready line."""
    from .cluster_processes import READY
    from .port_file import Listening

    if port_file is not None:
        words = line.removeprefix(READY).split()
        found = [each.partition("://") for each in words if "://" in each.partition("=")[0]]
        port_file.write([Listening(name, address) for name, _, address in found])
    tell_service_manager("READY=1")
    try:
        click.echo(line)
    except OSError:
        forget_stdout()
