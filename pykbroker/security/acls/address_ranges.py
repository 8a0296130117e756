"""Ranges of addresses as hosts of ACLs, in the notation of CIDR: `10.0.0.0/8`, `2001:db8::/32` (KIP-1276).

What counts is the range: the bits of the address behind its length say nothing. The notation, and the texts of what is
wrong with it, are those of Kafka's `CidrUtils`: a host with a slash is a range, of IPv6 where it has a colon. An IPv6
address that holds an IPv4 address is none, as in Java, which takes it for that one.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final, NamedTuple

SLASH: Final = "/"

_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_LENGTH: Final = re.compile(r"[+-]?\d+", re.ASCII)
_IPV4_BITS: Final = 32
_IPV6_BITS: Final = 128
LONGEST_TOLD: Final = 200
"""Characters of a text that may be a range; an IPv6 address with its zone has fewer than 100."""


class InvalidRange(ValueError):
    """A host with a slash that is no range of addresses; the text is Kafka's reason."""


class AddressRange(NamedTuple):
    """All addresses of so many bits, 32 or 128, whose first `length` bits are those of `network`."""

    bits: int
    length: int
    network: int


def parse_range(text: str) -> AddressRange:
    """Parse a host with a slash. Raises InvalidRange."""
    if len(text) > LONGEST_TOLD:
        raise InvalidRange(f"Could not parse [{text[:LONGEST_TOLD]}]")
    return _parse_ipv6(text) if ":" in text else _parse_ipv4(text)


@lru_cache(4096)
def range_of(host: str) -> AddressRange | None:
    """Return the range that a host of an entry stands for; None where it is an address, a name or nonsense."""
    if SLASH not in host:
        return None
    try:
        return parse_range(host)
    except InvalidRange:
        return None


@lru_cache(1000)
def address_of(host: str) -> tuple[int, int] | None:
    """Return the bits of a client's address, 32 or 128, and the address as a number; None of what is no address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return address.max_prefixlen, int(address)


def _parse_ipv4(text: str) -> AddressRange:
    found = _IPV4.fullmatch(text)
    if found is None:
        raise InvalidRange(f"Could not parse [{text}]")
    *octets, length = map(int, found.groups())
    for value, most in (*((each, 255) for each in octets), (length, _IPV4_BITS)):
        if value > most:
            raise InvalidRange(f"Value [{value}] not in range [0,{most}]")
    return _range(_IPV4_BITS, length, int.from_bytes(bytes(octets)))


def _parse_ipv6(text: str) -> AddressRange:
    address, _, length_text = text.partition(SLASH)
    if _LENGTH.fullmatch(length_text) is None or abs(int(length_text)) >= 2**31:
        raise InvalidRange(f"Could not parse [{text}] - invalid prefix length")
    length = int(length_text)
    if not 0 <= length <= _IPV6_BITS:
        raise InvalidRange(f"Could not parse [{text}] - prefix length must be between 0 and {_IPV6_BITS}")
    bare = address[1:-1] if address.startswith("[") and address.endswith("]") else address
    try:
        parsed = ipaddress.IPv6Address(bare)
    except ValueError:
        raise InvalidRange(f"Could not parse [{address}]") from None
    if parsed.ipv4_mapped is not None:
        raise InvalidRange(f"Could not parse [{address}] - not an IPv6 address")
    return _range(_IPV6_BITS, length, int(parsed))


def _range(bits: int, length: int, address: int) -> AddressRange:
    return AddressRange(bits, length, address >> (bits - length) << (bits - length))
