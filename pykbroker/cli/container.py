"""`pykbroker container`: a node as the images `apache/kafka` and `bitnami/kafka` start one, from environment variables.

The command needs no image. The image's start scripts call it with `--root /`: then files and volumes count that are
mounted where the users of those images have them. `docs/container.md` lists the variables.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from .command import ClientCommand, CommandFailed, one_line
from .examples import examples
from .stop_requests import StopRequests

if TYPE_CHECKING:
    from pykbroker.config import BrokerConfig
    from pykbroker.container.node_environment import NodeEnvironment

_log = logging.getLogger(__name__)
_OF_OTHER_DIRECTORIES = {
    "data_dir": "--data-dir",
    "ephemeral": "--ephemeral",
    "savepoint": "--savepoint",
    "secure_dir": "--secure",
}
"""Flags of `start` that have the data elsewhere than the variables say."""
OF_THE_CONTAINER: Final = "the container"
"""The origin of settings that no variable gives."""
_VARIABLE = re.compile(r"([A-Z][A-Z0-9_-]*)=(.*)", re.ASCII | re.DOTALL)


@click.command(
    "container",
    cls=ClientCommand,
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        ("One node, with what the environment says", "pykbroker container"),
        ("With variables in the command", "pykbroker container KAFKA_NODE_ID=1 KAFKA_LOG_DIRS=/tmp/kafka"),
    ),
)
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Take mounted files and volumes below DIR, as in the image: / there. Without it the variables alone count.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[VARIABLE=VALUE | FLAG OF START]...")
def command(root: Path | None, arguments: tuple[str, ...]) -> None:
    """Start a node from environment variables, as the images of Apache Kafka and Bitnami do.

    KAFKA_NODE_ID=1 sets node.id, KAFKA_CFG_NODE_ID=1 does as well; a variable in the command wins over the environment.
    Flags of `pykbroker start` are taken, too.
    """
    stop = StopRequests()
    stop.listen()
    with stop.interrupting():
        from pykbroker.config import ConfigurationError
        from pykbroker.container.environment import read_environment
        from pykbroker.container.places import Places
        from pykbroker.server.runtime.log_lines import write_log_to

        from .listing import printable

        write_log_to(sys.stderr)
        variables, flags = _told(arguments)
        os.environ.update(variables)  # KAFKA_OPTS is read where a node is made
        overrides = _overrides(flags)
        try:
            node = read_environment(os.environ, Places(root))
        except ConfigurationError as error:
            raise CommandFailed(printable(one_line(error))) from None
        for note in node.notes:
            _log.warning("%s", printable(note))
        for name, level in node.log_levels.items():
            logging.getLogger(name).setLevel(level)
        node.properties |= overrides
        with _naming_variables(node):
            config = _prepare(node, root)
    with _naming_variables(node):
        _start(node, config, flags)


def _told(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The variables in a command line, and the flags for `start`."""
    variables, flags = {}, []
    for text in arguments:
        match = _VARIABLE.fullmatch(text)
        if match is None:
            flags.append(text)
        else:
            variables[match[1]] = match[2]
    return variables, flags


def _overrides(flags: Sequence[str]) -> dict[str, str]:
    """Check the flags, and return the properties among them. Raises CommandFailed."""
    from .start import command as start
    from .start_config import key_values

    given = start.make_context("start", list(flags)).params
    if given["properties"] is not None:
        raise CommandFailed(f"{given['properties']}: a file of `container` is mounted, or is one of `pykbroker start`")
    for name, flag in _OF_OTHER_DIRECTORIES.items():
        if given.get(name):
            raise CommandFailed(f"{flag}: the data of `container` is where KAFKA_LOG_DIRS says")
    from pykbroker.config import ConfigurationError

    try:
        return key_values(given["overrides"])
    except ConfigurationError as error:
        raise CommandFailed(one_line(error)) from None


@contextmanager
def _naming_variables(node: NodeEnvironment) -> Iterator[None]:
    """Name the variables in complaints about their keys."""
    from .listing import printable

    try:
        yield
    except CommandFailed as error:
        raise CommandFailed(printable(node.named(one_line(error)))) from None


def _prepare(node: NodeEnvironment, root: Path | None) -> BrokerConfig:
    """Format the data directories. Returns the configuration. Raises CommandFailed."""
    from pykbroker.config import ConfigurationError
    from pykbroker.container.directories import prepare_directories
    from pykbroker.container.health import write_target
    from pykbroker.storage.files.errors import StorageError

    try:
        config = _config(node)
        note = prepare_directories(config, node)
    except ConfigurationError as error:
        raise CommandFailed(one_line(error)) from None
    except StorageError as error:
        raise CommandFailed(f"log.dirs: {one_line(error)}") from None
    if note is not None:
        _log.warning("%s", note)
    listeners = [(each.host, each.port, each.security_protocol) for each in config.listeners.all]
    if root is not None and not write_target(listeners):
        _log.warning("nothing can be written to TMPDIR: the health check asks 127.0.0.1:9092")
    return config


def _config(node: NodeEnvironment) -> BrokerConfig:
    from pykbroker.config import BrokerConfig

    from .start_config import DEFAULT_DATA_DIRECTORY

    node.defaults.setdefault("log.dirs", DEFAULT_DATA_DIRECTORY)
    return BrokerConfig.load(node.file, node.properties, node.defaults)


def _start(node: NodeEnvironment, config: BrokerConfig, flags: Sequence[str]) -> None:
    """Go on as `pykbroker start`. Raises CommandFailed."""
    from pykbroker.config.properties import read_properties

    from .start import command as start
    from .start_flags import Origins

    of_file = {} if node.file is None else read_properties(node.file)
    given = {key: text for key, text in config.given.items() if of_file.get(key) != text}
    overrides = [f"--override={key}={text}" for key, text in given.items()]
    origins = Origins({key: node.origins.get(key, OF_THE_CONTAINER) for key in given})
    file = [] if node.file is None else [str(node.file)]
    with start.make_context("start", [*file, *overrides, *flags], obj=origins) as context:
        start.invoke(context)
