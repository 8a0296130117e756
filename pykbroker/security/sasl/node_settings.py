"""The SASL settings of a node: what its listeners offer, and how it authenticates with other nodes.

Keys may be given for one listener, and some of them for one mechanism of it: `listener.name.internal.sasl.…`,
`listener.name.internal.plain.sasl.jaas.config`. As in Kafka, a JAAS line counts for a listener and a mechanism alone,
and in its place a section of a JAAS file may have the login module. The line of the listener between brokers, or
between controllers, also holds the node's own name and password, or what its tokens claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pykbroker.config import BrokerConfig, ConfigurationError, InvalidValue
from pykbroker.config.listeners import uses_sasl

from .credentials import LOGIN_MODULES, ClientCredentials, check_mechanism, check_module, client_credentials
from .jaas import LoginModule, parse_one
from .jaas_file import SERVER
from .mechanism import OAUTHBEARER
from .process_options import NO_OPTIONS, ProcessOptions

if TYPE_CHECKING:  # what OAUTHBEARER needs is imported where a listener or the node has it
    from .oauthbearer.given_keys import GivenKeys
    from .oauthbearer.login_settings import Login
    from .oauthbearer.unsecured import UnsecuredValidator
    from .oauthbearer.validator_settings import SecuredTokens

ENABLED: Final = "sasl.enabled.mechanisms"
JAAS: Final = "sasl.jaas.config"
BETWEEN_BROKERS: Final = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS: Final = "sasl.mechanism.controller.protocol"
FAILURE_DELAY: Final = "connection.failed.authentication.delay.ms"
_SERVER_HANDLER: Final = ("sasl.server", "callback.handler.class")
_LOGIN_HANDLER: Final = ("sasl.login", "callback.handler.class")
"""Kafka takes both for one mechanism of one listener alone; for others they end the start."""


@dataclass(frozen=True, slots=True)
class MechanismSettings:
    """One mechanism of a listener. max_reauth_ms: how long a session lasts, 0 without an end (KIP-368).

    tokens: the rules of OAUTHBEARER; None of the others.
    """

    name: str
    max_reauth_ms: int
    options: Mapping[str, str] = field(repr=False)
    tokens: UnsecuredValidator | SecuredTokens | None = None


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """The SASL of one listener: what it offers, in the order of `sasl.enabled.mechanisms`."""

    mechanisms: tuple[MechanismSettings, ...]
    max_receive_bytes: int
    failure_delay_ms: int


def check_sasl(config: BrokerConfig, options: ProcessOptions = NO_OPTIONS) -> None:
    """Raises ConfigurationError where a SASL listener, or the way to other nodes, is not configured as it must be.

    options: what those say who start the process.
    """
    listeners = config.listeners
    for listener in listeners.all:
        if uses_sasl(listener.security_protocol):
            sasl_settings(config, listener.name, options)
    between_brokers(config, options)
    to_controllers(config, options)


def sasl_settings(config: BrokerConfig, listener: str, options: ProcessOptions = NO_OPTIONS) -> SaslSettings:
    """Return what the listener offers. Raises ConfigurationError. options: as of `check_sasl`."""
    enabled = config.listener_list(listener, ENABLED)
    if not enabled:
        raise InvalidValue(ENABLED, "", f"at least one mechanism for the listener {listener}")
    key = config.listener_key(listener, ENABLED)
    mechanisms = []
    for name in dict.fromkeys(enabled):
        check_mechanism(key, name)
        line = _jaas(config, listener, name, options)
        max_reauth_ms = config.listener_int(listener, "connections.max.reauth.ms", name)
        tokens = _token_rules(config, listener, line, options) if name == OAUTHBEARER else None
        mechanisms.append(MechanismSettings(name, max(max_reauth_ms, 0), line.module.options, tokens))
    return SaslSettings(
        tuple(mechanisms),
        max_receive_bytes=config.listener_int(listener, "sasl.server.max.receive.size"),
        failure_delay_ms=_failure_delay_ms(config, listener),
    )


def between_brokers(config: BrokerConfig, options: ProcessOptions = NO_OPTIONS) -> NodeCredentials | None:
    """The way to authenticate with other brokers; None where nobody asks. Raises ConfigurationError."""
    name = config.listeners.inter_broker_name
    listener = config.listeners.advertised_for(name)
    if listener is None or not uses_sasl(listener.security_protocol):
        return None
    return _of_node(config, name, BETWEEN_BROKERS, options, is_own=True)


def to_controllers(config: BrokerConfig, options: ProcessOptions = NO_OPTIONS) -> NodeCredentials | None:
    """The way to authenticate with controllers; None where nobody asks. Raises ConfigurationError."""
    listeners = config.listeners
    if not uses_sasl(listeners.controller_security_protocol):
        return None
    name = listeners.controller_names[0]
    is_own = any(each.name == name for each in listeners.controller)
    return _of_node(config, name, TO_CONTROLLERS, options, is_own=is_own)


@dataclass(frozen=True, slots=True)
class NodeCredentials:
    """A node's own name and password, as far as its JAAS line has them: who asks no other node needs none.

    login: its way to tokens of OAUTHBEARER.
    """

    key: str
    mechanism: str
    module: LoginModule
    login: Login | None = None

    def token_login(self) -> Login:
        """Raises ConfigurationError where neither the line nor a key says how to come by a token."""
        if self.login is None:
            raise InvalidValue(
                self.key, "[hidden]", "it says nothing of a token: unsecuredLoginStringClaim_sub and the like"
            )
        return self.login

    def credentials(self) -> ClientCredentials:
        """Raises ConfigurationError where the line names no user."""
        return client_credentials(self.key, self.mechanism, self.module)


@dataclass(frozen=True, slots=True)
class _Line:
    """A login module and its place, which messages name: a configuration key, or a section of a file."""

    place: str
    module: LoginModule


def _of_node(
    config: BrokerConfig, listener: str, mechanism_key: str, options: ProcessOptions, *, is_own: bool
) -> NodeCredentials:
    """Read the mechanism and its line. is_own: the listener is this node's, and must offer the mechanism."""
    mechanism = config.str(mechanism_key)
    check_mechanism(mechanism_key, mechanism)
    if is_own and mechanism not in config.listener_list(listener, ENABLED):
        enabled = config.listener_key(listener, ENABLED)
        raise InvalidValue(mechanism_key, mechanism, f"one of {enabled} of the listener {listener}")
    line = _jaas(config, listener, mechanism, options, is_login=True)
    way = None
    if mechanism == OAUTHBEARER:
        from .oauthbearer.login_settings import login

        way = login(_given(config, listener, line), _handler(config, listener, _LOGIN_HANDLER), options.allowed_urls)
    return NodeCredentials(line.place, mechanism, line.module, way)


def _token_rules(
    config: BrokerConfig, listener: str, line: _Line, options: ProcessOptions
) -> UnsecuredValidator | SecuredTokens:
    from .oauthbearer.validator_settings import token_rules

    given, handler = _given(config, listener, line), _handler(config, listener, _SERVER_HANDLER)
    return token_rules(given, handler, options.allowed_urls)


def _given(config: BrokerConfig, listener: str, line: _Line) -> GivenKeys:
    """The keys of OAUTHBEARER, as they are given for the listener."""
    from .oauthbearer.given_keys import GivenKeys

    def find(key: str) -> tuple[str, str | None]:
        name = config.listener_key(listener, key, OAUTHBEARER)
        return name, (config.given if name == key else config.listener_keys).get(name)

    return GivenKeys(find, line.place, line.module.options)


def _handler(config: BrokerConfig, listener: str, key: tuple[str, str]) -> tuple[str, str | None]:
    name = config.mechanism_key(listener, OAUTHBEARER, ".".join(key))
    return name, config.listener_keys.get(name)


def _jaas(
    config: BrokerConfig, listener: str, mechanism: str, options: ProcessOptions, *, is_login: bool = False
) -> _Line:
    """Find the JAAS line of a mechanism, or its module in the JAAS file, in the order of Kafka's `JaasContext`.

    is_login: for this node's own log-in, and not for those of clients.
    """
    key = config.mechanism_key(listener, mechanism, JAAS)
    text = config.listener_keys.get(key)
    if text is not None:
        module = parse_one(key, text)
        check_module(key, mechanism, module)
        return _Line(key, module)
    file = options.jaas_file
    section = None if file is None else file.of_listener(listener)
    if file is None or section is None:
        other = "" if file is None else f", and {file.path} has no section {listener.lower()}.{SERVER} or {SERVER}"
        raise ConfigurationError(
            f"{key} is missing{other}: SASL with {mechanism} on the listener {listener} needs a line such as "
            f"'{LOGIN_MODULES[mechanism]} required …;', or a JAAS file that KAFKA_OPTS names"
        )
    found = file.login(section, mechanism) if is_login else file.module(section, mechanism)
    return _Line(file.place(section), found)


def _failure_delay_ms(config: BrokerConfig, listener: str) -> int:
    delay_ms, idle_ms = config.listener_int(listener, FAILURE_DELAY), config.int("connections.max.idle.ms")
    if 0 <= idle_ms <= delay_ms:
        raise InvalidValue(FAILURE_DELAY, delay_ms, f"less than connections.max.idle.ms ({idle_ms})")
    return delay_ms
