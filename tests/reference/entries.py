"""One key in the configuration reference: what it means, what it takes, when it counts, and what is different here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pykbroker.config import BrokerConfig, ConfigKey, group_keys, node_keys, own_keys, topic_keys
from pykbroker.config.broker_keys import DYNAMIC_ALONE, OF_KAFKA_4_4
from pykbroker.config.group_keys import broker_key
from pykbroker.config.texts import Kind, text_of
from pykbroker.config.topic_keys import BROKER_SYNONYMS, INTERNAL_TOPIC_KEYS
from pykbroker.config.unserved_keys import is_without_effect, protects
from pykbroker.container.names import variable_of
from pykbroker.metadata.configs import SSL_STORES

from . import remarks
from .kafka_keys import KafkaKey, kafka_keys
from .words import (
    CHANGES,
    OF_A_STORE,
    OF_OTHER_TLS,
    REFUSED_AT_RUN_TIME,
    anchor,
    code,
    default_of,
    listed,
    valid_of,
)

Place = tuple[str, str]
"""A page of the reference, and a key on it."""

OF_THE_AUTHORIZER: Final = (
    ConfigKey("allow.everyone.if.no.acl.found", "boolean", "false"),
    ConfigKey("super.users", "string", ""),
)
"""Keys of Kafka's authorizer, which are no keys of a broker."""
TEXTS_OF_THE_AUTHORIZER: Final = {
    "allow.everyone.if.no.acl.found": "Whether everybody may do what no ACL is about. A key of the authorizer.",
    "super.users": "Principals that may do everything, with semicolons between them. A key of the authorizer, and not "
    "allowed without one.",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the reference.

    default: what counts where nobody has set the key, as text; None for nothing. of_kafka: None where Kafka does not
    document the key. synonyms: where defaults are from, or go to.
    """

    kind: Kind
    key: ConfigKey
    default: str | None
    text: str
    of_kafka: KafkaKey | None
    synonyms: tuple[Place, ...] = ()
    remark: str | None = None

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def is_of_broker(self) -> bool:
        return self.kind == "broker"

    @property
    def is_without_effect(self) -> bool:
        return self.is_of_broker and is_without_effect(self.name)

    @property
    def ends_the_start(self) -> bool:
        return self.is_of_broker and protects(self.name)

    @property
    def has_other_default(self) -> bool:
        return self.of_kafka is not None and self.of_kafka.default != self.default and self.name not in DYNAMIC_ALONE

    @property
    def changes(self) -> str:
        """When a new value counts."""
        if not self.is_of_broker:
            return "changes at run time"
        if self.key.read_only:
            return CHANGES[self.key.update]
        if self.name.startswith("ssl."):
            return OF_A_STORE if self.name.startswith(SSL_STORES) else OF_OTHER_TLS
        return REFUSED_AT_RUN_TIME if self._is_refused_at_run_time else CHANGES[self.key.update]

    @property
    def _is_refused_at_run_time(self) -> bool:
        return protects(self.name, at_run_time=True) and not self.ends_the_start and self.name != "sasl.jaas.config"

    def lines(self) -> Iterator[str]:
        """Yield the entry as lines of Markdown."""
        yield from (f"### {self.name}", "", self.text, "")
        shown = "never shown" if self.key.sensitive else ""
        facts = (self.key.type, valid_of(self.key), default_of(self.default), shown)
        yield f"- {'; '.join(filter(None, facts))}"
        if not self.is_without_effect:
            yield f"- {self.changes}"
        if self.is_of_broker and not (self.is_without_effect or self.ends_the_start):
            yield f"- in a container: {code(variable_of(self.name))}"
        if self.synonyms:
            yield f"- {self._synonyms()}"
        if self._is_undocumented:
            yield f"- {'of Kafka 4.4' if self.name in OF_KAFKA_4_4 else 'of Kafka, which does not document it'}"
        differences = [*filter(None, [self.remark]), *self._of_kafka()]
        if differences:
            yield f"- **Here**: {' '.join(differences)}"
        yield ""

    def _synonyms(self) -> str:
        links = [f"[{code(name)}]({page}#{anchor(name)})" for page, name in self.synonyms]
        where = "the default of" if self.is_of_broker else "the broker's key:"
        return f"{where} {listed(links, 'and' if self.is_of_broker else 'then')}"

    @property
    def _is_undocumented(self) -> bool:
        is_kafkas = self.is_of_broker and self.name not in own_keys() and self.key not in OF_THE_AUTHORIZER
        return is_kafkas and self.of_kafka is None

    def _of_kafka(self) -> Iterator[str]:
        if self.of_kafka is None:
            return
        if self.has_other_default:
            of_kafka = self.of_kafka.default
            yield "Kafka has no default." if of_kafka is None else f"Kafka's default is {code(of_kafka)}."
        if self.is_of_broker and self.key.read_only and self.of_kafka.update != "read-only":
            yield f"In Kafka the key changes at run time ({self.of_kafka.update})."


def keys_of(kind: Kind) -> dict[str, ConfigKey]:
    """Return the keys of one kind. A new kind gets a page, whose keys are `pykbroker.config.NAME_keys.NAME_keys()`."""
    match kind:
        case "topic":
            return {**topic_keys(), **INTERNAL_TOPIC_KEYS}
        case "broker":
            return {**node_keys(), **{key.name: key for key in OF_THE_AUTHORIZER}}
    name = f"{kind.replace('-', '_')}_keys"
    keys: Callable[[], dict[str, ConfigKey]] = getattr(importlib.import_module(f"pykbroker.config.{name}"), name)
    return keys()


def entries_of(kind: Kind) -> list[Entry]:
    """Return the entries of all keys of one kind, by name."""
    return [_entry(kind, key) for _, key in sorted(keys_of(kind).items())]


def _entry(kind: Kind, key: ConfigKey) -> Entry:
    name = key.name
    text = TEXTS_OF_THE_AUTHORIZER.get(name) if kind == "broker" else None
    text = text or text_of(name, kind)
    assert text is not None, f"{name} has no text: pykbroker.config.texts"
    is_known = kind == "broker" and name in node_keys()
    default = BrokerConfig({}).text(name) if is_known else key.default
    remark = remarks.OF_KIND.get(kind, {}).get(name)
    return Entry(kind, key, default, text, kafka_keys(kind).get(name), _synonyms(kind, name), remark)


def _synonyms(kind: str, name: str) -> tuple[Place, ...]:
    match kind:
        case "topic":
            return tuple(("broker.md", each) for each in BROKER_SYNONYMS.get(name, ()))
        case "group":
            of_broker = broker_key(name)
            return () if of_broker is None else (("broker.md", of_broker),)
        case "broker":
            of_topics = [("topic.md", each) for each, names in BROKER_SYNONYMS.items() if name in names]
            return (*of_topics, *(("group.md", each) for each in group_keys() if broker_key(each) == name))
    return ()
