"""`pykbroker format`: what `kafka-storage.sh format` does, with its flags, and `--random-uuid` for its `random-uuid`.

A controller that is told nothing of voters, neither here nor by `controller.quorum.voters`, is a quorum of its own.
What asks for features that are not served is refused.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.metadata.feature_updates import KRAFT_VERSION, OFFERED
from pykbroker.metadata.features import METADATA_VERSION_LEVEL, NEWEST_METADATA_VERSION
from pykbroker.metadata.image import METADATA_VERSION
from pykbroker.metadata.scram_arguments import InvalidScramArgument, parse_scram_argument
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.security.sasl.scram_credential import new_nonce
from pykbroker.server.quorum.formatting import directory_paths, format_unformatted, formatted_cluster_id
from pykbroker.server.quorum.initial_controllers import (
    DYNAMIC_KRAFT_VERSION,
    InitialController,
    InvalidInitialControllers,
    parse_initial_controllers,
    this_node_alone,
)
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import StorageError

from .command import ClientCommand, CommandFailed
from .entries import json_option, print_json
from .examples import examples
from .outcomes import Row, outcomes
from .releases import LEVELS, UnknownLevel, level_text, levels_of

_RELEASES = [name for name, level in LEVELS.items() if METADATA_VERSION_LEVEL <= level <= NEWEST_METADATA_VERSION]


@click.command(
    "format",
    cls=ClientCommand,
    epilog=examples(
        ("A new id for a cluster", "pykbroker format --random-uuid"),
        ("A node's directories", "pykbroker format -t MkU3OEVBNTcwNTJENDM2Qg -c server.properties"),
    ),
)
@click.option("-t", "--cluster-id", help="The cluster's id, 16 bytes in base64; see --random-uuid.")
@click.option("-c", "--config", "properties", type=click.Path(path_type=Path), help="The node's server.properties.")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A property that wins over the file.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Pass over directories that are formatted already.")
@click.option("-s", "--standalone", is_flag=True, help="A dynamic quorum of this controller, which others may join.")
@click.option("-I", "--initial-controllers", help="The first voters of a dynamic quorum: id@host:port:directory-id,…")
@click.option("-N", "--no-initial-controllers", is_flag=True, help="A controller that is to join a dynamic quorum.")
@click.option("-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature's level.")
@click.option("-r", "--release-version", help=f"The release whose features to use: 4.3, 4.4, {', '.join(_RELEASES)}.")
@click.option(
    "-S",
    "--add-scram",
    "scram_arguments",
    multiple=True,
    metavar="MECHANISM=[name=…,password=…]",
    help="A user that the cluster begins with; also with iterations=, salt= and saltedpassword=.",
)
@click.option("--random-uuid", "prints_uuid", is_flag=True, help="Print a new cluster id, and do nothing else.")
@json_option
def command(
    cluster_id: str | None,
    properties: Path | None,
    overrides: tuple[str, ...],
    ignore_formatted: bool,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    features: tuple[str, ...],
    release_version: str | None,
    scram_arguments: tuple[str, ...],
    prints_uuid: bool,
    as_json: bool,
) -> None:
    """Format the log directories of a node."""
    if prints_uuid:
        _print_uuid(uuid_to_text(random_uuid(random.SystemRandom())), as_json=as_json)
        return
    if cluster_id is None:
        raise CommandFailed("-t, --cluster-id is missing; --random-uuid makes one")
    if standalone + (initial_controllers is not None) + no_initial_controllers > 1:
        raise CommandFailed(
            "Only one of --standalone, --initial-controllers and --no-initial-controllers may be given."
        )
    levels = _levels(release_version, features)
    users = _scram_records(scram_arguments)
    try:
        config = _load(properties, overrides)
        voters = _voters(config, initial_controllers, standalone=standalone)
        _check_kraft_version(levels, is_dynamic=voters is not None or no_initial_controllers)
        fresh, before = _format(config, cluster_id, levels, users, voters, ignore_formatted=ignore_formatted)
    except (ConfigurationError, StorageError, InvalidInitialControllers) as error:
        raise CommandFailed(str(error)) from None
    level = levels.get(METADATA_VERSION, METADATA_VERSION_LEVEL)
    _print_formatted(cluster_id, fresh, before, level_text(METADATA_VERSION, level), as_json=as_json)


def _print_uuid(text: str, *, as_json: bool) -> None:
    if as_json:
        print_json([{"cluster_id": text}])
    else:
        click.echo(text)


def _print_formatted(
    cluster_id: str, fresh: Sequence[str], before: Sequence[str], release: str, *, as_json: bool
) -> None:
    with outcomes(as_json=as_json) as found:
        for path in fresh:
            row: Row = {"directory": path, "cluster_id": cluster_id, "formatted": True}
            found.add(row, f"Formatting {path} with {METADATA_VERSION} {release}.")
        for path in before:
            found.add({"directory": path, "cluster_id": cluster_id, "formatted": False})
        if before and not fresh:
            found.say("All of the log directories are already formatted.")


def _voters(
    config: BrokerConfig, initial_controllers: str | None, *, standalone: bool
) -> Mapping[int, InitialController] | None:
    if standalone:
        return this_node_alone(config, random.SystemRandom())
    return None if initial_controllers is None else parse_initial_controllers(initial_controllers)


def _check_kraft_version(levels: dict[str, int], *, is_dynamic: bool) -> None:
    """Check the level of `kraft.version`, which belongs to the log and not to the features of a new cluster."""
    level = levels.pop(KRAFT_VERSION, None)
    if level is not None and (level > 0) != is_dynamic:
        raise CommandFailed(
            f"{KRAFT_VERSION} {level} is for quorums of {'dynamic' if level else 'static'} voters: it follows from "
            "--standalone, --initial-controllers and --no-initial-controllers, and needs no --feature."
        )


def _format(
    config: BrokerConfig,
    cluster_id: str,
    levels: Mapping[str, int],
    users: Sequence[Message],
    voters: Mapping[int, InitialController] | None,
    *,
    ignore_formatted: bool,
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the directories that are formatted now, and those that were before."""
    disk = OsDisk()
    paths = directory_paths(config)
    there = formatted_cluster_id(disk, paths)
    if there is not None and there != cluster_id:
        raise CommandFailed(f"The directories belong to cluster {there}, not to cluster {cluster_id}")
    if there is not None and not ignore_formatted:
        formatted = next(path for path in paths if (Path(path) / "meta.properties").exists())
        raise CommandFailed(f"Log directory {formatted} is already formatted. Use --ignore-formatted to pass over it.")
    rng = random.SystemRandom()
    return format_unformatted(
        disk,
        config,
        cluster_id,
        rng=rng,
        now_ms=time.time_ns() // 1_000_000,
        feature_levels=levels,
        scram_records=users,
        initial_controllers=voters,
    )


def _load(properties: Path | None, overrides: tuple[str, ...]) -> BrokerConfig:
    from .start_config import checked_sasl, key_values, load_config

    config = load_config(properties, key_values(overrides), None)
    checked_sasl(config, asks=False)
    return config


def _levels(release: str | None, features: tuple[str, ...]) -> dict[str, int]:
    """Return the levels that differ from those of a new cluster. Raises CommandFailed."""
    of_release, given = _release_levels(release), _feature_levels(features)
    level = given.get(METADATA_VERSION)
    if of_release and level not in (None, of_release[METADATA_VERSION]):
        raise CommandFailed(
            f"Use --release-version instead of --feature {METADATA_VERSION}={level} to avoid ambiguity."
        )
    return of_release | given


def _release_levels(release: str | None) -> dict[str, int]:
    """Return the levels of a release, as far as they are served here. Raises CommandFailed."""
    if release is None:
        return {}
    try:
        levels = levels_of(release)
    except UnknownLevel:
        levels = {METADATA_VERSION: 0}
    if not METADATA_VERSION_LEVEL <= levels[METADATA_VERSION] <= NEWEST_METADATA_VERSION:
        raise CommandFailed(f"Release {release[:60]} is not offered; 4.3, 4.4, {', '.join(_RELEASES)} are")
    return {
        name: min(level, OFFERED[name][1])
        for name, level in levels.items()
        if name in OFFERED and name != KRAFT_VERSION
    }


def _scram_records(arguments: tuple[str, ...]) -> list[Message]:
    try:
        return [parse_scram_argument(each, lambda: new_nonce(secrets.randbits).encode()) for each in arguments]
    except InvalidScramArgument as error:
        raise CommandFailed(f"--add-scram: {error}") from None


def _feature_levels(features: tuple[str, ...]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in features:
        name, equals, level = text.partition("=")
        if not equals or not level.isdecimal():
            raise CommandFailed(f"--feature expects NAME=LEVEL, not '{text}'")
        if name not in OFFERED:
            raise CommandFailed(f"Feature {name} is not offered; {', '.join(sorted(OFFERED))} are")
        low, high = (0, DYNAMIC_KRAFT_VERSION) if name == KRAFT_VERSION else OFFERED[name]
        if not low <= int(level) <= high:
            raise CommandFailed(f"Feature {name} has the levels {low} to {high}, not {level}")
        if name in levels:
            raise CommandFailed(f"Feature {name} is given twice")
        levels[name] = int(level)
    return levels
