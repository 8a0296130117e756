"""Every message that `pykbroker.protocol.messages` declares, and the versions it has."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator

from pykbroker.protocol import messages
from pykbroker.protocol.schema import Message


@functools.cache
def declared_messages() -> dict[str, type[Message]]:
    found: dict[str, type[Message]] = {}
    for family in pkgutil.iter_modules(messages.__path__):
        module = importlib.import_module(f"{messages.__name__}.{family.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__:
                found[value.__name__] = value
    return found


def messages_and_versions() -> Iterator[tuple[type[Message], int]]:
    for message in declared_messages().values():
        versions = message.__schema__.versions
        for version in range(versions.low, versions.high + 1):
            yield message, version
