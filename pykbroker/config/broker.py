"""One node's configuration: Kafka's property names, from a `server.properties` and from overrides.

It is read once at the start. What the cluster changes later (IncrementalAlterConfigs) is in the metadata image, and
`topic_defaults(dynamic)` takes it from there.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from .authorizer import EARLY_START_LISTENERS, OF_THE_AUTHORIZER, authorizer_config
from .connection_limits import connection_counts
from .consumer_groups import ASSIGNORS, REBALANCE_PROTOCOLS, check_assignors, check_rebalance_protocols
from .given_settings import absent
from .group_bounds import SHARE_ASSIGNORS, check_group_bounds
from .keys import ConfigKey, InvalidValue, Value
from .listener_keys import check_client_auth, check_listeners_exist, is_of_a_listener, listener_prefix
from .listeners import Listeners, parse_endpoint, resolve
from .own_keys import CONSOLE_CLIENT, is_of_web_tls, node_keys
from .properties import read_properties
from .roles import check_roles
from .streams_groups import (
    STREAMS_ASSIGNORS,
    STREAMS_RACK_AWARE_TAGS,
    TOPOLOGY_PLUGIN,
    check_rack_aware_tags,
    check_topology_plugin,
    streams_assignors,
)
from .topic_keys import BROKER_SYNONYMS, TOPIC_KEYS_OF_4_4, topic_keys
from .unserved_keys import check_served, given_without_effect

_OWN_DEFAULTS = {
    "node.id": "1",
    "broker.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
}
_MS_PER_UNIT = {"hours": 3_600_000, "minutes": 60_000}


class BrokerConfig:
    """The typed view of a node's properties.

    `int`, `str`, `bool`, `float`, `list` give the value of a key by Kafka's name of it; `optional_int`, `optional_str`
    that of a key that may be without one.

    given: all keys that were given, as text. origins: where each was given, as far as that is known. listener_keys:
    those that are for one listener (`listener.name.…`). originals: those that are known, and for all. unknown_keys:
    those that are not. without_effect: those that are known and change nothing. authorizer: None where there is none.
    """

    def __init__(self, properties: Mapping[str, str], origins: Mapping[str, str] | None = None) -> None:
        keys = node_keys()
        check_served(properties)
        self.given = dict(properties)
        self.origins = dict(origins or {})
        self.without_effect = given_without_effect(properties)
        self.originals = {name: text for name, text in properties.items() if name in keys}
        self.unknown_keys = [
            name
            for name in properties
            if name not in keys
            and name not in OF_THE_AUTHORIZER
            and not is_of_a_listener(name)
            and not name.startswith(CONSOLE_CLIENT)
            and not is_of_web_tls(name)
        ]
        self.listener_keys = {name: text for name, text in properties.items() if is_of_a_listener(name)}
        self._values: dict[str, Value] = {}
        self._merge_old_names()
        for name, text in self.originals.items():
            self._values[name] = keys[name].parse(text)
            self.originals[name] = keys[name].canonical(text)
        self._check()
        self.authorizer = authorizer_config(
            {**properties, **self.originals},
            None if self.value(EARLY_START_LISTENERS) is None else self.list(EARLY_START_LISTENERS),
            listeners=[each.name for each in self.listeners.all],
            controllers=self.listeners.controller_names,
        )

    @classmethod
    def load(
        cls, path: str | Path | None, overrides: Mapping[str, str], defaults: Mapping[str, str] | None = None
    ) -> BrokerConfig:
        """Read the file, let `overrides` win. Raises ConfigurationError, whose text is one line.

        A key that protects in Kafka and is not served here is such an error as well (`unserved_keys`). defaults: hold
        where neither gives the key, or another one for the same thing (`log.retention.ms`, `log.retention.hours`).
        """
        given = {**(read_properties(path) if path is not None else {}), **overrides}
        return cls({**absent(defaults or {}, given), **given})

    def overlaid(self, values: Mapping[builtins.str, builtins.str]) -> BrokerConfig:
        """Return a copy in which these texts win over those that were given; what is computed of them stays.

        Raises ConfigurationError for a text that its key does not allow.
        """
        keys = node_keys()
        copied = copy(self)
        copied.given = {**self.given, **values}
        copied.listener_keys = {**self.listener_keys, **{k: v for k, v in values.items() if is_of_a_listener(k)}}
        known = {name: text for name, text in values.items() if name in keys}
        copied.originals = {**self.originals, **{name: keys[name].canonical(text) for name, text in known.items()}}
        copied._values = {**self._values, **{name: keys[name].parse(text) for name, text in known.items()}}
        return copied

    def _merge_old_names(self) -> None:
        for old, new in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if old in self.originals and new not in self.originals:
                self.originals[new] = self.originals[old]
        if self.originals.get("broker.id") != self.originals.get("node.id"):
            raise InvalidValue("broker.id", self.originals["broker.id"], "the same as node.id, or not set at all")

    def _check(self) -> None:
        roles = self.roles
        if not roles:
            raise InvalidValue("process.roles", "", "broker, controller or both")
        if not self.log_dirs:
            raise InvalidValue("log.dirs", self.text("log.dirs"), "at least one directory")
        heartbeat, session = self.int("broker.heartbeat.interval.ms"), self.int("broker.session.timeout.ms")
        if heartbeat * 2 > session:
            raise InvalidValue(
                "broker.heartbeat.interval.ms", heartbeat, f"at most half of broker.session.timeout.ms ({session})"
            )
        if self.int("group.min.session.timeout.ms") > self.int("group.max.session.timeout.ms"):
            raise InvalidValue(
                "group.min.session.timeout.ms",
                self.int("group.min.session.timeout.ms"),
                f"at most group.max.session.timeout.ms ({self.int('group.max.session.timeout.ms')})",
            )
        connection_counts(self, [each.name for each in self.listeners.all])
        check_group_bounds(self.int, self.list(SHARE_ASSIGNORS))
        streams_assignors(self.list(STREAMS_ASSIGNORS))
        check_rack_aware_tags(STREAMS_RACK_AWARE_TAGS, self.given.get(STREAMS_RACK_AWARE_TAGS))
        check_topology_plugin(self.text(TOPOLOGY_PLUGIN))
        check_assignors(self.list(ASSIGNORS))
        check_rebalance_protocols(self.list(REBALANCE_PROTOCOLS))
        check_listeners_exist(self.given, self.listeners.known_names)
        check_client_auth(self.given, {each.name: each.security_protocol for each in self.listeners.all})
        check_roles(
            self.list("process.roles"),
            self.node_id,
            given=self.originals,
            voters=self.quorum_voters,
            bootstrap_servers=self.quorum_bootstrap_servers,
        )

    def key(self, name: builtins.str) -> ConfigKey:
        return node_keys()[name]

    def text(
        self, name: builtins.str, dynamic: Mapping[builtins.str, builtins.str] | None = None
    ) -> builtins.str | None:
        """The value as text: what the cluster set, else what the file or an override gave, else the default."""
        if dynamic is not None and name in dynamic:
            return dynamic[name]
        if name in self.originals:
            return self.originals[name]
        return _OWN_DEFAULTS.get(name, self.key(name).default)

    def value(self, name: builtins.str) -> Value:
        if name not in self._values:
            text = self.text(name)
            self._values[name] = None if text is None else self.key(name).parse(text)
        return self._values[name]

    def int(self, name: builtins.str) -> builtins.int:
        value = self.value(name)
        assert type(value) is builtins.int, f"{name} is not a number that is always set"
        return value

    def float(self, name: builtins.str) -> builtins.float:
        value = self.value(name)
        assert isinstance(value, builtins.float), f"{name} is not a double that is always set"
        return value

    def bool(self, name: builtins.str) -> builtins.bool:
        value = self.value(name)
        assert isinstance(value, builtins.bool), f"{name} is not a boolean"
        return value

    def str(self, name: builtins.str) -> builtins.str:
        value = self.value(name)
        assert isinstance(value, builtins.str), f"{name} is not a string that is always set"
        return value

    def list(self, name: builtins.str) -> builtins.list[builtins.str]:
        """A key that is not set is an empty list."""
        value = self.value(name)
        assert value is None or isinstance(value, builtins.list), f"{name} is not a list"
        return [] if value is None else value

    def optional_int(self, name: builtins.str) -> builtins.int | None:
        return None if self.value(name) is None else self.int(name)

    def optional_str(self, name: builtins.str) -> builtins.str | None:
        return None if self.value(name) is None else self.str(name)

    def listener_key(self, listener: builtins.str, name: builtins.str, mechanism: builtins.str = "") -> builtins.str:
        """The name under which the key is given for the listener: of its mechanism, of its own, or of all of them."""
        own = [listener_prefix(listener) + name]
        if mechanism:
            own.insert(0, self.mechanism_key(listener, mechanism, name))
        return next((each for each in own if each in self.listener_keys), name)

    def mechanism_key(self, listener: builtins.str, mechanism: builtins.str, name: builtins.str) -> builtins.str:
        """The name of a key for one mechanism of one listener: `listener.name.internal.scram-sha-256.…`."""
        return f"{listener_prefix(listener)}{mechanism.lower()}.{name}"

    def listener_value(self, listener: builtins.str, name: builtins.str, mechanism: builtins.str = "") -> Value:
        """The value of a key for one listener. Raises ConfigurationError."""
        given = self.listener_key(listener, name, mechanism)
        if given == name:
            return self.value(name)
        return replace(self.key(name), name=given).parse(self.listener_keys[given])

    def listener_int(self, listener: builtins.str, name: builtins.str, mechanism: builtins.str = "") -> builtins.int:
        value = self.listener_value(listener, name, mechanism)
        assert type(value) is builtins.int, f"{name} is not a number that is always set"
        return value

    def listener_list(self, listener: builtins.str, name: builtins.str) -> builtins.list[builtins.str]:
        value = self.listener_value(listener, name)
        assert isinstance(value, builtins.list), f"{name} is not a list that is always set"
        return value

    @cached_property
    def node_id(self) -> builtins.int:
        return self.int("node.id")

    @cached_property
    def roles(self) -> frozenset[builtins.str]:
        return frozenset(self.list("process.roles"))

    @cached_property
    def log_dirs(self) -> builtins.list[builtins.str]:
        return self.list("log.dirs") or self.list("log.dir")

    @property
    def metadata_log_dir(self) -> builtins.str:
        return self.optional_str("metadata.log.dir") or self.log_dirs[0]

    @cached_property
    def listeners(self) -> Listeners:
        advertised = self.list("advertised.listeners") if self.value("advertised.listeners") is not None else None
        return resolve(self.originals, self.list("listeners"), advertised, roles=sorted(self.roles))

    @cached_property
    def quorum_voters(self) -> dict[builtins.int, tuple[builtins.str, builtins.int]]:
        """`controller.quorum.voters` as node id -> host and port; empty where it is not given."""
        voters: dict[builtins.int, tuple[builtins.str, builtins.int]] = {}
        for entry in self.list("controller.quorum.voters"):
            node, at, address = entry.partition("@")
            if not at or not node.strip().isdecimal():
                raise InvalidValue("controller.quorum.voters", entry, "a list of id@host:port")
            try:
                _, host, port = parse_endpoint("controller.quorum.voters", f"VOTER://{address}")
            except InvalidValue:
                raise InvalidValue("controller.quorum.voters", entry, "a list of id@host:port") from None
            voter, place = builtins.int(node), (host, port)
            if voters.setdefault(voter, place) != place:
                raise InvalidValue("controller.quorum.voters", entry, f"one host and port for the voter {voter}")
            if builtins.list(voters.values()).count(place) > 1 and place[1]:
                raise InvalidValue("controller.quorum.voters", entry, "no two voters with the same host and port")
        return voters

    @cached_property
    def quorum_bootstrap_servers(self) -> builtins.list[tuple[builtins.str, builtins.int]]:
        """`controller.quorum.bootstrap.servers`: whom to ask for the leader of the quorum, as host and port."""
        key = "controller.quorum.bootstrap.servers"
        servers = []
        for entry in self.list(key):
            try:
                _, host, port = parse_endpoint(key, f"SERVER://{entry.strip()}")
            except InvalidValue:
                raise InvalidValue(key, entry, "a list of host:port") from None
            servers.append((host, port))
        return servers

    def topic_defaults(
        self, dynamic: Mapping[builtins.str, builtins.str] | None = None
    ) -> dict[builtins.str, builtins.str]:
        """Return the values of a topic without configuration of its own, for each of a topic's keys.

        dynamic: the broker's keys that the cluster set at run time; they come before the file's.
        """
        return {
            name: self._topic_default(key, dynamic or {}) for name, key in (topic_keys() | TOPIC_KEYS_OF_4_4).items()
        }

    def _topic_default(self, key: ConfigKey, dynamic: Mapping[builtins.str, builtins.str]) -> builtins.str:
        for broker_name in BROKER_SYNONYMS.get(key.name, ()):
            text = self.text(broker_name, dynamic)
            if text is not None:
                unit = broker_name.rpartition(".")[2]
                return _in_ms(text, unit) if unit in _MS_PER_UNIT else text
        assert key.default is not None
        return key.default


def _in_ms(text: str, unit: str) -> str:
    """Kafka takes any negative time as no limit."""
    return "-1" if int(text) < 0 else str(int(text) * _MS_PER_UNIT[unit])
