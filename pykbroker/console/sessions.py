"""The sessions of a console: who is logged in, in this process's memory alone, and the connections of each.

A session is found by a token of 256 random bits in a cookie, of which a hash is kept. A session ends when its user logs
out, after half an hour without a request, after twelve hours, or when there is no room for another one. Every few
minutes the broker is asked anew: a session of a user that is deleted, or has another password, ends.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import AuthenticationRefused, ClientError

MOST_SESSIONS: Final = 64
IDLE_S: Final = 30 * 60.0
LONGEST_S: Final = 12 * 3600.0
ASK_EVERY_S: Final = 5 * 60.0
_ASK_LIMIT_S: Final = 10.0
_LOOK_EVERY_S: Final = 60.0


@dataclass(eq=False, slots=True)
class Session:
    """One user's session. user: None where the broker has none. new_cluster: makes one with their credentials."""

    user: str | None
    cluster: Cluster
    new_cluster: Callable[[], Cluster]
    began_s: float
    used_s: float
    asked_s: float
    """When the broker last took the user's credentials, or was asked."""
    streams: int = 0
    """Live streams that are open."""
    over: trio.Event = field(default_factory=trio.Event)
    """Set when the session has ended; its live streams end with it."""

    def has_expired(self, now_s: float) -> bool:
        return now_s >= self.began_s + LONGEST_S or (not self.streams and now_s >= self.used_s + IDLE_S)


class Sessions:
    """All sessions of a console. now_s: a clock that never goes back."""

    def __init__(self, now_s: Callable[[], float] = trio.current_time) -> None:
        self._now_s = now_s
        self._by_hash: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    async def open(self, user: str | None, cluster: Cluster, new_cluster: Callable[[], Cluster]) -> str:
        """Open a session, and return its token. Where there is no room, the one that is unused for longest goes."""
        await self.end_expired()
        if len(self._by_hash) >= MOST_SESSIONS:
            await self._end(min(self._by_hash, key=lambda key: self._by_hash[key].used_s))
        token = secrets.token_urlsafe(32)
        now_s = self._now_s()
        self._by_hash[_hash(token)] = Session(user, cluster, new_cluster, now_s, now_s, now_s)
        return token

    def find(self, token: str) -> Session | None:
        """Return the session with that token, which is in use from now on."""
        session = self._by_hash.get(_hash(token))
        now_s = self._now_s()
        if session is None or session.has_expired(now_s):
            return None
        session.used_s = now_s
        return session

    async def end(self, token: str) -> None:
        """End the session with that token, if there is one."""
        await self._end(_hash(token))

    async def end_expired(self) -> None:
        now_s = self._now_s()
        for key in [key for key, session in self._by_hash.items() if session.has_expired(now_s)]:
            await self._end(key)

    async def end_refused(self) -> None:
        """Ask the broker anew whether it takes the users, and end the sessions of those that it refuses."""
        for key, session in list(self._by_hash.items()):
            if self._now_s() >= session.asked_s + ASK_EVERY_S:
                session.asked_s = self._now_s()
                if await _is_refused(session):
                    await self._end(key)

    async def run(self) -> None:
        """End what expires or is refused, until cancelled; then end all sessions."""
        try:
            while True:
                await trio.sleep(_LOOK_EVERY_S)
                await self.end_expired()
                await self.end_refused()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                for key in list(self._by_hash):
                    await self._end(key)

    async def _end(self, key: bytes) -> None:
        session = self._by_hash.pop(key, None)
        if session is not None:
            session.over.set()
            await session.cluster.__aexit__(None, None, None)


async def _is_refused(session: Session) -> bool:
    """Tell whether the broker refuses the session's user; a broker that says nothing does not."""
    with trio.move_on_after(_ASK_LIMIT_S):
        try:
            async with session.new_cluster() as cluster:
                await cluster.any_connection()
        except AuthenticationRefused:
            return True
        except ClientError:
            return False
    return False


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
