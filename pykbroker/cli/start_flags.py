"""The flags of `pykbroker start`, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from .command import CommandFailed
from .core_count import CORES_VARIABLE, CoreCount
from .log_flags import LOG_OPTIONS, parse_log_levels
from .start_config import DEFAULT_DATA_DIRECTORY

_OPTIONS = (
    click.argument("properties", required=False, type=click.Path(path_type=Path), metavar="[server.properties]"),
    click.option(
        "--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A property that wins over the file."
    ),
    click.option(
        "--data-dir", type=click.Path(path_type=Path), help=f"Where the data goes [./{DEFAULT_DATA_DIRECTORY}]."
    ),
    click.option(
        "--ephemeral", is_flag=True, help="Keep the data in a temporary directory that is removed at the end."
    ),
    click.option(
        "--savepoint",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Begin with the state that a savepoint has, in a directory that is empty so far.",
    ),
    click.option(
        "--secure",
        "secure_dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="With TLS, users, rights: certificates, passwords and clients' configurations are in DIR, made at first.",
    ),
    click.option(
        "--as", "as_name", metavar="NAME|FILE", help="Offer what another Kafka offers: 2.8, or a file of probe."
    ),
    click.option(
        "--cores",
        type=CoreCount(),
        default="1",
        envvar=CORES_VARIABLE,
        help="Use so many cores, by a node on each: one cluster at consecutive ports, with one copy of each record.",
    ),
    click.option("--dev", is_flag=True, help="Settings for a developer's machine, where the file gives no others."),
    click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port for clients; 0 is any free one."),
    click.option(
        "--port-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A file that says where the node serves, from when it serves until it ends.",
    ),
    click.option("--die-with-parent", is_flag=True, help="End when the process that started this one is gone."),
    click.option(
        "--parent-pid",
        type=click.IntRange(1),
        metavar="PID",
        help="The process with which this one ends, where it is not the parent but its parent, say.",
    ),
    click.option(
        "--ctl-port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Have programs of this machine control the broker over HTTP, for tests: pykbroker ctl; 0: any free port.",
    ),
    click.option(
        "--ctl-token-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --ctl-port: a file, which others cannot read, with the token of whoever controls the broker.",
    ),
    *LOG_OPTIONS,
    click.option(
        "--node-of-cores", "is_node_of_cores", is_flag=True, hidden=True, help="Read the settings from standard input."
    ),
    click.option(
        "--check-config",
        is_flag=True,
        help="Start nothing: say what is set, from where, what has no effect; 1 where it could not start.",
    ),
)


class Origins(dict[str, str]):
    """The places where keys of `--override` were given in truth, such as by variables; an object of the context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFlags:
    """A field per flag.

    origins: of overrides that another command gives. settings: those of a node of --cores, which win over all others.
    settings_ephemeral: their directories are temporary.
    """

    properties: Path | None
    overrides: tuple[str, ...]
    data_dir: Path | None
    ephemeral: bool
    savepoint: Path | None
    secure_dir: Path | None
    as_name: str | None
    cores: int
    is_node_of_cores: bool
    dev: bool
    port: int | None
    port_file: Path | None
    die_with_parent: bool
    parent_pid: int | None
    ctl_port: int | None
    ctl_token_file: Path | None
    log_levels: tuple[str, ...]
    log_format: str
    check_config: bool
    origins: Origins
    settings: Mapping[str, str] = field(default_factory=dict)
    settings_ephemeral: bool = False

    def check(self) -> None:
        """Raises CommandFailed for flags that do not go together."""
        if self.ephemeral and self.data_dir is not None:
            raise CommandFailed("--ephemeral and --data-dir exclude each other")
        if self.savepoint is not None and self.secure_dir is not None:
            raise CommandFailed("--savepoint and --secure exclude each other: a savepoint has its own users and rights")
        if self.secure_dir is not None and self.properties is not None:
            raise CommandFailed("--secure has a server.properties of its own in its directory; give it alone")
        if self.ctl_token_file is not None and self.ctl_port is None:
            raise CommandFailed("--ctl-token-file goes with --ctl-port")
        if self.cores > 1:
            others = {"--ctl-port": self.ctl_port, "--savepoint": self.savepoint, "--secure": self.secure_dir}
            for flag, value in others.items():
                if value is not None:
                    raise CommandFailed(f"--cores and {flag} exclude each other: the latter is of one node alone")
        if self.check_config and self.secure_dir is not None:
            raise CommandFailed("--check-config and --secure exclude each other: the latter makes what it needs")

    @property
    def levels(self) -> dict[str, str]:
        """Levels by logger. Raises CommandFailed."""
        return parse_log_levels(self.log_levels)


def start_options(function: Callable[[StartFlags], None]) -> Callable[..., None]:
    """Give a command the flags of a start, as one value."""

    def with_flags(**values: Any) -> None:
        origins = click.get_current_context().find_object(Origins)
        function(StartFlags(**values, origins=Origins() if origins is None else origins))

    with_flags.__doc__ = function.__doc__
    for option in reversed(_OPTIONS):
        with_flags = option(with_flags)
    return with_flags
