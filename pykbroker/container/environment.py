"""All that environment variables say of a node, read once at its start.

The environment wins over the mounted file, and both over what an image has by default, as in the images
`apache/kafka` and `bitnami/kafka`. Both images' variables are read at any time; two that set one key must agree. What
only Bitnami's image does (users, key stores, its volume) holds where a variable is Bitnami's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pykbroker.config import ConfigurationError, broker_keys
from pykbroker.config.listeners import resolve
from pykbroker.config.properties import read_properties

from . import apache, bitnami
from .bitnami_listeners import SaslOfBitnami
from .log_levels import LOG_LEVEL, LOGGERS, log_levels, names_other_loggers
from .names import (
    BITNAMI_PREFIX,
    PREFIX,
    WITHOUT_KEY,
    is_known,
    is_of_kubernetes,
    is_without_meaning,
    key_of,
    nearest_key,
    variable_of,
)
from .node_environment import NodeEnvironment
from .places import Places
from .texts import file_text, value_of

_CLUSTER_IDS: Final = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
_CLUSTER_ID: Final = re.compile(r"[!-~]{1,100}")
_MOST_NOTES: Final = 20
_OPTIONS: Final = "KAFKA_OPTS"
_READ_OPTIONS: Final = ("-Djava.security.auth.login.config", "-Dorg.apache.kafka.")
_SAYS_WHAT_NODE: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "node.id",
        "process.roles",
    }
)
"""Keys that belong together: a node that is given one of them has none of an image's default file."""


def read_environment(given: Mapping[str, str], places: Places | None = None) -> NodeEnvironment:
    """Read a node's variables. Raises ConfigurationError, whose text is one line."""
    return _Reading(given, places or Places()).read()


class _Reading:
    """One reading: from variables to a `NodeEnvironment`."""

    def __init__(self, given: Mapping[str, str], places: Places) -> None:
        self._variables = _with_files(given)
        self._places = places
        self._of_bitnami = bitnami.is_of_bitnami(given)
        self._node = NodeEnvironment(prefix=BITNAMI_PREFIX if self._of_bitnami else PREFIX)
        self._without_meaning: list[str] = []
        self._unknown: list[str] = []

    def read(self) -> NodeEnvironment:
        node = self._node
        self._read_keys()
        for key, value, variable in (
            *bitnami.command_values(self._variables),
            *apache.ssl_secrets(self._variables, self._places.secrets),
        ):
            self._set(key, value, variable)
        node.file = self._places.mounted_file(self._variables)
        mounted = {} if node.file is None else read_properties(node.file)
        node.of_file = frozenset(mounted)
        self._choose_defaults(mounted)
        self._derive_listeners(mounted)
        apache.check_controller(self._known(mounted).get("process.roles", ""), self._variables)
        if self._of_bitnami:
            self._read_bitnami(mounted)
        self._read_cluster_id(self._known(mounted))
        node.log_levels |= log_levels(self._variables)
        self._note()
        return node

    def _read_keys(self) -> None:
        for variable in sorted(self._variables):
            if variable in bitnami.ALIASES:
                self._set(bitnami.ALIASES[variable], self._variables[variable], variable)
            elif self._is_without_meaning(variable):
                self._without_meaning.append(variable)
            elif variable.startswith(PREFIX) and not self._has_no_key(variable):
                self._read_key(variable)

    def _read_key(self, variable: str) -> None:
        key = key_of(variable)
        if is_known(key):
            self._set(key, value_of(variable, key, self._variables[variable]), variable)
            return
        self._unknown.append(variable)

    def _is_without_meaning(self, variable: str) -> bool:
        if variable == _OPTIONS:
            text = self._variables[variable]
            return bool(text.strip()) and not any(each in text for each in _READ_OPTIONS)
        if variable == LOGGERS:
            return names_other_loggers(self._variables[variable])
        return is_without_meaning(variable)

    def _has_no_key(self, variable: str) -> bool:
        return (
            variable in (LOG_LEVEL, LOGGERS, _OPTIONS)
            or variable in WITHOUT_KEY | bitnami.WITHOUT_KEY | apache.SECRETS
            or variable in bitnami.COMMANDS
            or (variable.startswith("KAFKA_TLS_") and variable.endswith("_CLIENT_AUTH"))
            or is_of_kubernetes(variable, self._variables[variable])
        )

    def _set(self, key: str, value: str, variable: str) -> None:
        """Raises ConfigurationError where another variable has given the key another value."""
        there = self._node.origins.get(key)
        if there is not None and self._node.properties[key] != value:
            raise ConfigurationError(f"{there} and {variable} set {key} to different values")
        self._node.properties[key] = value
        self._node.origins[key] = variable

    def _set_unless_given(self, settings: Iterable[tuple[str, str, str]]) -> None:
        for key, value, variable in settings:
            if key not in self._node.properties:
                self._node.properties[key], self._node.origins[key] = value, variable

    def _choose_defaults(self, mounted: Mapping[str, str]) -> None:
        node = self._node
        if self._of_bitnami:
            node.defaults |= bitnami.DEFAULTS
        if node.file is None and _SAYS_WHAT_NODE.isdisjoint(node.properties):
            default = self._places.default_file
            node.defaults |= {} if default is None else read_properties(default)
        data = self._places.data_directory(of_bitnami=self._of_bitnami)
        if data is not None and not any(
            key in known for key in ("log.dirs", "log.dir") for known in self._given(mounted)
        ):
            node.defaults["log.dirs"] = data

    def _given(self, mounted: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return self._node.properties, mounted

    def _known(self, mounted: Mapping[str, str]) -> dict[str, str]:
        return {**self._node.defaults, **mounted, **self._node.properties}

    def _derive_listeners(self, mounted: Mapping[str, str]) -> None:
        properties = self._node.properties
        for key in ("listeners", "advertised.listeners"):
            if not properties.get(key, "-").strip():
                del properties[key], self._node.origins[key]
        advertised = properties.get("advertised.listeners")
        if advertised is not None and "listeners" not in self._known(mounted):
            variable = self._node.origins["advertised.listeners"]
            self._set("listeners", apache.listeners_from_advertised(advertised), variable)

    def _read_bitnami(self, mounted: Mapping[str, str]) -> None:
        self._node.initial_controllers = self._variables.get("KAFKA_INITIAL_CONTROLLERS") or None
        if self._node.file is not None:
            return  # the image looks at no user and no store where the file is mounted
        protocols = _protocols(self._known(mounted))
        if _READ_OPTIONS[0] not in self._variables.get(_OPTIONS, ""):
            sasl = SaslOfBitnami(self._variables, protocols, self._known(mounted))
            self._set_unless_given(sasl.properties())
            self._node.scram_users += sasl.scram_users()
        directories = self._places.bitnami_certificates(self._variables)
        given = self._known(mounted).keys()
        self._set_unless_given(bitnami.key_stores(self._variables, protocols, directories, given))

    def _read_cluster_id(self, known: Mapping[str, str]) -> None:
        given = {name: self._variables[name].strip() for name in _CLUSTER_IDS if self._variables.get(name, "").strip()}
        for name, text in given.items():
            if _CLUSTER_ID.fullmatch(text) is None:
                raise ConfigurationError(f"{name} is no cluster id; `pykbroker format --random-uuid` makes one")
        if len(set(given.values())) > 1:
            raise ConfigurationError(f"{' and '.join(given)} are different cluster ids")
        several = "," in known.get("controller.quorum.voters", "") or "controller.quorum.bootstrap.servers" in known
        if given:
            self._node.cluster_id = next(iter(given.values()))
        elif not self._of_bitnami or several:
            self._node.cluster_id = apache.DEFAULT_CLUSTER_ID

    def _note(self) -> None:
        node = self._node
        node.notes += map(_unknown, self._unknown[:_MOST_NOTES])
        if len(self._unknown) > _MOST_NOTES:
            node.notes.append(f"{len(self._unknown) - _MOST_NOTES} more variables are ignored: they are no keys")
        if self._without_meaning:
            node.notes.append(f"without meaning in pykbroker: {', '.join(sorted(self._without_meaning))}")
        connects = [each for each in self._without_meaning if each.endswith("ZOOKEEPER_CONNECT")]
        if connects and "process.roles" not in node.properties:
            voters = variable_of("controller.quorum.voters", node.prefix)
            node.notes.append(
                f"there is no ZooKeeper ({connects[0]}): brokers of one cluster find each other by {voters}"
            )


def _unknown(variable: str) -> str:
    key = key_of(variable)
    near = nearest_key(key)
    prefix = BITNAMI_PREFIX if variable.startswith(BITNAMI_PREFIX) else PREFIX
    hint = f"; did you mean {variable_of(near, prefix)}?" if near else ""
    return f"{variable} is ignored: a broker has no key {key}{hint}"


def _with_files(given: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the texts of files in the place of names such as `KAFKA_CLIENT_PASSWORDS_FILE`."""
    variables = dict(given)
    for name, path in given.items():
        base = name.removesuffix("_FILE")
        if base != name and path.strip() and _may_be_in_file(base):
            variables[base] = file_text(name, Path(path))
            del variables[name]
    return variables


def _may_be_in_file(variable: str) -> bool:
    if variable in _CLUSTER_IDS or variable in bitnami.WITHOUT_KEY or is_without_meaning(variable):
        return variable not in ("ALLOW_PLAINTEXT_LISTENER", "BITNAMI_DEBUG")
    return variable.startswith(PREFIX) and is_known(key_of(variable))


def _protocols(known: Mapping[str, str]) -> dict[str, str]:
    """The security protocol of each listener that a node has or speaks to. Raises ConfigurationError."""

    def texts(key: str) -> list[str]:
        value = broker_keys()[key].parse(known.get(key, broker_keys()[key].default))
        return value if isinstance(value, list) else []

    advertised = texts("advertised.listeners") if "advertised.listeners" in known else None
    roles = texts("process.roles") or ["broker", "controller"]
    listeners = resolve(known, texts("listeners"), advertised, roles=sorted(roles))
    of_controllers = {listeners.controller_names[0]: listeners.controller_security_protocol}
    return of_controllers | {each.name: each.security_protocol for each in listeners.all}
