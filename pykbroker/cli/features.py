"""`pykbroker features`: the words, flags and texts of `kafka-features`; tables on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .confirmation import yes_option
from .connect import run_on_cluster
from .controller_options import Where, controller_options
from .entries import json_option
from .examples import examples
from .two_forms import Words

if TYPE_CHECKING:
    from .feature_actions import Word

CLIENT_ID = "features"
_levels = click.option("--feature", "features", multiple=True, metavar="NAME=LEVEL", help="May be repeated.")
_release = click.option(
    "--release-version", metavar="VERSION", help="The release whose levels all features get: 4.3, 4.4-IV2."
)
_metadata = click.option("--metadata", metavar="VERSION", help="Deprecated by Kafka: the level of metadata.version.")
_unsafe = click.option("--unsafe", is_flag=True, help="Do it also where metadata may be lost for good.")
_dry_run = click.option("--dry-run", is_flag=True, help="Only say whether it could be done.")


@click.group("features", cls=Words, epilog=examples(("What the cluster has agreed on", "pykbroker features describe")))
@controller_options
def command(**flags: Any) -> None:
    """Describe, upgrade and downgrade the features of a cluster."""


def _change(
    word: Word,
    bootstrap_server: str,
    bootstrap_controller: str | None,
    command_config: Path | None,
    **flags: Any,
) -> None:
    from . import feature_actions

    options = feature_actions.FeatureOptions(Where(bootstrap_server, bootstrap_controller, command_config), **flags)
    levels = feature_actions.wanted_levels(word, options)
    failed = run_on_cluster(
        lambda cluster, given: feature_actions.change(cluster, given, word, levels), options, client_id=CLIENT_ID
    )
    if failed:
        raise SystemExit(1)


@command.command("describe", epilog=examples(("What the cluster has agreed on", "pykbroker features describe")))
@controller_options
@json_option
def describe(
    bootstrap_server: str, bootstrap_controller: str | None, command_config: Path | None, as_json: bool
) -> None:
    """Show the supported and the finalized level of each feature."""
    from . import feature_actions

    options = feature_actions.FeatureOptions(
        Where(bootstrap_server, bootstrap_controller, command_config), as_json=as_json
    )
    run_on_cluster(feature_actions.describe, options, client_id=CLIENT_ID)


@command.command(
    "upgrade",
    epilog=examples(
        ("One feature", "pykbroker features upgrade --feature transaction.version=2"),
        ("Would it work?", "pykbroker features upgrade --release-version 4.3 --dry-run"),
    ),
)
@controller_options
@_metadata
@_release
@_levels
@_dry_run
@json_option
def upgrade(**flags: Any) -> None:
    """Raise features to other levels."""
    _change("upgrade", **flags)


@command.command(
    "downgrade",
    epilog=examples(("One feature", "pykbroker features downgrade --feature transaction.version=1 --dry-run")),
)
@controller_options
@_metadata
@_release
@_levels
@_unsafe
@_dry_run
@yes_option
@json_option
def downgrade(**flags: Any) -> None:
    """Lower features to other levels."""
    _change("downgrade", **flags)


@command.command("disable", epilog=examples(("A feature", "pykbroker features disable --feature group.version")))
@controller_options
@click.option("--feature", "features", multiple=True, metavar="NAME", help="May be repeated.")
@_unsafe
@_dry_run
@yes_option
@json_option
def disable(**flags: Any) -> None:
    """Lower features to level 0."""
    _change("disable", **flags)


@command.command(
    "version-mapping",
    epilog=examples(("The levels of a release", "pykbroker features version-mapping --release-version 4.1")),
)
@controller_options
@click.option("--release-version", metavar="VERSION", help="The release; by default that of new clusters.")
@json_option
def version_mapping(release_version: str | None, as_json: bool, **where: Any) -> None:
    """Show the level of each feature that a release of Kafka has; no broker is asked."""
    from .feature_actions import print_mapping

    print_mapping(release_version, as_json)


@command.command(
    "feature-dependencies",
    epilog=examples(
        (
            "What a level needs",
            "pykbroker features feature-dependencies --feature eligible.leader.replicas.version=1",
        ),
    ),
)
@controller_options
@click.option("--feature", "features", multiple=True, required=True, metavar="NAME=LEVEL", help="May be repeated.")
@json_option
def feature_dependencies(features: tuple[str, ...], as_json: bool, **where: Any) -> None:
    """Show which levels of other features a level needs; no broker is asked."""
    from .feature_actions import print_dependencies

    print_dependencies(features, as_json)
