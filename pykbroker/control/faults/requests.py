"""Faults over HTTP and by `pykbroker ctl`: what comes in and goes out is plain JSON. Called in the node's event loop.

A mistake is a BadFault, a ValueError of one line. Names of options are those of Python (`options`, `disk_faults`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import trio

from .errors import BadFault
from .options import count_of, duration_ms, known_options, text_of
from .script import FaultScript

if TYPE_CHECKING:
    from .faults import AnyRule, Faults

Json: TypeAlias = Any

_WAIT: Final = "10s"
_LONGEST_WAIT_MS: Final = 60_000.0
"""Whoever asks over HTTP gives up after two minutes."""


class Control(Protocol):
    """A control is asked for its faults alone."""

    @property
    def faults(self) -> Faults: ...


async def add(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Add a fault between the node and its clients."""
    return control.faults.add(arguments).as_json()


async def add_disk(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Add a fault of the disk."""
    return control.faults.add_disk(arguments).as_json()


async def list_all(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Tell which faults there are, and what came about: `seed`, `held`, `faults`, `taken`."""
    known_options(arguments, ())
    return control.faults.as_json()


async def wait(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Wait until the fault with this `name` has come about so many `times` in all, and tell what it has counted.

    timeout: a minute at most.
    """
    options = known_options(arguments, ("name", "times", "timeout"))
    rule = _named(control.faults, {"name": options.get("name")})
    times = count_of(options, "times") if "times" in options else 1
    timeout_ms = duration_ms(options.get("timeout", _WAIT), "timeout")
    if timeout_ms > _LONGEST_WAIT_MS:
        raise BadFault(f"'timeout' is a minute at most, not {options['timeout']!r}", "timeout")
    try:
        await control.faults.wait_taken(rule, times, timeout_ms / 1000)
    except TimeoutError as error:
        raise BadFault(str(error)) from None
    return rule.as_json()


async def remove(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Take a fault out by its `name`, and tell what it has counted."""
    rule = _named(control.faults, arguments)
    control.faults.remove(rule)
    return rule.as_json()


async def clear(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Take all faults out, and forget what they did."""
    known_options(arguments, ())
    removed = [rule.name for rule in control.faults]
    control.faults.clear()
    return {"removed": removed}


async def release(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Let go what is held until `name` is released."""
    return {"released": control.faults.release(_required(arguments, "name", "the name that is waited for"))}


async def load(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Add the faults of a script: its text as `toml`."""
    options = known_options(arguments, ("toml",))
    text = options.get("toml")
    if not isinstance(text, str):
        raise BadFault("'toml' is the text of a script", "toml")
    script = await trio.to_thread.run_sync(FaultScript, text)
    return {"added": [rule.as_json() for rule in control.faults.load(script)]}


async def set_seed(control: Control, arguments: Mapping[str, Json]) -> Json:
    """Set the `seed` of all chances."""
    options = known_options(arguments, ("seed",))
    if "seed" not in options:
        raise BadFault("'seed' is missing: a whole number", "seed")
    control.faults.set_seed(options["seed"])
    return {"seed": control.faults.plan.seed}


def _named(faults: Faults, arguments: Mapping[str, Json]) -> AnyRule:
    return faults.find(_required(arguments, "name", "that of a fault"))


def _required(arguments: Mapping[str, Json], name: str, what: str) -> str:
    options = known_options(arguments, (name,))
    if name not in options:
        raise BadFault(f"'{name}' is missing: {what}", name)
    return text_of(options, name)
