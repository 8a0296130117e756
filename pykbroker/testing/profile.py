"""Settings of brokers in tests: those of `pykbroker.config.development.TEST`, and for clusters some more.

`docs/development.md` lists the former, `docs/testing.md` the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pykbroker.config.development import TEST, without_given

__all__ = ["CLUSTER", "TEST", "with_defaults"]

CLUSTER: Final[Mapping[str, str]] = MappingProxyType(
    {
        # A broker that hangs, as one that is stopped by a debugger, is fenced after two seconds and not nine.
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "200",
    }
)


def with_defaults(given: Mapping[str, str], *defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the given settings, and those of the tables that count beside them."""
    return {key: value for table in defaults for key, value in without_given(table, given).items()} | dict(given)
