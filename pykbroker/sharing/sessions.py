"""Share sessions: which partitions a member of a share group fetches from this leader (KIP-932).

A request names what is new and what is gone, and an epoch that goes up by one with each request: 0 begins a session, -1
ends it. The model is Kafka's `ShareSessionCache` with `SharePartitionManager.newContext`. A session belongs to the
connection on which it began, and ends with it. No session gives way to another one: whoever comes when there are
`group.share.max.share.sessions` is refused.

Besides their number there is a bound on the partitions that all sessions name (`MOST_PARTITIONS`), which Kafka does not
have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from pykbroker.protocol.errors import ApiError, ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1

MOST_PARTITIONS: Final = 200_000
"""The partitions of all sessions: some 200 bytes each, as long as its session lasts."""

MOST_PARTITIONS_OF_ONE: Final = 30_000
"""The partitions of one session, which a request may read as a whole."""

_GREATEST_EPOCH: Final = 0x7FFFFFFF


class TopicIdPartition(NamedTuple):
    """A partition, as share sessions name it."""

    topic_id: bytes
    partition: int


class SessionKey(NamedTuple):
    """The member of a share group whose session it is."""

    group_id: str
    member_id: str


def next_epoch(epoch: int) -> int:
    """Return the epoch that comes behind another one: 0 is that of no second request."""
    return 1 if epoch == _GREATEST_EPOCH else epoch + 1


class ShareSession:
    """One session. partitions: in the order in which they are read, each with whether it is told of in any case: as
    long as nothing was said of it, or an error. epoch: that of the next request. owner: the connection.
    """

    __slots__ = ("epoch", "key", "owner", "partitions")

    def __init__(self, key: SessionKey, owner: object, partitions: Iterable[TopicIdPartition]) -> None:
        self.key = key
        self.owner = owner
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = dict.fromkeys(partitions, False)


class SessionContext:
    """The session that one ShareFetch is about. session: None where it ends one. epoch: the request's."""

    __slots__ = ("epoch", "session")

    def __init__(self, session: ShareSession | None, epoch: int) -> None:
        self.session = session
        self.epoch = epoch

    @property
    def partitions(self) -> list[TopicIdPartition]:
        """The partitions to read."""
        return [] if self.session is None else list(self.session.partitions)

    @property
    def is_overtaken(self) -> bool:
        """Tell whether a later request of the session has come meanwhile."""
        return self.session is not None and self.session.epoch != next_epoch(self.epoch)

    def has_to_tell(self, partition: TopicIdPartition, *, has_records: bool, has_error: bool) -> bool:
        """Tell whether the answer names the partition, and note that it does.

        The first answer of a session names all. Later ones name what has records or an error, what is new, and what had
        an error before. Who has sent records is read last the next time.
        """
        session = self.session
        if session is None or self.epoch == INITIAL_EPOCH:
            return True
        is_due = session.partitions.get(partition)
        if is_due is None:  # taken out meanwhile
            return has_records or has_error
        if has_records:
            del session.partitions[partition]
        session.partitions[partition] = has_error
        return has_records or has_error or is_due


class ShareSessions:
    """The share sessions of a node. max_sessions: how many there may be (`group.share.max.share.sessions`)."""

    def __init__(self, max_sessions: Callable[[], int], most_partitions: int = MOST_PARTITIONS) -> None:
        self._max_sessions = max_sessions
        self._most_partitions = most_partitions
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: Counter[str] = Counter()
        self.partitions = 0
        """The partitions of all sessions."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def has_members(self, group_id: str) -> bool:
        """Tell whether a member of the group has a session here."""
        return group_id in self._members

    def for_fetch(
        self,
        key: SessionKey,
        epoch: int,
        named: Collection[TopicIdPartition],
        forgotten: Iterable[TopicIdPartition],
        owner: object,
        *,
        acknowledges: bool,
    ) -> SessionContext:
        """Return what a ShareFetch is about; a session begins, or goes on. acknowledges: it has acknowledgements.

        Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED, and
        INVALID_REQUEST for acknowledgements in a session's first request.
        """
        if epoch == FINAL_EPOCH:
            self._existing(key)
            return SessionContext(None, epoch)
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            self.remove(key)
            return SessionContext(self._begin(key, named, owner), epoch)
        session = self._existing(key, epoch)
        if len(named) > MOST_PARTITIONS_OF_ONE:
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        added = {each for each in named if each not in session.partitions}
        if added and not self._have_room(len(added), len(session.partitions)):
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        before = len(session.partitions)
        session.partitions.update((each, True) for each in named if each in added)
        for each in forgotten:
            session.partitions.pop(each, None)
        self.partitions += len(session.partitions) - before
        session.epoch = next_epoch(epoch)
        return SessionContext(session, epoch)

    def for_acknowledgement(self, key: SessionKey, epoch: int) -> None:
        """A ShareAcknowledge belongs to a session; its epoch is one of it, too. Raises ApiError as above."""
        if epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        if epoch == FINAL_EPOCH:
            self._existing(key)
        else:
            self._existing(key, epoch).epoch = next_epoch(epoch)

    def remove(self, key: SessionKey) -> ShareSession | None:
        """End a session, and return it."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self.partitions -= len(session.partitions)
            self._members[key.group_id] -= 1
            if not self._members[key.group_id]:
                del self._members[key.group_id]
        return session

    def _existing(self, key: SessionKey, epoch: int | None = None) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch is not None and session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return session

    def _begin(self, key: SessionKey, named: Collection[TopicIdPartition], owner: object) -> ShareSession:
        if len(self._sessions) >= self._max_sessions() or not self._have_room(len(named), 0):
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, owner, named)
        self.partitions += len(session.partitions)
        self._members[key.group_id] += 1
        return session

    def _have_room(self, new: int, old: int) -> bool:
        return old + new <= MOST_PARTITIONS_OF_ONE and self.partitions + new <= self._most_partitions
