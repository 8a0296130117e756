"""Users and passwords of Bitnami's variables: a JAAS line for each mechanism of each listener, and users for SCRAM.

Bitnami's image had a user `user` with the password `bitnami` where none was set. Everybody knows it, so here a listener
with log-ins and without users is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        """The mechanisms that are given; else those of the image, as far as users or JAAS lines are there for them."""
        given = self.values.get("sasl.enabled.mechanisms")
        if given is not None:
            return _split(given)
        return [each for each in _split(MECHANISMS) if self._names_clients or self._has_line(self._secured, each)]

    def _has_line(self, listeners: Iterable[str], mechanism: str) -> bool:
        return any(_line_key(name, mechanism) in self.values for name in listeners)

    @property
    def _between_brokers(self) -> str:
        name = self.values.get("inter.broker.listener.name", "").strip()
        return (name or self.values.get("security.inter.broker.protocol", "PLAINTEXT")).upper()

    def properties(self) -> Iterator[tuple[str, str, str]]:
        """Key, value and variable of what listeners with log-ins need. Raises ConfigurationError."""
        mechanisms = self._mechanisms
        if self._secured:
            for_all = ",".join(mechanisms or _split(MECHANISMS))
            yield "sasl.enabled.mechanisms", for_all, "KAFKA_CFG_SASL_ENABLED_MECHANISMS"
        for name in self._secured:
            if self._is_controller(name):
                mechanism = self._mechanism_of("controller")
                key = f"listener.name.{name.lower()}.sasl.enabled.mechanisms"
                yield key, mechanism, "KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL"
                if not self._has_line([name], mechanism):
                    own = self._pair(_CONTROLLERS)
                    yield _line_key(name, mechanism), _jaas(mechanism, own, [own]), _CONTROLLERS[0]
                continue
            if not any(self._has_line([name], each) for each in mechanisms or [""]):
                self._check_users(name)
            for mechanism in mechanisms:
                if mechanism.startswith(("PLAIN", "SCRAM")) and not self._has_line([name], mechanism):
                    line = self._line(mechanism, is_between=name == self._between_brokers)
                    yield _line_key(name, mechanism), line, _CLIENTS[0]

    def _check_users(self, name: str) -> None:
        """Raises ConfigurationError for a listener at which nobody could log in."""
        if name == self._between_brokers:
            self._mechanism_of("inter.broker")
            self._pair(_BETWEEN_BROKERS)
        else:
            self._clients()

    def scram_users(self) -> Iterator[str]:
        """The users with whom the cluster begins, as arguments of `format --add-scram`. Raises ConfigurationError."""
        listeners = self._secured
        if self._names_clients:
            for mechanism in self._mechanisms:
                if mechanism.startswith("SCRAM"):
                    yield from (_argument(mechanism, *pair) for pair in self._clients())
        for name, of, pair in (
            *((name, "inter.broker", _BETWEEN_BROKERS) for name in listeners if name == self._between_brokers),
            *((name, "controller", _CONTROLLERS) for name in listeners if self._is_controller(name)),
        ):
            mechanism = self._mechanism_of(of)
            if mechanism.startswith("SCRAM") and not self._has_line([name], mechanism):
                yield _argument(mechanism, *self._pair(pair))

    def _line(self, mechanism: str, *, is_between: bool) -> str:
        own = self._pair(_BETWEEN_BROKERS) if is_between else None
        users = self._clients() if self._names_clients else []
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


def _line_key(listener: str, mechanism: str) -> str:
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


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
