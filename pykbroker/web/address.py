"""The address of a web listener: `HOST:PORT` as a key of the configuration gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pykbroker.config import InvalidValue

_MOST_PORT: Final = 65535
_LONGEST_PORT: Final = 5
_LONGEST_HOST: Final = 255


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An address to listen at. host: empty for all addresses of the machine. port: 0 for any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(key: str, text: str) -> WebAddress | None:
    """Return what the key's value says; None where it closes the listener. Raises InvalidValue."""
    text = text.strip()
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or not colon:
        raise _invalid(key, text)
    if not host.isprintable() or any(each in host for each in " /[]@") or len(host) > _LONGEST_HOST:
        raise _invalid(key, text)
    if not (port.isascii() and port.isdecimal() and len(port) <= _LONGEST_PORT) or int(port) > _MOST_PORT:
        raise _invalid(key, text)
    return WebAddress(host, int(port))


def _invalid(key: str, text: str) -> InvalidValue:
    shown = "".join(each if each.isprintable() else "?" for each in text[:100])
    return InvalidValue(key, shown, "HOST:PORT, such as 127.0.0.1:9480, or nothing")
