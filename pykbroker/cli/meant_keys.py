"""Configuration keys that a command was given and that nobody knows, with those that were probably meant.

The cluster has the last word, since it may be of another version: a key is told after a refusal, or beside a change
that was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pykbroker.client.errors import KafkaError
from pykbroker.protocol.errors import ErrorCode

from .command import CommandFailed
from .output import warn

if TYPE_CHECKING:
    from pykbroker.config.texts import Kind

_MOST_TOLD: Final = 10
_OF_KEYS: Final = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


@contextmanager
def with_meant_keys(names: Iterable[str], kind: Kind) -> Iterator[None]:
    """Add to a refusal by the cluster which keys were probably meant. Raises CommandFailed."""
    try:
        yield
    except KafkaError as error:
        told = _told(names, kind) if error.error_code in _OF_KEYS else []
        if not told:
            raise
        raise CommandFailed(f"{error} ({'; '.join(told)})") from None


def warn_of_unknown(names: Iterable[str], kind: Kind) -> None:
    """Warn of keys that were set and that no broker of this release reads."""
    for name in [each for each in names if not _is_known(each, kind)][:_MOST_TOLD]:
        found = _meant(name, kind)
        warn(f"{name} is a key that nobody reads" + ("" if found is None else f"; did you mean {found}?"))


def warn_of_vain_changes(names: Iterable[str]) -> None:
    """Warn of keys of a broker that were set at run time, where nothing in pykbroker acts on that."""
    from pykbroker.config.unserved_keys import is_without_effect

    for name in [each for each in names if is_without_effect(each)][:_MOST_TOLD]:
        warn(f"{name}: has no effect in pykbroker")


def _told(names: Iterable[str], kind: Kind) -> list[str]:
    unknown = [each for each in names if not _is_known(each, kind)][:_MOST_TOLD]
    return [f"did you mean {found}?" for found in (_meant(each, kind) for each in unknown) if found is not None]


def _meant(name: str, kind: Kind) -> str | None:
    from pykbroker.config.listener_keys import PREFIX
    from pykbroker.config.suggestions import nearest

    if kind != "broker" or not name.startswith(PREFIX):
        return nearest(name, _known(kind))
    listener, _, key = name.removeprefix(PREFIX).partition(".")
    found = nearest(key, _known(kind))
    return None if found is None else f"{PREFIX}{listener}.{found}"


def _is_known(name: str, kind: Kind) -> bool:
    from pykbroker.config import is_of_a_listener, key_of_listener

    if kind == "broker" and is_of_a_listener(name):
        return key_of_listener(name) is not None
    return name in _known(kind)


def _known(kind: Kind) -> list[str]:
    from pykbroker.config import group_keys, node_keys, topic_keys
    from pykbroker.config.authorizer import OF_THE_AUTHORIZER
    from pykbroker.config.client_metrics_keys import client_metrics_keys
    from pykbroker.config.topic_keys import INTERNAL_TOPIC_KEYS

    match kind:
        case "topic":
            return [*topic_keys(), *INTERNAL_TOPIC_KEYS]
        case "group":
            return [*group_keys()]
        case "client-metrics":
            return [*client_metrics_keys()]
        case _:
            return [*node_keys(), *OF_THE_AUTHORIZER]
