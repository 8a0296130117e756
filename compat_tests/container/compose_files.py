"""The compose files in docker/, as what a service of each is run with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DOCKER = Path(__file__).parents[2] / "docker"
FILES = sorted(DOCKER.glob("compose*.yaml"))
OUR_IMAGE = "pykbroker"
_VARIABLE = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}")


@dataclass(frozen=True)
class ServiceFile:
    """One service. volumes: their sources, by the place in the container; named ones have no slash.

    health: the command of its own health check; None where the image's holds. ends: its command does one thing and
    ends.
    """

    name: str
    image: str
    environment: Mapping[str, str]
    command: tuple[str, ...]
    volumes: Mapping[str, str]
    hostname: str | None
    health: tuple[str, ...] | None
    ends: bool = False
    user: str | None = None
    also_named: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which other services reach it."""
        return (self.name, *([] if self.hostname is None else [self.hostname]), *self.also_named)


def load(name: str) -> dict[str, Any]:
    """A file with its merges done, and the default of each variable."""
    loaded = yaml.safe_load(_VARIABLE.sub(r"\1", (DOCKER / name).read_text()))
    assert isinstance(loaded, dict)
    return loaded


def services(name: str) -> list[ServiceFile]:
    return [_service(service, spec) for service, spec in load(name)["services"].items()]


def _service(name: str, spec: dict[str, Any]) -> ServiceFile:
    mounts = [text.split(":") for text in spec.get("volumes", [])]
    health = spec.get("healthcheck", {}).get("test")
    return ServiceFile(
        name,
        spec["image"],
        _environment(spec.get("environment", {})),
        _command(spec.get("command", [])),
        {place: source for source, place, *_ in mounts},
        spec.get("hostname"),
        None if health is None else ("sh", "-c", health) if isinstance(health, str) else tuple(health[1:]),
        ends="depends_on" in spec,
    )


def _environment(given: dict[str, Any] | list[str]) -> dict[str, str]:
    if isinstance(given, list):
        return dict(text.split("=", 1) for text in given)
    return {name: str(value) for name, value in given.items()}


def _command(given: str | list[str]) -> tuple[str, ...]:
    return tuple(shlex.split(given) if isinstance(given, str) else map(str, given))
