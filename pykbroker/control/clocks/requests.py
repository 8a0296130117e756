"""Requests about the clocks of one node, in plain values of JSON, in the loop of the node.

- `advance({"duration": "7d", "scope": "retention"})`: returns when what is due has happened.
- `advanced({})`, `advanced({"scope": "retention"})`: by how many milliseconds each clock was advanced.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from .advance import advance as _advance
from .clocked_node import ClockedNode
from .clocks import SCOPES, scopes_of

_ADVANCE: Final = ("duration", "scope")
_ADVANCED: Final = ("scope",)


class BadRequest(ValueError):
    """The request lacks something, or has something that nobody knows."""


async def advance(control: ClockedNode, request: Mapping[str, object]) -> dict[str, object]:
    """Advance the clocks of a scope. Raises ValueError for a bad request, and AdvanceNotDone."""
    _check(request, _ADVANCE)
    duration, scope = request.get("duration"), request.get("scope")
    if duration is None or scope is None:
        raise BadRequest('say by how much and what for, as {"duration": "7d", "scope": "retention"}')
    if not isinstance(scope, str):
        raise BadRequest(f"a scope is a text, not {type(scope).__name__}")
    await _advance([control], duration, scope)  # type: ignore[arg-type]  # it says itself what is no duration
    return advanced(control, {"scope": scope})


def advanced(control: ClockedNode, request: Mapping[str, object]) -> dict[str, object]:
    """Return by how many milliseconds the clocks were advanced: of one scope, or of all. Raises ValueError."""
    _check(request, _ADVANCED)
    scope = request.get("scope", "all")
    if not isinstance(scope, str):
        raise BadRequest(f"a scope is a text, not {type(scope).__name__}")
    return {"advanced_ms": {each: control.clocks.advanced_ms(each) for each in SCOPES if each in scopes_of(scope)}}


def _check(request: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in request:
        if key not in known:
            shown = ascii(str(key)[:64])[1:-1]
            close = get_close_matches(str(key)[:64], known, n=1)
            raise BadRequest(
                f"there is no field {shown} here; " + (f"did you mean {close[0]}?" if close else f"there is {known[0]}")
            )
