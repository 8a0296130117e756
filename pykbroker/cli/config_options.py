"""The flags of `pykbroker configs`, and the entity that they name. The model is Kafka's `ConfigCommand`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pykbroker.client.configs import ResourceType
from pykbroker.protocol.config_source import ConfigSource

from .client_entities import QUOTA_TYPES, ClientEntity, entity_of
from .command import CommandFailed, key_values, reject
from .connect import read_client_properties


@dataclass(frozen=True, slots=True)
class EntityType:
    """`own_source` is where the entity's own values come from; None shows them all."""

    resource_type: ResourceType
    singular: str
    own_source: ConfigSource | None


ENTITY_TYPES = {
    "topics": EntityType(ResourceType.TOPIC, "topic", ConfigSource.DYNAMIC_TOPIC_CONFIG),
    "brokers": EntityType(ResourceType.BROKER, "broker", ConfigSource.DYNAMIC_BROKER_CONFIG),
    "broker-loggers": EntityType(ResourceType.BROKER_LOGGER, "broker-logger", None),
    "client-metrics": EntityType(ResourceType.CLIENT_METRICS, "client-metric", ConfigSource.CLIENT_METRICS_CONFIG),
    "groups": EntityType(ResourceType.GROUP, "group", ConfigSource.GROUP_CONFIG),
}
_PAIR = re.compile(r"([^=,\[\]]+)=(\[[^\]]*\]|[^,\[]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEntityFlags:
    """The short flags for users, clients and addresses."""

    user: str | None
    user_defaults: bool
    client: str | None
    client_defaults: bool
    ip: str | None
    ip_defaults: bool

    @property
    def named(self) -> list[tuple[str, str]]:
        """Types and names, as `--entity-type` and `--entity-name` have them, in Kafka's order. Raises CommandFailed."""
        given = [
            ("clients", self.client, self.client_defaults),
            ("users", self.user, self.user_defaults),
            ("ips", self.ip, self.ip_defaults),
        ]
        for type_, name, is_default in given:
            if name is not None and is_default:
                raise CommandFailed(f"A name and the default of {type_} exclude each other")
            if name == "":
                raise CommandFailed(f"An empty name of {type_} is none; their default has a flag of its own")
        named = [(type_, name) for type_, name, _ in given if name is not None]
        return named + [(type_, "") for type_, _, is_default in given if is_default]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChanges:
    """The changes to make. pairs: `k=v` each, and deleted: a key each, where a word gives them."""

    add_config: str | None = None
    add_config_file: Path | None = None
    delete_config: str | None = None
    pairs: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        given = (self.add_config, self.add_config_file, self.delete_config)
        return given == (None, None, None) and not self.pairs and not self.deleted

    def to_set(self) -> dict[str, str]:
        """Raises CommandFailed."""
        given = {**read_client_properties(self.add_config_file), **parse_pairs(self.add_config or "")}
        return {**given, **key_values(self.pairs, "--set")}

    def to_delete(self) -> list[str]:
        keys = [*(self.delete_config or "").split(","), *self.deleted]
        return [key.strip() for key in keys if key.strip()]

    def check(self, *, describe: bool, alter: bool) -> None:
        """Raises CommandFailed where the one action is missing, or has not what it needs."""
        if describe == alter:
            raise CommandFailed("Command must include exactly one action: --describe, --alter")
        if describe:
            given = {
                "--add-config": self.add_config,
                "--add-config-file": self.add_config_file,
                "--delete-config": self.delete_config,
            }
            reject(given, "can be used with --alter only")
        elif self.is_empty:
            raise CommandFailed(
                "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
            )
        self.check_keys()

    def check_keys(self) -> None:
        """Raises CommandFailed where a config is to be set and deleted."""
        both = sorted(set(self.to_set()) & set(self.to_delete()))
        if both:
            raise CommandFailed(f"{', '.join(both)} cannot be set and deleted at once")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOptions:
    """A field per flag. short: types and names that their own flags name."""

    bootstrap_server: str
    command_config: Path | None
    describe: bool
    all_: bool
    entity_types: tuple[str, ...]
    entity_names: tuple[str, ...]
    short: tuple[tuple[str, str], ...]
    changes: ConfigChanges = ConfigChanges()
    explain: bool = False
    as_json: bool = False

    def entity(self) -> ClientEntity | tuple[str, str | None]:
        """The entity: of a client, or else its type and name; None for all of them. Raises CommandFailed."""
        types = [*self.entity_types, *(type_ for type_, _ in self.short)]
        names = [*self.entity_names, *(name for _, name in self.short)]
        for type_ in types:
            if type_ not in ENTITY_TYPES and type_ not in QUOTA_TYPES:
                known = ", ".join((*ENTITY_TYPES, *QUOTA_TYPES))
                raise CommandFailed(f"Invalid entity type {type_}, the entity type must be one of {known}")
        if types and all(type_ in QUOTA_TYPES for type_ in types):
            return entity_of([QUOTA_TYPES[type_] for type_ in types], names)
        if len(types) != 1 or len(names) > 1:
            raise CommandFailed("Exactly one entity type must be specified")
        [type_] = types
        name = names[0] if names else None
        if name == "" and type_ != "brokers":
            raise CommandFailed(f"There are no defaults of all {type_}")
        return type_, name


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralConfigs:
    """Entities that are described together."""

    bootstrap_server: str
    command_config: Path | None
    all_: tuple[ConfigOptions, ...]
    as_json: bool


def parse_pairs(text: str) -> dict[str, str]:
    """`k1=v1,k2=[v1,v2]`. Raises CommandFailed."""
    pairs: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _PAIR.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise CommandFailed("--add-config expects key=val, or key=[val1,val2] for values which contain commas")
        value = match[2].strip()
        pairs[match[1].strip()] = value[1:-1] if value.startswith("[") else value
        position = match.end() + 1
    return pairs
