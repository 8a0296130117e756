"""A follower's log has to lose records before its partition is asked for again (`follower`).

A truncation waits for the disk, and may have to read a segment: whoever carries the follower's requests carries it out
in its own way, a simulation at once and a node in threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pykbroker.storage.files.errors import FileError
from pykbroker.storage.log.truncation import Truncation

from .followed_partition import FollowedPartition, FollowingState


@dataclass(frozen=True, slots=True, eq=False)
class DueTruncation:
    """A truncation that is due.

    truncation: None where the log has nothing to lose. resumes: what the follower was about to do, and is again where
    there is no room. then: what follows when it is done.
    """

    followed: FollowedPartition
    truncation: Truncation | None
    resumes: FollowingState
    then: Callable[[], None]

    def run(self) -> FileError | None:
        """Truncate all of it at once. Returns what the disk refused."""
        try:
            if self.truncation is not None:
                self.truncation.run()
        except FileError as failure:
            return failure
        return None
