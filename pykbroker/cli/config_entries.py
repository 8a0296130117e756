"""The configs of an entity as JSON. The value of a sensitive one is never in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult

from .entries import Value

_TYPES: Final = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")
"""Types by their numbers in DescribeConfigs (KIP-569)."""
_NAMES_OF_TOOLS: Final = {
    ConfigSource.CLIENT_METRICS_CONFIG: "DYNAMIC_CLIENT_METRICS_CONFIG",
    ConfigSource.GROUP_CONFIG: "DYNAMIC_GROUP_CONFIG",
}
"""Sources that Java's clients (`ConfigEntry.ConfigSource`) name otherwise than the protocol."""


def as_json(type_: str, name: str, rows: Sequence[DescribeConfigsResourceResult]) -> Value:
    """Return an entity with its configs. name: null in JSON for the default of all."""
    return {"type": type_, "name": name or None, "configs": [_config(row) for row in rows]}


def source_name(source: int) -> str:
    """Return the name of a source in Kafka's tools; a newer broker may have others."""
    if source not in list(ConfigSource):
        return str(source)
    return _NAMES_OF_TOOLS.get(ConfigSource(source), ConfigSource(source).name)


def _config(row: DescribeConfigsResourceResult) -> Value:
    hidden = row.is_sensitive
    return {
        "name": row.name,
        "value": None if hidden else row.value,
        "source": source_name(row.config_source),
        "type": _TYPES[row.config_type] if 0 <= row.config_type < len(_TYPES) else str(row.config_type),
        "read_only": row.read_only,
        "sensitive": hidden,
        "synonyms": [
            {"name": one.name, "value": None if hidden else one.value, "source": source_name(one.source)}
            for one in row.synonyms
        ],
        "documentation": row.documentation,
    }
