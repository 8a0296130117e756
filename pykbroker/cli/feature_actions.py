"""Actions of `pykbroker features`, in the texts of `kafka-features`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.features import Feature, UpgradeType, describe_features, update_features

from .command import CommandFailed, key_values, one_line
from .confirmation import confirm
from .controller_options import OptionsOfEither, node_to_ask
from .entries import Field, Value, print_entries
from .listing import printable
from .outcomes import outcomes
from .output import stdout_is_terminal
from .releases import (
    METADATA_VERSION,
    OF_NEW_CLUSTERS,
    UnknownLevel,
    dependencies,
    level_text,
    levels_of,
    metadata_level,
)

T = TypeVar("T")
Word = Literal["upgrade", "downgrade", "disable"]

_FIELDS: Final = (
    Field("feature"),
    Field("min_supported", right=True),
    Field("max_supported", right=True),
    Field("finalized", right=True),
    Field("epoch", right=True),
)
_LARGEST_LEVEL: Final = 2**15 - 1


@dataclass(frozen=True, slots=True)
class FeatureOptions(OptionsOfEither):
    """A field per flag."""

    features: tuple[str, ...] = ()
    release_version: str | None = None
    metadata: str | None = None
    unsafe: bool = False
    dry_run: bool = False
    yes: bool = False
    as_json: bool = False


async def describe(cluster: Cluster, options: FeatureOptions) -> None:
    """Print all features; a table on a terminal, else the lines of Kafka's tool."""
    found = await describe_features(cluster, await node_to_ask(cluster, options))
    rows: list[list[Value]] = [
        [each.name, each.min_supported, each.max_supported, each.finalized, found.epoch] for each in found.features
    ]
    if options.as_json:
        print_entries(_FIELDS, rows, as_json=True)
    elif stdout_is_terminal():
        rows = [[each.name, *_texts(each), found.epoch] for each in found.features]
        print_entries(_FIELDS, rows, as_json=False)
    else:
        for each in found.features:
            low, high, finalized = _texts(each)
            click.echo(
                f"Feature: {printable(each.name):<42}SupportedMinVersion: {low:<17}SupportedMaxVersion: {high:<17}"
                f"FinalizedVersionLevel: {finalized:<17}Epoch: {'-' if found.epoch is None else found.epoch}"
            )


def _texts(feature: Feature) -> tuple[str, str, str]:
    return (
        level_text(feature.name, feature.min_supported),
        level_text(feature.name, feature.max_supported),
        level_text(feature.name, feature.finalized),
    )


def wanted_levels(word: Word, options: FeatureOptions) -> dict[str, int]:
    """Return the levels that a command line asks for, by feature. Raises CommandFailed."""
    if word == "disable":
        levels = {name.strip(): 0 for name in options.features}
        if len(levels) < len(options.features):
            raise CommandFailed("A feature was specified more than once")
    elif options.release_version is not None:
        if options.features or options.metadata is not None:
            raise CommandFailed("Can not specify `release-version` with other feature flags.")
        levels = _known(levels_of, options.release_version)
    else:
        levels = _levels(options.features)
        if options.metadata is not None:
            levels = {METADATA_VERSION: _known(metadata_level, options.metadata)} | levels
    if not levels:
        raise CommandFailed(f"You must specify at least one feature to {word}")
    return levels


def _levels(texts: Sequence[str]) -> dict[str, int]:
    pairs = key_values(texts, "--feature")
    if len(pairs) < len(texts):
        raise CommandFailed("A feature was specified more than once")
    for name, level in pairs.items():
        if not level.isascii() or not level.isdigit() or int(level[:6]) > _LARGEST_LEVEL:
            raise CommandFailed(f"Can't parse feature=level string {name}={level[:60]}. Expected a number for level.")
    return {name: int(level) for name, level in pairs.items()}


def _known(of: Callable[[str], T], text: str) -> T:
    try:
        return of(text)
    except UnknownLevel as error:
        raise CommandFailed(str(error)) from None


_DONE: Final = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}


async def change(cluster: Cluster, options: FeatureOptions, word: Word, levels: dict[str, int]) -> bool:
    """Change levels, and return whether one was not changed. What lowers levels asks."""
    upgrade_type = UpgradeType.UPGRADE
    if word != "upgrade":
        upgrade_type = UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE
    if word != "upgrade" and not options.dry_run:
        loss = ", although metadata may be lost for good" if options.unsafe else ""
        going = [f"{name} to {level_text(name, level)}" for name, level in levels.items()]
        await confirm(f"{word.capitalize()} features{loss}", going, yes=options.yes, named=not options.unsafe)
    node = await node_to_ask(cluster, options)
    answers = await update_features(cluster, levels, upgrade_type, dry_run=options.dry_run, node=node)
    failed = sum(error is not None for error in answers.values())
    with outcomes(as_json=options.as_json) as found:
        for name, error in sorted(answers.items()):
            to = "" if word == "disable" else f" to {levels[name]}"
            why = None if error is None else one_line(error)
            if why is not None:
                text = f"{'Can not' if options.dry_run else 'Could not'} {word} {name}{to}. {why}"
            else:
                text = f"{name} {'can be' if options.dry_run else 'was'} {_DONE[word]}{to}."
            is_changed = why is None and not options.dry_run
            found.add({"feature": name, "level": levels[name], "changed": is_changed, "error": why}, text)
    if failed:
        click.echo(f"{failed} out of {len(answers)} operation(s) failed.", err=True)
    return failed > 0


def print_mapping(release: str | None, as_json: bool) -> None:
    """Print the level of each feature in a release. Raises CommandFailed."""
    levels = _known(levels_of, release or OF_NEW_CLUSTERS)
    if as_json:
        click.echo(json.dumps(levels))
        return
    for name, level in levels.items():
        click.echo(f"{name}={level}" + (f" ({release or OF_NEW_CLUSTERS})" if name == METADATA_VERSION else ""))


def print_dependencies(features: Sequence[str], as_json: bool) -> None:
    """Print what levels of features need. Raises CommandFailed."""
    needed = {}
    for name, level in _levels(features).items():
        try:
            needed[name, level] = dict(dependencies(name, level))
        except UnknownLevel as error:
            raise CommandFailed(str(error)) from None
    if as_json:
        objects = [{"feature": name, "level": level, "requires": each} for (name, level), each in needed.items()]
        click.echo(json.dumps(objects))
        return
    for (name, level), each in needed.items():
        if not each:
            click.echo(f"{_with_level(name, level)} has no dependencies.")
            continue
        click.echo(f"{_with_level(name, level)} requires:")
        for other, least in each.items():
            click.echo(f"    {_with_level(other, least)}")


def _with_level(name: str, level: int) -> str:
    return f"{name}={level}" + (f" ({level_text(name, level)})" if name == METADATA_VERSION else "")
