"""Kafka's releases as levels of features: what `kafka-features version-mapping` and `feature-dependencies` know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

METADATA_VERSION: Final = "metadata.version"
_OLDEST_LEVEL: Final = 7
_RELEASED: Final = (
    ("3.3", (3,)),
    ("3.4", (0,)),
    ("3.5", (0, 1, 2)),
    ("3.6", (0, 1, 2)),
    ("3.7", (0, 1, 2, 3, 4)),
    ("3.8", (0,)),
    ("3.9", (0,)),
    ("4.0", (0, 1, 2, 3)),
    ("4.1", (0, 1)),
    ("4.2", (0, 1)),
    ("4.3", (0,)),
    ("4.4", (0, 1, 2)),
    ("4.5", (0,)),
)
_VERSIONS: Final = tuple(f"{release}-IV{number}" for release, numbers in _RELEASED for number in numbers)
LEVELS: Final[Mapping[str, int]] = {name: level for level, name in enumerate(_VERSIONS, _OLDEST_LEVEL)}
"""The levels of metadata.version by their names. The last one is of a release to come."""

NEWEST_STABLE: Final = "4.4-IV2"
OF_NEW_CLUSTERS: Final = "4.3-IV0"
_SINCE: Final[Mapping[str, tuple[int, ...]]] = {
    "kraft.version": (0, 21),
    "transaction.version": (0, 24, 24),
    "group.version": (0, 22),
    "eligible.leader.replicas.version": (0, 26),
    "share.version": (0, 28, 31),
    "streams.version": (0, 29),
}
"""For each level of a feature the metadata.version of the first release that has it by default."""

_NEEDS: Final[Mapping[tuple[str, int], Mapping[str, int]]] = {
    ("eligible.leader.replicas.version", 1): {METADATA_VERSION: 23},
}
FEATURES: Final = (METADATA_VERSION, *_SINCE)


class UnknownLevel(Exception):
    """A feature, a level or a release that is not known; the text says which, in Kafka's words."""


def release_of(level: int) -> str | None:
    """Return the release of a level of metadata.version, `4.3`; None where it is not known."""
    index = level - _OLDEST_LEVEL
    return _VERSIONS[index].partition("-")[0] if 0 <= index < len(_VERSIONS) else None


def level_text(feature: str, level: int) -> str:
    """Return `4.3-IV0` for a level of metadata.version, and the number for any other."""
    index = level - _OLDEST_LEVEL
    return _VERSIONS[index] if feature == METADATA_VERSION and 0 <= index < len(_VERSIONS) else str(level)


def metadata_level(release: str) -> int:
    """Return the level of a release: `4.3`, `4.3.1` and `4.3-IV0` are the same. Raises UnknownLevel."""
    stable = LEVELS[NEWEST_STABLE]
    if release in LEVELS:
        return LEVELS[release]
    beginning = ".".join(release.split(".")[:2])
    levels = [level for name, level in LEVELS.items() if name.startswith(f"{beginning}-") and level <= stable]
    if not levels or not all(each.isascii() and each.isdigit() for each in release.split(".")):
        raise UnknownLevel(
            f"Unknown metadata.version '{release[:60]}'. Supported metadata.version are: {', '.join(_VERSIONS)}"
        )
    return max(levels)


def levels_of(release: str) -> dict[str, int]:
    """Return the level of each feature that a release has by default. Raises UnknownLevel."""
    level = metadata_level(release)
    others = {name: max(each for each, since in enumerate(sinces) if since <= level) for name, sinces in _SINCE.items()}
    return {METADATA_VERSION: level, **others}


def dependencies(feature: str, level: int) -> Mapping[str, int]:
    """Return what a level of a feature needs. Raises UnknownLevel."""
    if feature == METADATA_VERSION:
        if level not in LEVELS.values():
            raise UnknownLevel(f"Unknown metadata.version {level}")
    elif feature not in _SINCE:
        raise UnknownLevel(f"Unknown feature: {feature[:60]}")
    elif not 0 <= level < len(_SINCE[feature]):
        raise UnknownLevel(f"No feature:{feature} with feature level {level}")
    return _NEEDS.get((feature, level), {})
