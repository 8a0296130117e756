"""The limit of a client is that quota of eight which names it most closely, as in Kafka's `DefaultQuotaCallback`.

The order is: user and client id, user and default client id, user, default user and client id, default user and default
client id, default user, client id, default client id. A client without an id has the quotas of users alone.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .entities import CLIENT_ID, USER, ClientQuotaEntity

_ABSENT = ""
"""In place of a name, which is never empty: the entity has no such part. None is its default."""

_Key: TypeAlias = tuple[str | None, str | None]

Scope: TypeAlias = tuple[str, str]
"""Who shares one measured rate: a user and a client id, or one of them beside an empty name."""


class FoundLimit(NamedTuple):
    """The limit of a client, and with whom it shares it."""

    scope: Scope
    limit: float


class QuotaLimits:
    """The limits of one key, such as `producer_byte_rate`."""

    def __init__(self) -> None:
        self._limits: dict[_Key, float] = {}

    def __len__(self) -> int:
        return len(self._limits)

    def set(self, entity: ClientQuotaEntity, limit: float | None) -> None:
        """Set the limit of users or client ids; None takes it away."""
        parts = dict(entity)
        key = parts.get(USER, _ABSENT), parts.get(CLIENT_ID, _ABSENT)
        if limit is None:
            self._limits.pop(key, None)
        else:
            self._limits[key] = limit

    def find(self, user: str, client_id: str) -> FoundLimit | None:
        """The limit that holds for the client; None where there is none."""
        limits = self._limits
        by_user = user, _ABSENT
        if client_id:
            both = user, client_id
            for key in (both, (user, None)):
                if key in limits:
                    return FoundLimit(both, limits[key])
            if by_user in limits:
                return FoundLimit(by_user, limits[by_user])
            for default in ((None, client_id), (None, None)):
                if default in limits:
                    return FoundLimit(both, limits[default])
        for of_users in (by_user, (None, _ABSENT)):
            if of_users in limits:
                return FoundLimit(by_user, limits[of_users])
        if client_id:
            for of_clients in ((_ABSENT, client_id), (_ABSENT, None)):
                if of_clients in limits:
                    return FoundLimit((_ABSENT, client_id), limits[of_clients])
        return None
