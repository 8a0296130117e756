"""A personality as the text of a TOML file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from . import api_names
from .personality import FORMAT, Personality, Setting

_HEADING = """\
# What a Kafka cluster offers to its clients: a personality, written by `pykbroker probe`.
# `pykbroker start --as FILE` offers the same."""


def to_toml(personality: Personality, comments: Iterable[str] = ()) -> str:
    """The whole file. comments: lines for its head."""
    lines = [_HEADING, *(f"# {each}".rstrip() for each in comments), "", f"format = {FORMAT}", ""]
    for title, rows in _tables(personality):
        body = list(rows)
        if body:
            lines += [f"[{title}]", *body, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _tables(personality: Personality) -> Iterator[tuple[str, Iterable[str]]]:
    yield "cluster", _cluster(personality)
    versions = sorted(personality.versions.items())
    yield "versions", (f"{api_names.name_of(key)} = {_text(str(each))}" for key, each in versions)
    supported = sorted(personality.supported_features.items())
    yield "features.supported", (f"{_key(name)} = {_text(str(each))}" for name, each in supported)
    yield "features.finalized", _settings(dict(sorted(personality.finalized_features.items())))
    yield "limits", _settings(personality.limits)
    yield "broker", _settings(personality.broker)
    yield "topic", _settings(personality.topic)
    yield (
        "answers",
        (
            f"{_key(name)} = {_text(each.outcome)}" + (f"  # {each.asked}" if each.asked else "")
            for name, each in personality.answers.items()
        ),
    )


def _cluster(personality: Personality) -> Iterator[str]:
    if personality.software:
        yield f"software = {_text(personality.software)}"
    if personality.told:
        yield f"told = {_text(personality.told)}"
    if personality.brokers:
        yield f"brokers = {personality.brokers}"
    if personality.authorizer is not None:
        yield f"authorizer = {_value(personality.authorizer)}"


def _settings(settings: Mapping[str, Setting]) -> Iterator[str]:
    return (f"{_key(name)} = {_value(value)}" for name, value in settings.items())


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _text(name)


def _value(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """JSON's strings are TOML's, but for the character DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
