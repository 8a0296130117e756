"""Callers that are refused: pages of other sites, and those who call by a name that was made to lead here (DNS
rebinding).

A page of another site reaches a server on the reader's machine in two ways: its requests name another origin, or its
own name leads to the server's address, and then the header `Host` has that name. An address in `Host` is nobody's name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
ANY_NAME: Final = "*"
_NO_OTHER_SITE: Final = frozenset({None, "none", "same-origin"})
"""The values of Sec-Fetch-Site, which browsers alone send, also where they send no Origin."""


def host_name(host: str) -> str:
    """Return the name or address in a header `Host`, in lower case; empty where there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_of_another_origin(origin: str | None, host: str) -> bool:
    """Tell whether a request comes from a page of another origin than the host that it asks."""
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != host.lower()
    except ValueError:
        return True


def is_of_another_site(sec_fetch_site: str | None) -> bool:
    """Tell whether a browser says that a page of another site asks."""
    return sec_fetch_site not in _NO_OTHER_SITE


class KnownNames:
    """The names by which a node may be called. names: with `*` among them any name will do."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(each.lower().rstrip(".") for each in names if each) | LOOPBACK

    def has(self, host: str | None) -> bool:
        """Tell whether a header `Host` is fine. None: there is none, which no browser sends."""
        if host is None or ANY_NAME in self._names:
            return True
        name = host_name(host).rstrip(".")
        return name in self._names or name.endswith(".localhost") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
