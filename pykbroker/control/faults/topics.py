"""The topics that a request names, by name or by id, wherever in it they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pykbroker.control.topic_fields import LISTS_OF_TOPICS, RESOURCES, TOPIC_NAMES, TOPIC_RESOURCE
from pykbroker.protocol.schema import NO_UUID, Message, Struct

NameOf = Callable[[bytes], str | None]
"""The name of a topic id; None for one that nobody has."""

_TOPIC_ID: Final = "topic_id"
_LONGEST_NAME: Final = 249
"""Of a topic, as Kafka has it."""


def topics_of(message: Message, name_of: NameOf) -> frozenset[str]:
    """Return the names; ids that nobody has are left out, and what is too long for a name."""
    return frozenset(name for name in _names(message, name_of, is_topic=False) if len(name) <= _LONGEST_NAME)


def can_name_topics(kind: type[Struct]) -> bool:
    """Tell whether there are such requests, or parts of requests, that name topics."""
    return any(
        each.name in TOPIC_NAMES
        or each.name in LISTS_OF_TOPICS
        or each.name in RESOURCES
        or each.name == _TOPIC_ID
        or (each.element == "struct" and can_name_topics(each.struct))
        for each in kind.__schema__.fields
    )


def _names(message: Struct, name_of: NameOf, *, is_topic: bool) -> Iterator[str]:
    for each in type(message).__schema__.fields:
        value = getattr(message, each.name)
        if each.name in TOPIC_NAMES or (is_topic and each.name == "name") or _is_of_topic(message, each.name):
            if isinstance(value, str) and value:
                yield value
        elif each.name == _TOPIC_ID and value is not None and bytes(value) != NO_UUID:
            name = name_of(bytes(value))
            if name is not None:
                yield name
        elif isinstance(value, list):
            lists_topics = each.name in LISTS_OF_TOPICS
            for entry in value:
                if isinstance(entry, Struct):
                    yield from _names(entry, name_of, is_topic=lists_topics)
                elif lists_topics and isinstance(entry, str):
                    yield entry
        elif isinstance(value, Struct):
            yield from _names(value, name_of, is_topic=False)


def _is_of_topic(message: Struct, name: str) -> bool:
    """Tell whether a field is the name of a resource that is a topic."""
    return name in RESOURCES and getattr(message, RESOURCES[name]) == TOPIC_RESOURCE
