"""`pykbroker format`: what `kafka-storage.sh format` does, with its flags, and `--random-uuid` for its `random-uuid`.

A quorum here has one voter, the node itself: `--standalone` says so, and is the default. What asks for another quorum
or for features that are not served is refused.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import click

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.metadata.features import METADATA_VERSION_LEVEL, SUPPORTED_FEATURES
from pykbroker.metadata.image import METADATA_VERSION
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.server.formatting import directory_paths, format_unformatted, formatted_cluster_id
from pykbroker.storage.disk import OsDisk
from pykbroker.storage.errors import StorageError

from .command import ClientCommand

_RELEASES = {"4.3": METADATA_VERSION_LEVEL, "4.3-IV0": METADATA_VERSION_LEVEL}
_KRAFT_VERSION = "kraft.version"


class FormatFailed(click.ClickException):
    """Printed as one line; the exit code is 1."""


@click.command("format", cls=ClientCommand)
@click.option("-t", "--cluster-id", help="The cluster's id, 16 bytes in base64; see --random-uuid.")
@click.option("-c", "--config", "properties", type=click.Path(path_type=Path), help="The node's server.properties.")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A property that wins over the file.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Pass over directories that are formatted already.")
@click.option("-s", "--standalone", is_flag=True, help="A quorum of this node alone (the default).")
@click.option("-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature's level.")
@click.option("-r", "--release-version", help=f"The release whose features to use: {', '.join(_RELEASES)}.")
@click.option("--random-uuid", "prints_uuid", is_flag=True, help="Print a new cluster id, and do nothing else.")
def command(
    cluster_id: str | None,
    properties: Path | None,
    overrides: tuple[str, ...],
    ignore_formatted: bool,
    standalone: bool,
    features: tuple[str, ...],
    release_version: str | None,
    prints_uuid: bool,
) -> None:
    """Format the log directories of a node."""
    del standalone
    if prints_uuid:
        click.echo(uuid_to_text(random_uuid(random.SystemRandom())))
        return
    if cluster_id is None:
        raise FormatFailed("-t, --cluster-id is missing; --random-uuid makes one")
    _check_release(release_version)
    _check_features(features)
    try:
        _format(_load(properties, overrides), cluster_id, ignore_formatted=ignore_formatted)
    except (ConfigurationError, StorageError) as error:
        raise FormatFailed(str(error)) from None


def _format(config: BrokerConfig, cluster_id: str, *, ignore_formatted: bool) -> None:
    disk = OsDisk()
    paths = directory_paths(config)
    there = formatted_cluster_id(disk, paths)
    if there is not None and there != cluster_id:
        raise FormatFailed(f"The directories belong to cluster {there}, not to cluster {cluster_id}")
    if there is not None and not ignore_formatted:
        formatted = next(path for path in paths if (Path(path) / "meta.properties").exists())
        raise FormatFailed(f"Log directory {formatted} is already formatted. Use --ignore-formatted to pass over it.")
    rng = random.SystemRandom()
    fresh, before = format_unformatted(disk, config, cluster_id, rng=rng, now_ms=time.time_ns() // 1_000_000)
    for path in fresh:
        click.echo(f"Formatting {path} with {METADATA_VERSION} 4.3-IV0.")
    if before and not fresh:
        click.echo("All of the log directories are already formatted.")


def _load(properties: Path | None, overrides: tuple[str, ...]) -> BrokerConfig:
    from .start import key_values, load_config

    return load_config(properties, key_values(overrides), None)


def _check_release(release: str | None) -> None:
    if release is not None and release not in _RELEASES:
        raise FormatFailed(f"Release {release} is not offered; {', '.join(_RELEASES)} is")


def _check_features(features: tuple[str, ...]) -> None:
    offered = SUPPORTED_FEATURES | {_KRAFT_VERSION: (0, 0)}
    for text in features:
        name, equals, level = text.partition("=")
        if not equals or not level.isdecimal():
            raise FormatFailed(f"--feature expects NAME=LEVEL, not '{text}'")
        if name not in offered:
            raise FormatFailed(f"Feature {name} is not offered; {', '.join(sorted(offered))} are")
        low, high = offered[name]
        if not low <= int(level) <= high:
            raise FormatFailed(f"Feature {name} has the levels {low} to {high}, not {level}")
