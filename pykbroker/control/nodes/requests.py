"""Requests about what befalls one node, in plain values of JSON, in the loop of the node. Whoever asks does not come
through the node's own network, which may be held.

- `pause({})`, `resume({})`, `restore({})`
- `cut_off({"from": "nodes"})`: or clients, or all, which it is without a word
- `crash({"lose_unflushed": true})`: how many bytes were lost
- `state({})`

Each answers with the state behind it, and raises ValueError for what makes no sense.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Protocol

from .mishaps import EVERYBODY, Mishaps


class Controlled(Protocol):
    """The control of a node, as far as it is about what befalls the node."""

    mishaps: Mishaps


class BadRequest(ValueError):
    """The request has something that nobody knows, or a value of another kind."""


def state(node: Controlled, request: Mapping[str, object]) -> dict[str, object]:
    """Return how the node fares."""
    _check(request)
    mishaps = node.mishaps
    return {
        "is_running": mishaps.is_running,
        "is_paused": mishaps.is_paused,
        "cut_off_from": mishaps.cut_off_from,
        "unflushed_bytes": mishaps.unflushed_bytes,
    }


def pause(node: Controlled, request: Mapping[str, object]) -> dict[str, object]:
    """Pause the node."""
    _check(request)
    node.mishaps.pause()
    return state(node, {})


def resume(node: Controlled, request: Mapping[str, object]) -> dict[str, object]:
    """Resume the node."""
    _check(request)
    node.mishaps.resume()
    return state(node, {})


def cut_off(node: Controlled, request: Mapping[str, object]) -> dict[str, object]:
    """Cut the node off."""
    _check(request, "from")
    side = request.get("from", EVERYBODY)
    if not isinstance(side, str):
        raise BadRequest(f"`from` is a text, not {type(side).__name__}")
    node.mishaps.cut_off(side)
    return state(node, {})


def restore(node: Controlled, request: Mapping[str, object]) -> dict[str, object]:
    """Restore the node's network."""
    _check(request)
    node.mishaps.restore()
    return state(node, {})


async def crash(node: Controlled, request: Mapping[str, object]) -> dict[str, object]:
    """Crash the node."""
    _check(request, "lose_unflushed")
    lose_unflushed = request.get("lose_unflushed", True)
    if not isinstance(lose_unflushed, bool):
        raise BadRequest(f"`lose_unflushed` is true or false, not {type(lose_unflushed).__name__}")
    lost_bytes = await node.mishaps.crash(lose_unflushed=lose_unflushed)
    return {**state(node, {}), "lost_bytes": lost_bytes}


def _check(request: Mapping[str, object], *known: str) -> None:
    for key in request:
        if key not in known:
            close = get_close_matches(str(key)[:64], known, n=1)
            hint = f"did you mean {close[0]}?" if close else ("there is " + known[0] if known else "there are none")
            raise BadRequest(f"there is no field {ascii(str(key)[:64])[1:-1]} here; {hint}")
