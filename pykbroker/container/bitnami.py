"""The start script of Bitnami's image, beside its rule: aliases, files of secrets, commands, key stores at their
places.

Users and passwords of listeners: `bitnami_listeners`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

from pykbroker.config import ConfigurationError
from pykbroker.config.listeners import uses_tls

from .names import BITNAMI_PREFIX
from .texts import existing_file, file_text, one_of

_MARKS: Final = frozenset(
    {
        "ALLOW_PLAINTEXT_LISTENER",
        "BITNAMI_DEBUG",
        "KAFKA_BROKER_PASSWORD",
        "KAFKA_BROKER_USER",
        "KAFKA_CERTIFICATE_PASSWORD",
        "KAFKA_CLIENT_PASSWORDS",
        "KAFKA_CLIENT_USERS",
        "KAFKA_CONTROLLER_PASSWORD",
        "KAFKA_CONTROLLER_USER",
        "KAFKA_ENABLE_KRAFT",
        "KAFKA_INITIAL_CONTROLLERS",
        "KAFKA_INTER_BROKER_PASSWORD",
        "KAFKA_INTER_BROKER_USER",
        "KAFKA_KRAFT_CLUSTER_ID",
        "KAFKA_MOUNTED_CONF_DIR",
        "KAFKA_SKIP_KRAFT_STORAGE_INIT",
        "KAFKA_TLS_CLIENT_AUTH",
        "KAFKA_TLS_TRUSTSTORE_FILE",
        "KAFKA_TLS_TYPE",
    }
)
WITHOUT_KEY: Final = _MARKS | {"KAFKA_CLUSTER_ID"}
"""Variables that set no key; what they mean stands in this file, in `bitnami_listeners` and `environment`."""

ALIASES: Final = {
    "KAFKA_LOGS_DIRS": "log.dirs",
    "KAFKA_MAX_MESSAGE_BYTES": "message.max.bytes",
    "KAFKA_SEGMENT_BYTES": "log.segment.bytes",
}
COMMANDS: Final = {
    "KAFKA_CONTROLLER_QUORUM_VOTERS_COMMAND": "controller.quorum.voters",
    "KAFKA_NODE_ID_COMMAND": "node.id",
}
_COMMAND_TIMEOUT_S: Final = 10
_TYPES: Final = ("JKS", "PEM")
_CLIENT_AUTH: Final = ("required", "requested", "none")

DEFAULTS: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""What the properties file in Bitnami's image says."""


def is_of_bitnami(variables: Collection[str]) -> bool:
    """Tell whether variables are those of Bitnami's image."""
    return any(each.startswith(BITNAMI_PREFIX) or each.removesuffix("_FILE") in _MARKS for each in variables)


def command_values(variables: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Key, value and variable of each shell command whose output is the value. Raises ConfigurationError."""
    for variable, key in COMMANDS.items():
        if variables.get(variable):
            yield key, _output(variable, variables), variable


def _output(variable: str, variables: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the variable is whoever starts the node's
            ["/bin/sh", "-c", variables[variable]],
            stdout=subprocess.PIPE,
            env=dict(variables),
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
        output = done.stdout.decode().strip()
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"{variable} has not ended within {_COMMAND_TIMEOUT_S} s") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{variable} cannot be run: {error}") from None
    if done.returncode or not output:
        raise ConfigurationError(f"{variable} has ended with {done.returncode} and {output!r}, which is no value")
    return output


def key_stores(
    variables: Mapping[str, str],
    protocols: Mapping[str, str],
    directories: Sequence[Path],
    given: Set[str],
) -> Iterator[tuple[str, str, str]]:
    """Key, value and variable of the TLS of a node. Raises ConfigurationError.

    protocols: by listener. directories: those that may have the stores. given: keys that variables set themselves.
    """
    secured = [name for name, protocol in protocols.items() if uses_tls(protocol)]
    if not secured:
        return
    type_ = one_of("KAFKA_TLS_TYPE", variables, "JKS", _TYPES)
    client_auth = one_of("KAFKA_TLS_CLIENT_AUTH", variables, "required", _CLIENT_AUTH)
    yield "ssl.client.auth", client_auth, "KAFKA_TLS_CLIENT_AUTH"
    for name in secured:
        variable = f"KAFKA_TLS_{name.upper()}_CLIENT_AUTH"
        if variables.get(variable):
            own = one_of(variable, variables, client_auth, _CLIENT_AUTH)
            yield f"listener.name.{name.lower()}.ssl.client.auth", own, variable
    if given.isdisjoint(("ssl.keystore.location", "ssl.keystore.key")):
        yield from (_pem if type_ == "PEM" else _jks)(variables, directories, trusts=client_auth != "none")


def _jks(variables: Mapping[str, str], directories: Sequence[Path], *, trusts: bool) -> Iterator[tuple[str, str, str]]:
    yield "ssl.keystore.type", "JKS", "KAFKA_TLS_TYPE"
    yield "ssl.keystore.location", _store("KAFKA_TLS_TYPE", "kafka.keystore.jks", directories), "KAFKA_TLS_TYPE"
    keys = ["ssl.key.password", "ssl.keystore.password"]
    truststore = _truststore(variables, "kafka.truststore.jks", directories, trusts=trusts)
    if truststore is not None:
        yield "ssl.truststore.type", "JKS", "KAFKA_TLS_TYPE"
        yield "ssl.truststore.location", truststore, "KAFKA_TLS_TRUSTSTORE_FILE"
        keys.append("ssl.truststore.password")
    password = "KAFKA_CERTIFICATE_PASSWORD"  # noqa: S105 - the name of a variable
    for key in keys if variables.get(password) else ():
        yield key, variables[password], password


def _pem(variables: Mapping[str, str], directories: Sequence[Path], *, trusts: bool) -> Iterator[tuple[str, str, str]]:
    yield "ssl.keystore.type", "PEM", "KAFKA_TLS_TYPE"
    for key, name in (("key", "kafka.keystore.key"), ("certificate.chain", "kafka.keystore.pem")):
        path = Path(_store("KAFKA_TLS_TYPE", name, directories))
        yield f"ssl.keystore.{key}", file_text("KAFKA_TLS_TYPE", path), "KAFKA_TLS_TYPE"
    truststore = _truststore(variables, "kafka.truststore.pem", directories, trusts=trusts)
    if truststore is not None:
        yield "ssl.truststore.type", "PEM", "KAFKA_TLS_TYPE"
        text = file_text("KAFKA_TLS_TRUSTSTORE_FILE", Path(truststore))
        yield "ssl.truststore.certificates", text, "KAFKA_TLS_TRUSTSTORE_FILE"
    if variables.get("KAFKA_CERTIFICATE_PASSWORD"):
        yield "ssl.key.password", variables["KAFKA_CERTIFICATE_PASSWORD"], "KAFKA_CERTIFICATE_PASSWORD"


def _truststore(variables: Mapping[str, str], name: str, directories: Sequence[Path], *, trusts: bool) -> str | None:
    """The store of those whom clients' certificates come from; None where no client shows one and no store is there."""
    given = variables.get("KAFKA_TLS_TRUSTSTORE_FILE")
    if given:
        return existing_file("KAFKA_TLS_TRUSTSTORE_FILE", Path(given))
    there = any((directory / name).is_file() for directory in directories)
    return _store("KAFKA_TLS_CLIENT_AUTH", name, directories) if trusts or there else None


def _store(variable: str, name: str, directories: Sequence[Path]) -> str:
    for directory in directories:
        if (directory / name).is_file():
            return str(directory / name)
    raise ConfigurationError(f"{variable}: there is no file {name} in {' or '.join(map(str, directories))}")
