"""Checks of who asks: no page of another site; a change comes from our own page alone.

A form of another site can send a request here, with the session's cookie from some hosts, but neither JSON's content
type nor a header of its own, for which a browser asks first. Host names are checked before (`pykbroker.web`).
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from pykbroker.web.callers import is_of_another_origin, is_of_another_site

OUR_HEADER: Final = "x-console-request"

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "manifest-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every answer."""


class Refused(Exception):
    """A request that is not carried out. name: of the error, in Kafka's spelling."""

    def __init__(self, status: int, name: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.headers = headers or {}


def check_reader(request: Request) -> None:
    """Raises Refused for a page of another site."""
    host = request.headers.get("host", "")
    if is_of_another_origin(request.headers.get("origin"), host):
        raise Refused(403, "FORBIDDEN", "the console answers no page of another origin")
    if is_of_another_site(request.headers.get("sec-fetch-site")):
        raise Refused(403, "FORBIDDEN", "the console answers no page of another site")


def check_changer(request: Request) -> None:
    """Raises Refused for a request for a change that our own page does not send."""
    check_reader(request)
    if request.headers.get("origin") is None:
        raise Refused(403, "FORBIDDEN", "a change needs the header Origin, as browsers send it")
    if request.headers.get(OUR_HEADER) is None:
        raise Refused(403, "FORBIDDEN", "a change needs the header X-Console-Request, which forms cannot send")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "FORBIDDEN", "a change is JSON: Content-Type: application/json")
