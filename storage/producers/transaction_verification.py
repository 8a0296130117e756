"""Questions about producers at their transaction coordinator, before the first batch of a transaction is appended
(KIP-890).

A marker that overtakes the coordinator's answer takes the question back: a batch that comes behind it would be part of
no transaction, and would keep readers of committed records from what follows. Kafka's `VerificationStateEntry`.
"""

from __future__ import annotations

from dataclasses import dataclass


class VerificationGuard:
    """The token of one question; nothing but the very same object will do."""

    __slots__ = ()


@dataclass(slots=True)
class VerificationState:
    """The state of one question.

    lowest_sequence: of the batches that wait for the answer; the first to be appended begins there.
    supports_epoch_bump: the producer has a new epoch in each transaction, and counts from 0 in it.
    """

    guard: VerificationGuard
    since_ms: int
    producer_epoch: int
    lowest_sequence: int
    supports_epoch_bump: bool

    def note(self, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool) -> None:
        """Another batch of the same producer waits."""
        self.supports_epoch_bump |= supports_epoch_bump
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
