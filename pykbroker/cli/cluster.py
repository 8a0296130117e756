"""`pykbroker cluster`: several nodes on this host, each a process of its own, in one command in the foreground.

Standard output gets one line, when all nodes serve; standard error gets their logs, each line with its node's name.
SIGTERM or Ctrl-C stops all of them, brokers before controllers; a second signal does not wait. A node that dies is one
line, and the others go on. If this process is killed, its nodes end, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from pykbroker.config import ConfigurationError
from pykbroker.config.cluster_plan import MOST_BROKERS, MOST_CONTROLLERS, listener_count, plan_cluster
from pykbroker.server.runtime.ephemeral_directories import ephemeral_directory, sweep_in_background
from pykbroker.storage.files.errors import StorageError

from .cluster_lines import JsonLines, TextLines
from .cluster_setup import ports_from, set_up_cluster
from .command import ClientCommand, CommandFailed, key_values, one_line
from .examples import examples
from .log_flags import log_arguments, parse_log_levels, with_log_options
from .stop_requests import StopRequests

DEFAULT_DATA_DIRECTORY = "pykbroker-cluster"


class _Cluster(ClientCommand):
    """The command takes no word, and says where those are that other tools have for a cluster which runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-"):
            raise CommandFailed(
                f"'{args[0][:60]}' is no option of `pykbroker cluster`, which starts nodes; "
                "`pykbroker brokers`, `quorum` and `top` describe a cluster that runs"
            )
        return super().parse_args(ctx, args)


@click.command(
    "cluster",
    cls=_Cluster,
    epilog=examples(
        ("Three nodes", "pykbroker cluster"),
        (
            "Nothing is kept",
            "pykbroker cluster --ephemeral --config num.partitions=6",
        ),
        ("Controllers of their own", "pykbroker cluster --brokers 3 --controllers 3 --base-port 19092"),
    ),
)
@click.option(
    "--brokers", type=click.IntRange(1, MOST_BROKERS), default=3, show_default=True, help="How many brokers to run."
)
@click.option(
    "--controllers",
    type=click.IntRange(0, MOST_CONTROLLERS),
    default=0,
    show_default=True,
    help="How many controllers to run beside them; with 0 the first brokers are controllers, too.",
)
@click.option(
    "--base-port",
    type=click.IntRange(1, 65535),
    default=9092,
    show_default=True,
    help="The first broker's port; the others and the controllers have those that follow.",
)
@click.option("--data-dir", type=click.Path(path_type=Path), help=f"Where the data goes [./{DEFAULT_DATA_DIRECTORY}].")
@click.option("--ephemeral", is_flag=True, help="Keep the data in a temporary directory that is removed at the end.")
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A property of every node.")
@with_log_options
def command(
    brokers: int,
    controllers: int,
    base_port: int,
    data_dir: Path | None,
    ephemeral: bool,
    configs: tuple[str, ...],
    log_levels: tuple[str, ...],
    log_format: str,
) -> None:
    """Start a cluster of several nodes on this host."""
    stop = StopRequests()
    stop.listen()
    import trio

    from .cluster_processes import ClusterProcesses

    if ephemeral and data_dir is not None:
        raise CommandFailed("--ephemeral and --data-dir exclude each other")
    parse_log_levels(log_levels)
    with _directory(data_dir, ephemeral) as directory:
        try:
            ports = ports_from(base_port, listener_count(brokers, controllers))
            plan = plan_cluster(brokers, controllers, ports)
            files = set_up_cluster(plan, directory, key_values(configs, "--config"))
        except (ConfigurationError, StorageError) as error:
            raise CommandFailed(one_line(error)) from None
        except OSError as error:
            raise CommandFailed(f"{error.filename}: {error.strerror}") from None
        lines = JsonLines() if log_format == "json" else TextLines()
        processes = ClusterProcesses(plan, files, lines, log_arguments(log_levels, log_format))
        trio.run(processes.run, stop)
    raise SystemExit(processes.exit_code)


@contextmanager
def _directory(data_dir: Path | None, ephemeral: bool) -> Iterator[Path]:
    if ephemeral:
        with ephemeral_directory() as directory:
            sweep_in_background()
            yield directory
    else:
        yield data_dir or Path(DEFAULT_DATA_DIRECTORY)
