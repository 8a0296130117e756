"""The session's cookie: for this host, by no script to be read, and sent with requests of our own pages alone.

Cookies know no ports: consoles of several brokers of one machine have cookies of different names.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from .sessions import LONGEST_S


def token_of(request: Request) -> str:
    """Return the session's token, an empty one where the browser sends none."""
    return request.cookies.get(_name(request), "")


def setting(response: Response, request: Request, token: str) -> None:
    """Have the browser keep the token."""
    response.set_cookie(
        _name(request),
        token,
        max_age=int(LONGEST_S),
        httponly=True,
        samesite="strict",
        secure=request.scope["scheme"] == "https",
    )


def clearing(response: Response, request: Request) -> None:
    """Have the browser forget the token."""
    response.delete_cookie(_name(request), httponly=True, samesite="strict")


def _name(request: Request) -> str:
    server = request.scope.get("server")  # not what the header Host says, which may be anything
    return "pykbroker-console" if server is None else f"pykbroker-console-{server[1]}"
