"""`--log-level` and `--log-format`: which lines a node logs, and how they look."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from .command import CommandFailed

_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_ROOT: Final = "root"
_PACKAGE: Final = Path(__file__).parent.parent

LOG_OPTIONS: Final = (
    click.option(
        "--log-level",
        "log_levels",
        multiple=True,
        metavar="[LOGGER=]LEVEL",
        help=f"{', '.join(_LEVELS)}: of all lines, or of one logger: pykbroker.raft=DEBUG.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How a line of the log looks; json is one object a line.",
    ),
)


def parse_log_levels(texts: Iterable[str]) -> dict[str, str]:
    """Levels by logger, the root's as `root`; of two for one logger the last wins. Raises CommandFailed."""
    levels = {}
    for text in texts:
        name, equals, level = text.rpartition("=")
        name, level = name.strip() if equals else _ROOT, level.strip().upper()
        if level not in _LEVELS:
            raise CommandFailed(f"--log-level {text}: the levels are {', '.join(_LEVELS)}")
        _check_logger(name, text)
        levels[name] = level
    return levels


def _check_logger(name: str, text: str) -> None:
    """Loggers have the names of modules. Those of pykbroker that are not imported yet are there as files."""
    if name == _ROOT:
        return
    first, *parts = name.split(".")
    if not all(part.isidentifier() for part in (first, *parts)):
        raise CommandFailed(f"--log-level {text}: a logger has the name of a module, such as pykbroker.raft")
    if first != _PACKAGE.name:
        _check_library(first, text)
        return
    for at in range(len(parts)):
        place = _PACKAGE.joinpath(*parts[: at + 1])
        if not place.is_dir() and not place.with_suffix(".py").is_file():
            raise CommandFailed(f"--log-level {text}: {_unknown(parts[: at + 1])}")


def _check_library(name: str, text: str) -> None:
    import importlib.util

    if importlib.util.find_spec(name) is None:
        raise CommandFailed(f"--log-level {text}: there is no module {name}")


def _unknown(parts: list[str]) -> str:
    """That there is no such module in its package, and which one may be meant."""
    from pykbroker.config.suggestions import did_you_mean

    *above, name = parts
    package = _PACKAGE.joinpath(*above)
    there = [each.stem for each in package.iterdir() if not each.name.startswith("_")] if package.is_dir() else []
    full = ".".join((_PACKAGE.name, *parts))
    prefix = ".".join((_PACKAGE.name, *above, ""))
    return f"there is no logger {full}{did_you_mean(name, there, prefix)}"


def log_arguments(levels: Iterable[str], style: str) -> list[str]:
    """The flags again, for a process that is started with them."""
    return [*(part for each in levels for part in ("--log-level", each)), "--log-format", style]


def with_log_options(function: Any) -> Any:
    """Add both flags to a command, as `log_levels` and `log_format`."""
    for option in reversed(LOG_OPTIONS):
        function = option(function)
    return function
