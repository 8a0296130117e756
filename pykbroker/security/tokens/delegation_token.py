"""A delegation token, without its HMAC: Kafka's `TokenInformation` (KIP-48, KIP-373)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final

USER_TYPE: Final = "User"
"""The only type of principals that log in, and the only one that renewers have."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """One token. Principals are their type, a colon and their name; times are milliseconds of the wall clock.

    owner: for whom the token speaks. requester: who had it made. renewers: who may renew and expire it beside the
    owner. expiry_timestamp: moves, and is never behind max_timestamp.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int

    def is_expired(self, wall_ms: int) -> bool:
        return self.max_timestamp < wall_ms or self.expiry_timestamp < wall_ms

    def is_renewed_by(self, principal: str) -> bool:
        """Tell whether the principal may renew and expire the token; who had it made for another may not."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principals: Container[str]) -> bool:
        """Tell whether one of the principals is its owner, its requester or a renewer."""
        return (
            self.owner in principals
            or self.requester in principals
            or any(renewer in principals for renewer in self.renewers)
        )
