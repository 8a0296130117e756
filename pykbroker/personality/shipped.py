"""The personalities that come with pykbroker: releases of Apache Kafka, each probed."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from .personality import BadPersonality, Personality
from .toml_file import parse_personality, read_personality

_PACKAGE = "pykbroker.personality"
_SUFFIX = ".toml"


def shipped_names() -> list[str]:
    """The names that `--as` knows, by version."""
    names = [
        each.name.removesuffix(_SUFFIX)
        for each in files(_PACKAGE).joinpath("shipped").iterdir()
        if each.name.endswith(_SUFFIX)
    ]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def shipped(name: str) -> Personality:
    """One of `shipped_names`."""
    file = files(_PACKAGE).joinpath("shipped", f"{name}{_SUFFIX}")
    return parse_personality(file.read_text(encoding="utf-8"), f"the personality {name}")


def find_personality(name: str) -> Personality:
    """A file, or the name of a shipped personality. Raises BadPersonality."""
    if name in shipped_names():
        return shipped(name)
    if "/" in name or name.endswith(_SUFFIX) or Path(name).is_file():
        return read_personality(Path(name))
    names = shipped_names()
    close = get_close_matches(name, names, n=1, cutoff=0.4)
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise BadPersonality(f"there is no personality '{name}'{meant}; there are {', '.join(names)}, or give a file")
