"""The voters as of every place in the log (KIP-853, Kafka's `VoterSetHistory`).

A member goes by the latest set that is in its log, committed or not; truncation takes it back. Until the log has one,
the configured set counts. As `epochs` it is ahead of the disk.
"""

from __future__ import annotations

from pykbroker.protocol.messages.control_records import KRaftVersionRecord, VotersRecord
from pykbroker.protocol.schema import Message

from .voters import ReplicaKey, VoterSet

BOOTSTRAP_OFFSET = -1
"""Of what the snapshot says that a formatted directory begins with, which covers no record."""


class VoterSetHistory:
    """The voter sets and levels of `kraft.version` that the log gave, by offset.

    configured: of `controller.quorum.voters`; empty for a quorum that has its voters in the log alone.
    """

    def __init__(self, configured: VoterSet, listener_name: str) -> None:
        self._configured = configured
        self._listener_name = listener_name
        self._sets: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []

    @property
    def voters(self) -> VoterSet:
        return self._sets[-1][1] if self._sets else self._configured

    @property
    def previous_voters(self) -> VoterSet | None:
        """Those before the latest change, as far as the log still tells."""
        if len(self._sets) > 1:
            return self._sets[-2][1]
        return self._configured if self._sets else None

    def has_removed(self, key: ReplicaKey) -> bool:
        """Tell whether the replica was a voter, as far as the log still tells, and is none now."""
        had = any(key == each.key for _, voters in self._sets[:-1] for each in voters)
        return had and not any(key == each.key for each in self.voters)

    @property
    def voters_offset(self) -> int | None:
        """The offset of the record that gave the voters; None where the configuration did."""
        return self._sets[-1][0] if self._sets else None

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1] if self._versions else 0

    def note(self, offset: int, message: Message) -> None:
        """The next control record of the log. Raises InvalidVoters."""
        if isinstance(message, KRaftVersionRecord):
            self._versions.append((offset, message.kraft_version))
        elif isinstance(message, VotersRecord):
            self._sets.append((offset, VoterSet.from_record(message, self._listener_name)))

    def ensure_readable(self, message: Message) -> None:
        """Raises InvalidVoters where `note` would."""
        if isinstance(message, VotersRecord):
            VoterSet.from_record(message, self._listener_name)

    def truncate(self, end_offset: int) -> None:
        """Forget what the records at that offset and behind it gave."""
        while self._sets and self._sets[-1][0] >= end_offset:
            self._sets.pop()
        while self._versions and self._versions[-1][0] >= end_offset:
            self._versions.pop()

    def clear(self) -> None:
        self._sets.clear()
        self._versions.clear()
