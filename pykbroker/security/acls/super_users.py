"""`super.users`: the principals that may do everything, whatever the entries say."""

from __future__ import annotations

from typing import Final

KEY: Final = "super.users"


def parse_super_users(text: str) -> frozenset[str]:
    """Return the principals of a list whose separator is a semicolon, since names may have commas.

    Raises ValueError, whose text names what is no principal.
    """
    principals = frozenset(filter(None, (each.strip() for each in text.split(";"))))
    for each in sorted(principals):
        kind, colon, name = each.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"'{each}' is not principalType:principalName, such as User:admin")
    return principals
