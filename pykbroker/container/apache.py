"""The start script of `apache/kafka`, beside its rule of names: SSL secrets, and listeners from the advertised ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pykbroker.config import ConfigurationError

from .texts import existing_file, file_text

DEFAULT_CLUSTER_ID: Final = "5L6g3nShT-eMCtK--X86sw"
"""The cluster id of nodes that are given none, so that several of them find one another."""

_FILES: Final = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "ssl.keystore.location",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "ssl.truststore.location",
}
_CREDENTIALS: Final = {
    "KAFKA_SSL_KEY_CREDENTIALS": "ssl.key.password",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "ssl.keystore.password",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "ssl.truststore.password",
}
SECRETS: Final = frozenset({*_FILES, *_CREDENTIALS})
_HOST: Final = re.compile(r"://(\[[^\]]*\]|[^:,]*):")


def ssl_secrets(variables: Mapping[str, str], directory: Path) -> Iterator[tuple[str, str, str]]:
    """Key, value and variable of each store and password in the directory of secrets. Raises ConfigurationError."""
    for variable, key in _FILES.items():
        if variables.get(variable):
            yield key, existing_file(variable, directory / variables[variable]), variable
    for variable, key in _CREDENTIALS.items():
        if variables.get(variable):
            yield key, file_text(variable, directory / variables[variable]), variable


def listeners_from_advertised(advertised: str) -> str:
    """The listeners of a node that says only what it advertises: the same names and ports, at all addresses."""
    return _HOST.sub("://0.0.0.0:", advertised)


def check_controller(roles: str, variables: Mapping[str, str]) -> None:
    """Raises ConfigurationError for a controller that advertises listeners for clients."""
    variable = "KAFKA_ADVERTISED_LISTENERS"
    if roles.strip() == "controller" and variables.get(variable, "").strip():
        raise ConfigurationError(f"{variable} is set, and a node with KAFKA_PROCESS_ROLES=controller has no clients")
