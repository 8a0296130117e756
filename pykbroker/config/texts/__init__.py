"""The meaning of each configuration key in a sentence of our own: the documentation of DescribeConfigs (KIP-569).

The texts are imported when somebody asks for one: no start needs them. A key that has no effect, or that is not
served, says so instead.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from ..listener_keys import is_of_a_listener, key_of_listener
from ..unserved_keys import is_without_effect, protects

Kind = Literal["topic", "broker", "group", "client-metrics"]

WITHOUT_EFFECT = "Kafka acts on this key; in pykbroker it has no effect."
_NOT_SERVED = "Kafka guards something by this key; pykbroker does not serve it, and does not start where it is set."


def text_of(name: str, kind: Kind = "broker") -> str | None:
    """Return what a key means; None of a key that nobody knows. kind: of what the key is."""
    known = _texts(kind).get(name)
    if kind != "broker" or known is not None:
        return known
    if is_of_a_listener(name):
        key = key_of_listener(name)
        text = None if key is None else text_of(key.name)
        return None if text is None else f"{text} Of one listener."
    if is_without_effect(name):
        return WITHOUT_EFFECT
    return _NOT_SERVED if protects(name) else None


@cache
def _texts(kind: Kind) -> dict[str, str]:
    from .topics import CLIENT_METRICS, GROUPS, TOPICS

    match kind:
        case "topic":
            return TOPICS
        case "group":
            return GROUPS
        case "client-metrics":
            return CLIENT_METRICS
    from .clients import CLIENTS
    from .logs import LOGS
    from .nodes import NODES
    from .own import OWN
    from .security import SECURITY

    return NODES | LOGS | CLIENTS | SECURITY | OWN
