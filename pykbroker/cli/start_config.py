"""The configuration of a node that is started or formatted: what the file, the flags and the tables of defaults give.

Not here: what a key is and what it allows (`pykbroker.config`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .settings_told import OF_THE_START, warn_of_settings

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
    directory_flag: str = "--data-dir",
    port: int | None = None,
    defaults: Mapping[str, str] | None = None,
    below: Mapping[str, Mapping[str, str]] | None = None,
    origins: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """The configuration of a node, which knows where each setting comes from. Raises ConfigurationError.

    directory, port: what flags asked for, which wins over the properties. directory_flag: the one of them. defaults:
    those of --dev, where the properties give none. below: settings by the flag that brings them, such as those of a
    personality, in the same place. origins: of overrides that were not given as flags.
    """
    from pykbroker.config import BrokerConfig, ConfigurationError, InvalidValue
    from pykbroker.config.client_port import at_client_port
    from pykbroker.config.development import without_given
    from pykbroker.config.given_settings import GivenSettings

    settings = GivenSettings()
    try:
        if properties is not None:
            settings.add_file(properties)
        settings.add(overrides, "--override")
        settings.origins |= {key: origin for key, origin in (origins or {}).items() if key in overrides}
        if directory is not None:
            settings.add({"log.dirs": str(directory), "metadata.log.dir": str(directory)}, directory_flag)
        for origin, values in (below or {}).items():
            settings.add_below(values, origin)
        config = BrokerConfig(settings.values, settings.origins)
        before = dict(settings.values)
        if not any(key in config.originals for key in _LOG_DIRECTORY_KEYS):
            settings.add({"log.dirs": DEFAULT_DATA_DIRECTORY}, OF_THE_START)
        if port is not None:
            settings.add(at_client_port(config, port), "--port")
        if defaults:
            settings.add(without_given(defaults, config.originals), "--dev")
        if settings.values != before:
            config = BrokerConfig(settings.values, settings.origins)
    except InvalidValue as error:
        place = settings.origins.get(error.name)
        raise error if place is None else ConfigurationError(f"{error} ({place})") from None
    _check_log_directories(config)
    warn_of_settings(config, settings.repeated)
    return config


def _check_log_directories(config: BrokerConfig) -> None:
    """Raise ConfigurationError where two log directories are one: the second would be in use by the node itself."""
    from pykbroker.config import ConfigurationError

    named: dict[str, str] = {}
    for each in config.log_dirs:
        real = os.path.realpath(each)
        if real in named:
            raise ConfigurationError(f"log.dirs has one directory twice: {named[real]}, {each}")
        named[real] = each


def check_tls(config: BrokerConfig) -> None:
    """Read the certificates and keys of the listeners that have TLS. Raises ConfigurationError."""
    if not config.listeners.with_tls:
        return
    from pykbroker.server.node.node_tls import NodeTls
    from pykbroker.server.runtime.threads import OnTheLoop

    NodeTls(config, OnTheLoop())


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
    from pykbroker.config.properties import check_text

    values = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"--override expects KEY=VALUE, not '{text}'")
        try:
            check_text(text)
        except ValueError as error:
            raise ConfigurationError(f"--override {key.strip()}: {error}") from None
        values[key.strip()] = value.strip()
    return values
