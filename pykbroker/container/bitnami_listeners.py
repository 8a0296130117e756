"""Users and passwords of Bitnami's variables: a JAAS line for each mechanism of each listener, and users for SCRAM.

Bitnami's image had a user `user` with the password `bitnami` where none was set. Everybody knows it, so here a listener
with log-ins and without users is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.config import ConfigurationError
from pykbroker.config.listeners import uses_sasl

MECHANISMS: Final = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
_SEPARATORS: Final = re.compile(r"[,;\s]+")
_CLIENTS: Final = ("KAFKA_CLIENT_USERS", "KAFKA_CLIENT_PASSWORDS")
_BETWEEN_BROKERS: Final = ("KAFKA_INTER_BROKER_USER", "KAFKA_INTER_BROKER_PASSWORD")
_CONTROLLERS: Final = ("KAFKA_CONTROLLER_USER", "KAFKA_CONTROLLER_PASSWORD")
_MODULES: Final = "org.apache.kafka.common.security."


@dataclass(frozen=True, slots=True)
class SaslOfBitnami:
    """The log-ins of a node. protocols: by listener. values: what is known of the node's properties so far."""

    variables: Mapping[str, str]
    protocols: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def _secured(self) -> list[str]:
        return [name for name, protocol in self.protocols.items() if uses_sasl(protocol)]

    @property
    def _mechanisms(self) -> list[str]:
        return _split(self.values.get("sasl.enabled.mechanisms", MECHANISMS))

    @property
    def _between_brokers(self) -> str:
        name = self.values.get("inter.broker.listener.name", "").strip()
        return (name or self.values.get("security.inter.broker.protocol", "PLAINTEXT")).upper()

    def properties(self) -> Iterator[tuple[str, str, str]]:
        """Key, value and variable of what listeners with log-ins need. Raises ConfigurationError."""
        if self._secured:
            yield "sasl.enabled.mechanisms", ",".join(self._mechanisms), "KAFKA_CFG_SASL_ENABLED_MECHANISMS"
        for name in self._secured:
            prefix = f"listener.name.{name.lower()}."
            if self._is_controller(name):
                mechanism = self._mechanism_of("controller")
                yield f"{prefix}sasl.enabled.mechanisms", mechanism, "KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL"
                line = _jaas(mechanism, self._pair(_CONTROLLERS), [self._pair(_CONTROLLERS)])
                yield f"{prefix}{mechanism.lower()}.sasl.jaas.config", line, _CONTROLLERS[0]
                continue
            for mechanism in self._mechanisms:
                if mechanism.startswith(("PLAIN", "SCRAM")):
                    line = self._line(mechanism, is_between=name == self._between_brokers)
                    yield f"{prefix}{mechanism.lower()}.sasl.jaas.config", line, _CLIENTS[0]

    def scram_users(self) -> Iterator[str]:
        """The users with whom the cluster begins, as arguments of `format --add-scram`. Raises ConfigurationError."""
        listeners = self._secured
        if self._names_clients or any(
            not self._is_controller(name) and name != self._between_brokers for name in listeners
        ):
            for mechanism in self._mechanisms:
                if mechanism.startswith("SCRAM"):
                    yield from (_argument(mechanism, *pair) for pair in self._clients())
        if self._between_brokers in listeners and (mechanism := self._mechanism_of("inter.broker")).startswith("SCRAM"):
            yield _argument(mechanism, *self._pair(_BETWEEN_BROKERS))
        if any(map(self._is_controller, listeners)):
            mechanism = self._mechanism_of("controller")
            if mechanism.startswith("SCRAM"):
                yield _argument(mechanism, *self._pair(_CONTROLLERS))

    def _line(self, mechanism: str, *, is_between: bool) -> str:
        own = self._pair(_BETWEEN_BROKERS) if is_between else None
        users = [] if is_between and not self._names_clients else self._clients()
        return _jaas(mechanism, own, [*users, *([own] if own else [])])

    @property
    def _names_clients(self) -> bool:
        return any(self.variables.get(name) for name in (*_CLIENTS, "KAFKA_BROKER_USER"))

    def _is_controller(self, name: str) -> bool:
        return name in _split(self.values.get("controller.listener.names", "CONTROLLER").upper())

    def _mechanism_of(self, of: str) -> str:
        key = f"sasl.mechanism.{of}.protocol"
        mechanism = self.values.get(key, "GSSAPI" if of == "controller" else "").strip()
        if not mechanism.startswith(("PLAIN", "SCRAM")):
            variable = f"KAFKA_CFG_SASL_MECHANISM_{of.upper().replace('.', '_')}_PROTOCOL"
            raise ConfigurationError(f"{variable} is not set to the mechanism with which nodes log in, such as PLAIN")
        return mechanism

    def _pair(self, names: tuple[str, str]) -> tuple[str, str]:
        user, password = (self.variables.get(name, "") for name in names)
        if not user or not password:
            raise ConfigurationError(f"{' and '.join(names)} are not both set, and nodes log in with them")
        return user, password

    def _clients(self) -> list[tuple[str, str]]:
        users = _split(self.variables.get(_CLIENTS[0]) or self.variables.get("KAFKA_BROKER_USER", ""))
        passwords = _split(self.variables.get(_CLIENTS[1]) or self.variables.get("KAFKA_BROKER_PASSWORD", ""))
        if not users or not passwords:
            raise ConfigurationError(
                f"{' and '.join(_CLIENTS)} are not both set, and clients log in at {', '.join(self._secured)} "
                "(the known password that Bitnami's image has by itself is none here)"
            )
        if len(users) != len(passwords):
            raise ConfigurationError(
                f"{_CLIENTS[0]} names {len(users)} users, and {_CLIENTS[1]} has {len(passwords)} passwords"
            )
        return list(zip(users, passwords, strict=True))


def _jaas(mechanism: str, own: tuple[str, str] | None, users: Sequence[tuple[str, str]]) -> str:
    """The JAAS line of a mechanism. own: with whom the node itself logs in. users: whom PLAIN lets in."""
    is_plain = mechanism == "PLAIN"
    module = f"{_MODULES}{'plain.PlainLoginModule' if is_plain else 'scram.ScramLoginModule'} required"
    options = [] if own is None else [f"username={_quoted(own[0])}", f"password={_quoted(own[1])}"]
    if is_plain:
        options += [f"user_{name}={_quoted(password)}" for name, password in dict(users).items()]
    return " ".join([module, *options]) + ";"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _argument(mechanism: str, user: str, password: str) -> str:
    return f"{mechanism}=[name={user},password={password}]"


def _split(text: str) -> list[str]:
    return [each for each in _SEPARATORS.split(text) if each]
