"""Time-outs of a member of the quorum, under the names of `controller.quorum.*.ms` (`QuorumConfig`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time-outs in milliseconds; the defaults are Kafka's."""

    election_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_ms: int = 2000
    request_ms: int = 2000
    retry_backoff_ms: int = 20
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 500
    """These two have no name in the configuration, as in Kafka."""

    @property
    def check_quorum_ms(self) -> int:
        """A leader that a majority did not fetch from for so long resigns; longer than what makes them stand."""
        return self.fetch_ms * 3 // 2

    @property
    def begin_quorum_epoch_ms(self) -> int:
        """A leader reminds those who do not fetch that it leads, before they stand for election."""
        return self.fetch_ms // 2


KAFKA_TIMEOUTS = Timeouts()
