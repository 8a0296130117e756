"""The option `--kafka-audit` of pytest: each broker of this process is audited from its beginning."""

from __future__ import annotations

_switch = {"is_on": False}


def is_on() -> bool:
    return _switch["is_on"]


def turn(*, is_on: bool) -> None:
    """Turn it on or off for brokers that are opened from now on."""
    _switch["is_on"] = is_on
