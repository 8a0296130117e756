"""The settings of a node as they are told at its start and by `start --check-config`.

Told are values, where they come from, and which of them have no effect.

A secret is not told, and neither is the value of a key that nobody knows, which may be one, or what is one in a URL.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from .printable import printable

if TYPE_CHECKING:
    from pykbroker.config import BrokerConfig

_log = logging.getLogger(__name__)

_LONGEST_VALUE: Final = 100
_LONGEST_KEY: Final = 300
_MOST_TOLD: Final = 100
"""Of one origin, in one line of the log."""
_MOST_SUGGESTIONS: Final = 20
"""A comparison with all keys takes milliseconds."""
_UNKNOWN: Final = "unknown, and ignored"
_OF_ZOOKEEPER: Final = "zookeeper."
"""Keys that files of Kafka before 4.0 have."""
OF_THE_START: Final = "default of pykbroker start"
"""The origin of what nobody has set, and Kafka has otherwise."""
NO_EFFECT: Final = "has no effect in pykbroker"


@dataclass(frozen=True, slots=True)
class Setting:
    """One that somebody has made. remark: what is wrong with it, or empty."""

    key: str
    value: str
    origin: str
    remark: str = ""

    @property
    def place(self) -> str:
        """The origin without the file's name: `line 4`."""
        _, colon, line = self.origin.rpartition(":")
        return f" (line {line})" if colon and line.isdecimal() else ""

    @property
    def layer(self) -> str:
        """The origin without the line."""
        return self.origin.rpartition(":")[0] if self.place else self.origin


def settings_of(config: BrokerConfig) -> list[Setting]:
    """All settings of which the origin is known, in the order in which they were given."""
    unknown = dict(_unknown(config))
    without_effect = set(config.without_effect)
    return [
        Setting(
            _printable(key, _LONGEST_KEY),
            _shown(key, config.given[key]),
            printable(origin),
            _printable(unknown.get(key, NO_EFFECT if key in without_effect else ""), _LONGEST_KEY),
        )
        for key, origin in config.origins.items()
        if key in config.given
    ]


def tell_settings(config: BrokerConfig) -> None:
    """Log the settings, one line for each origin."""
    settings = settings_of(config)
    layers = sorted((each for each in settings if each.origin != OF_THE_START), key=lambda each: each.layer)
    for layer, some in groupby(layers, key=lambda each: each.layer):
        told = [f"{each.key}={each.value}{each.place}" for each in some]
        _log.info("settings of %s: %s", layer, _some(told))


def warn_of_settings(config: BrokerConfig, repeated: Mapping[str, Sequence[int]]) -> None:
    """Log a warning for what is not as it seems. repeated: lines of the properties file that have the same key."""
    settings = settings_of(config)
    unknown = [f"{each.key}{_why(each)}" for each in settings if each.remark.startswith(_UNKNOWN)]
    if unknown:
        _log.warning("these settings are unknown, and ignored; check their spelling: %s", _some(unknown))
    without_effect = [f"{each.key} ({each.origin})" for each in settings if each.remark == NO_EFFECT]
    if without_effect:
        _log.warning("these settings have no effect in pykbroker: %s", _some(without_effect))
    for key, lines in islice(repeated.items(), _MOST_TOLD):
        _log.warning("%s stands in lines %s, and the last one counts", _printable(key), _some(list(map(str, lines))))


def print_settings(config: BrokerConfig) -> None:
    """Print the settings as a table."""
    from .output import Column, print_table

    rows = [[each.key, each.value, each.origin, each.remark] for each in settings_of(config)]
    print_table([Column("KEY"), Column("VALUE"), Column("FROM"), Column("REMARK")], rows)


def _why(setting: Setting) -> str:
    """The origin of a setting that nobody knows, and what may be meant."""
    return f" ({setting.origin}{setting.remark.removeprefix(_UNKNOWN)})"


def _unknown(config: BrokerConfig) -> Iterable[tuple[str, str]]:
    """The keys that nobody knows, with what may be meant."""
    from pykbroker.config import is_of_a_listener, key_of_listener, node_keys
    from pykbroker.config.authorizer import OF_THE_AUTHORIZER
    from pykbroker.config.suggestions import did_you_mean

    of_listeners = [name for name in config.given if is_of_a_listener(name) and key_of_listener(name) is None]
    for at, name in enumerate([*config.unknown_keys, *of_listeners]):
        known = [*node_keys(), *OF_THE_AUTHORIZER] if at < _MOST_SUGGESTIONS else []
        prefix, of_listener = "", name
        if name.startswith(_OF_ZOOKEEPER):
            yield name, f"{_UNKNOWN}; there is no ZooKeeper: brokers and controllers keep the metadata"
            continue
        if is_of_a_listener(name):
            listener, _, of_listener = name.removeprefix("listener.name.").partition(".")
            prefix = f"listener.name.{listener}."
        yield name, f"{_UNKNOWN}{did_you_mean(of_listener, known, prefix)}"


def _shown(name: str, text: str) -> str:
    from pykbroker.config import is_of_a_listener, key_of_listener, node_keys
    from pykbroker.config.authorizer import OF_THE_AUTHORIZER
    from pykbroker.config.urls import HIDDEN, without_secrets

    key = key_of_listener(name) if is_of_a_listener(name) else node_keys().get(name)
    if (key is None and name not in OF_THE_AUTHORIZER) or (key is not None and key.sensitive):
        return HIDDEN
    return _printable(without_secrets(text))


def _printable(text: str, most: int = _LONGEST_VALUE) -> str:
    """Return so much of a text as one line: nothing of it makes a line of its own in the log."""
    shown = "".join(each if each.isprintable() else " " for each in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[:most]}..."


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_TOLD
    return ", ".join(texts[:_MOST_TOLD]) + (f", and {more} more" if more > 0 else "")
