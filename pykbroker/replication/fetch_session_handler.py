"""The asking side of a fetch session (KIP-227): Kafka's `FetchSessionHandler`. Which partitions are in it is kept by
`follower`; here is only who counts, and when to begin anew.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode

from .fetch_session import INITIAL_EPOCH, INVALID_SESSION_ID, next_epoch


class FetchSessionHandler:
    """`id` and `epoch` go into the next request; while `is_full`, that one names every partition.

    is_refused: there was no room for a session at the last answer.
    """

    def __init__(self) -> None:
        self.is_refused = False
        self.id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH

    @property
    def is_full(self) -> bool:
        return self.epoch == INITIAL_EPOCH

    def answered(self, error_code: int, session_id: int) -> bool:
        """Return whether the answer's partitions count: a session that is refused has to begin anew."""
        if error_code:
            self.broken()
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.id = INVALID_SESSION_ID
            return False
        self.is_refused = session_id == INVALID_SESSION_ID
        if session_id == INVALID_SESSION_ID:
            # There was no room for one, or it was closed.
            self.id, self.epoch = INVALID_SESSION_ID, INITIAL_EPOCH
        elif self.is_full:
            self.id, self.epoch = session_id, next_epoch(INITIAL_EPOCH)
        else:
            self.epoch = next_epoch(self.epoch)
        return True

    def broken(self) -> None:
        """The last request may not have arrived: the next one closes the session and opens another."""
        self.epoch = INITIAL_EPOCH
