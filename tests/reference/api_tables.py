"""The tables of `docs/protocol.md`: the APIs that are served, with their versions, and those that are not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pykbroker.api
from pykbroker.api import controller_requests
from pykbroker.protocol.api_keys import ApiKey, api_name, request_type
from pykbroker.protocol.schema import Versions
from pykbroker.server.network.handlers import Handler
from pykbroker.server.node.handlers import HANDLERS


def parts() -> dict[str, str]:
    """Return each table by its name in the page."""
    return {"APIs": "\n".join(_served()), "APIs that are not served": "\n".join(_not_served())}


def served_keys() -> list[int]:
    """Return the keys of all APIs that a kind of listener serves."""
    return sorted({*HANDLERS.broker.by_api_key, *HANDLERS.controller.by_api_key})


def _served() -> Iterator[str]:
    yield from ("| key | API | brokers | controllers | flexible | forwarded |", "|---|---|---|---|---|---|")
    for key in served_keys():
        broker, controller = HANDLERS.broker.by_api_key.get(key), HANDLERS.controller.by_api_key.get(key)
        flexible = request_type(key).__schema__.flexible
        forwarded = "yes" if broker is not None and is_forwarded(broker) else ""
        yield f"| {key} | {api_name(key)} | {_range(broker)} | {_range(controller)} | {flexible} | {forwarded} |"


def _not_served() -> Iterator[str]:
    yield from ("| key | API | in Kafka |", "|---|---|---|")
    for key in sorted({*ApiKey} - {*served_keys()}):
        yield f"| {int(key)} | {api_name(key)} | {request_type(key).__schema__.versions} |"


def _range(handler: Handler[Any] | None) -> str:
    return "" if handler is None else str(Versions(handler.min_version, handler.max_version))


def is_forwarded(handler: Handler[Any]) -> bool:
    """Tell whether a broker has the active controller do what is asked."""
    return getattr(_module_of(handler), "submit", None) is controller_requests.submit


def _module_of(handler: Handler[Any]) -> object:
    """Return the module of a handler, which a guard may stand before."""
    function: Any = handler.function
    while function.__module__.startswith("pykbroker.server."):
        function = next(each.cell_contents for each in function.__closure__ if callable(each.cell_contents))
    assert function.__module__.startswith(pykbroker.api.__name__)
    return sys.modules[function.__module__]
