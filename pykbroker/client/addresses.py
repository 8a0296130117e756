"""Addresses of brokers as people write them, and what is wrong with one that cannot be used."""

from __future__ import annotations

import re
from typing import Final

from .errors import BadInput

DEFAULT_PORT: Final = 9092
_LAST_PORT: Final = 65535
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+._-]*)://(.*)", re.DOTALL)
_SECURITY_PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_WEB: Final = ("http", "https")
_LONGEST_SHOWN: Final = 100


def parse_bootstrap_servers(text: str) -> list[tuple[str, int]]:
    """`host:port,host:port`; IPv6 addresses stand in brackets. Raises BadInput."""
    servers = [parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not servers:
        raise BadInput(f"No bootstrap server in '{_shown(text)}'")
    return servers


def parse_address(text: str) -> tuple[str, int]:
    """One address; its port is DEFAULT_PORT where none is given. Raises BadInput, whose text says what to write."""
    scheme = _SCHEME.fullmatch(text)
    if scheme is not None:
        raise BadInput(f"Bootstrap server '{_shown(text)}' is not HOST:PORT: {_without_scheme(*scheme.groups())}")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    reason = _without_brackets(text, host, port) or _why_no_host(host) or _why_no_port(port)
    if reason:
        raise BadInput(f"Bootstrap server '{_shown(text)}' is not HOST:PORT: {reason}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _without_scheme(scheme: str, rest: str) -> str:
    address = _shown(rest.partition("/")[0])
    wanted = f"write {address}" if address else "write the host and the port alone"
    if scheme.lower() in _WEB:
        return f"brokers speak Kafka's protocol and not HTTP, {wanted}"
    if scheme.upper() in _SECURITY_PROTOCOLS:
        return f"{wanted}, and security.protocol={scheme.upper()} in the client's properties (--command-config)"
    return f"it has {_shown(scheme)}:// in front, {wanted}"


def _without_brackets(text: str, host: str, port: str) -> str:
    """Return how an IPv6 address is written; empty where the text is none, or is written so."""
    if ":" not in host or (host.startswith("[") and host.endswith("]")):
        return ""
    if _is_ipv6(host):  # "::1:9092" may be an address as a whole, too, but hardly anybody has that one
        address = f"[{host}]:{port}"
    elif _is_ipv6(text):
        address = f"[{text}]:{DEFAULT_PORT}"
    else:
        return "one server has one port; a comma stands between two servers"
    return f"an IPv6 address stands in brackets, {_shown(address)}"


def _is_ipv6(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _why_no_host(host: str) -> str:
    if not host or host == "[]":
        return "there is no host"
    if any(each.isspace() or not each.isprintable() for each in host):
        return "a host has no spaces"
    if any(each in host for each in "/@?#"):
        return "a host is a name or an address and nothing else"
    return ""


def _why_no_port(port: str) -> str:
    is_number = port.isascii() and port.isdigit() and len(port) <= len(str(_LAST_PORT))
    return "" if is_number and 0 < int(port) <= _LAST_PORT else f"a port is a number from 1 to {_LAST_PORT}"


def _shown(text: str) -> str:
    shown = "".join(each if each.isprintable() else "?" for each in text)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
