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

from .mishaps import EVERYBODY, Mishaps


class BadRequest(ValueError):
    """The request has something that nobody knows, or a value of another kind."""


def state(mishaps: Mishaps, request: Mapping[str, object]) -> dict[str, object]:
    """Return how the node fares."""
    _check(request)
    return {
        "is_running": mishaps.is_running,
        "is_paused": mishaps.is_paused,
        "cut_off_from": mishaps.cut_off_from,
        "unflushed_bytes": mishaps.unflushed_bytes,
    }


def pause(mishaps: Mishaps, request: Mapping[str, object]) -> dict[str, object]:
    """Pause the node."""
    _check(request)
    mishaps.pause()
    return state(mishaps, {})


def resume(mishaps: Mishaps, request: Mapping[str, object]) -> dict[str, object]:
    """Resume the node."""
    _check(request)
    mishaps.resume()
    return state(mishaps, {})


def cut_off(mishaps: Mishaps, request: Mapping[str, object]) -> dict[str, object]:
    """Cut the node off."""
    _check(request, "from")
    side = request.get("from", EVERYBODY)
    if not isinstance(side, str):
        raise BadRequest(f"`from` is a text, not {type(side).__name__}")
    mishaps.cut_off(side)
    return state(mishaps, {})


def restore(mishaps: Mishaps, request: Mapping[str, object]) -> dict[str, object]:
    """Restore the node's network."""
    _check(request)
    mishaps.restore()
    return state(mishaps, {})


async def crash(mishaps: Mishaps, request: Mapping[str, object]) -> dict[str, object]:
    """Crash the node."""
    _check(request, "lose_unflushed")
    lose_unflushed = request.get("lose_unflushed", True)
    if not isinstance(lose_unflushed, bool):
        raise BadRequest(f"`lose_unflushed` is true or false, not {type(lose_unflushed).__name__}")
    lost_bytes = await mishaps.crash(lose_unflushed=lose_unflushed)
    return {**state(mishaps, {}), "lost_bytes": lost_bytes}


def _check(request: Mapping[str, object], *known: str) -> None:
    for key in request:
        if key not in known:
            close = get_close_matches(str(key)[:64], known, n=1)
            hint = f"did you mean {close[0]}?" if close else ("there is " + known[0] if known else "there are none")
            raise BadRequest(f"there is no field {ascii(str(key)[:64])[1:-1]} here; {hint}")
