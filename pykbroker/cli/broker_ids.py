"""Ids of brokers on a command line: `1,2,3`."""

from __future__ import annotations

from typing import Final

from .command import CommandFailed

_LARGEST: Final = 2**31 - 1


def parse_broker_ids(text: str, flag: str) -> tuple[int, ...]:
    """Return the ids in the order in which they stand there. Raises CommandFailed."""
    parts = [each.strip() for each in text.split(",") if each.strip()]
    if not parts or not all(each.isascii() and each.isdigit() and int(each[:12]) <= _LARGEST for each in parts):
        raise CommandFailed(f"{flag} expects ids of brokers like 1,2,3, not '{text[:100]}'")
    ids = tuple(int(each) for each in parts)
    if len(set(ids)) < len(ids):
        raise CommandFailed(f"{flag} names a broker twice: {text[:100]}")
    return ids
