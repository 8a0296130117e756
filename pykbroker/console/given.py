"""The arguments of a request, from its path, its query and its body."""

from __future__ import annotations

import json
from typing import Final

from starlette.requests import Request

from pykbroker.client.errors import BadInput
from pykbroker.web.body import BodyTooLarge, ClientGone, read_body

from .checks import Refused
from .endpoint import Arguments, Json

MOST_OF_QUERY: Final = 1000


async def arguments_of(request: Request, most_body_bytes: int) -> Arguments:
    """Return all that a request gives, by name. Raises BadInput, Refused, ClientGone."""
    given: dict[str, Json] = {}
    query = request.query_params.multi_items()
    if len(query) > MOST_OF_QUERY:
        raise BadInput(f"a query has {MOST_OF_QUERY} values at most")
    values: dict[str, list[str]] = {}
    for name, value in query:
        values.setdefault(name, []).append(value)
    given.update({name: each[0] if len(each) == 1 else each for name, each in values.items()})
    given.update(await body_of(request, most_body_bytes))
    given.update(request.path_params)
    _check_text(given)
    return Arguments(given)


async def body_of(request: Request, most_bytes: int) -> dict[str, Json]:
    """Return the JSON object that a request brings, an empty one for no body. Raises BadInput, Refused, ClientGone."""
    try:
        body = await read_body(request.receive, most_bytes)
    except BodyTooLarge:
        raise Refused(413, "REQUEST_TOO_LARGE", f"a request has {most_bytes} bytes at most") from None
    if not body:
        return {}
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise BadInput("the request's body is no JSON") from None
    if not isinstance(fields, dict):
        raise BadInput("the request's body is a JSON object")
    return fields


def _check_text(given: dict[str, Json]) -> None:
    """Raises BadInput for halves of characters, which JSON can escape, and which nobody can send to a broker."""
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except RecursionError:
        raise BadInput("the request's body is nested too deeply") from None
    except UnicodeEncodeError:
        raise BadInput("the request has text with half a character (a lone surrogate)") from None


__all__ = ["ClientGone", "arguments_of", "body_of"]
