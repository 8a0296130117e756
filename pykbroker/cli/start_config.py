"""The configuration of a node that is started or formatted: what the file, the flags and the tables of defaults give.

Not here: what a key is and what it allows (`pykbroker.config`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykbroker.config import BrokerConfig
    from pykbroker.security.sasl.process_options import ProcessOptions

_log = logging.getLogger(__name__)

DEFAULT_DATA_DIRECTORY = "pykbroker-data"
_LOG_DIRECTORY_KEYS = ("log.dirs", "log.dir")


def load_config(
    properties: Path | None,
    overrides: Mapping[str, str],
    directory: Path | None,
    *,
    port: int | None = None,
    defaults: Mapping[str, str] | None = None,
    below: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """The configuration of a node.

    directory, port: what flags asked for, which wins over the properties. defaults: those where they give none. below:
    those of a personality, in the same place.
    """
    from pykbroker.config import BrokerConfig
    from pykbroker.config.client_port import at_client_port
    from pykbroker.config.development import without_given

    values = dict(overrides)
    if directory is not None:
        values |= {"log.dirs": str(directory), "metadata.log.dir": str(directory)}
    config = BrokerConfig.load(properties, values, below)
    if not any(key in config.originals for key in _LOG_DIRECTORY_KEYS):
        values["log.dirs"] = DEFAULT_DATA_DIRECTORY
    if port is not None:
        values |= at_client_port(config, port)
    if defaults:
        chosen = without_given(defaults, config.originals)
        _log.info("settings of --dev: %s", " ".join(f"{key}={value}" for key, value in chosen.items()))
        values |= chosen
    if values != overrides:
        config = BrokerConfig.load(properties, values, below)
    if config.unknown_keys:
        _log.warning(
            "these settings are unknown, and ignored; check their spelling: %s", ", ".join(config.unknown_keys)
        )
    if config.without_effect:
        _log.warning("these settings have no effect in pykbroker: %s", ", ".join(config.without_effect))
    return config


def checked_sasl(config: BrokerConfig, *, asks: bool) -> ProcessOptions:
    """Check the SASL of a node, and return what those say of it who start the process. Raises ConfigurationError.

    asks: the node will ask for keys and tokens, at addresses that must be allowed.
    """
    from pykbroker.config.listeners import uses_sasl
    from pykbroker.security.sasl.process_options import NO_OPTIONS

    if not any(map(uses_sasl, config.listeners.security_protocols)):
        return NO_OPTIONS
    from pykbroker.security.java_options import options_of_process
    from pykbroker.security.sasl.node_settings import check_sasl

    options = options_of_process()
    check_sasl(config, options if asks else replace(options, allowed_urls=None))
    return options


def key_values(overrides: tuple[str, ...]) -> dict[str, str]:
    """`--override key=value …` as a mapping; of two for one key the last wins."""
    from pykbroker.config import ConfigurationError

    values = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"--override expects KEY=VALUE, not '{text}'")
        values[key.strip()] = value.strip()
    return values
