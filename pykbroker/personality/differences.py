"""The differences of two personalities, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from . import api_names
from .kept_settings import to_text
from .personality import Personality


class Difference(NamedTuple):
    """One entry that is not the same on both sides; None where a side has nothing of that name."""

    table: str
    name: str
    left: str | None
    right: str | None


def differences(left: Personality, right: Personality) -> Iterator[Difference]:
    """All of them, table by table as in a file, by name within each."""
    tables = _tables(left)
    for title, others in _tables(right).items():
        ours = tables[title]
        for name in sorted(ours.keys() | others.keys()):
            if ours.get(name) != others.get(name):
                yield Difference(title, name, ours.get(name), others.get(name))


def _tables(of: Personality) -> dict[str, Mapping[str, str]]:
    authorizer = {} if of.authorizer is None else {"authorizer": to_text(of.authorizer)}
    return {
        "cluster": {"software": of.software, "told": of.told, "brokers": str(of.brokers), **authorizer},
        "versions": {api_names.name_of(key): str(versions) for key, versions in of.versions.items()},
        "features.supported": {name: str(levels) for name, levels in of.supported_features.items()},
        "features.finalized": {name: str(level) for name, level in of.finalized_features.items()},
        "limits": {name: to_text(value) for name, value in of.limits.items()},
        "broker": {name: to_text(value) for name, value in of.broker.items()},
        "topic": {name: to_text(value) for name, value in of.topic.items()},
        "answers": {name: answer.outcome for name, answer in of.answers.items()},
    }
