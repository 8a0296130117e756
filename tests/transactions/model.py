"""A plain model of everything around a transaction coordinator: a log that may lose its end, partitions with producer
state, markers on their way, and producers that know only what they were told.

What must hold is asserted where it could break first: in the partition that gets a record or a marker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.state_machine import Result, Token
from pykbroker.transactions.effects import WriteMarkers
from pykbroker.transactions.records import TransactionRecord, decode_record
from pykbroker.transactions.requests import MarkersWritten
from pykbroker.transactions.shard import TransactionRequest, TransactionShard

from .world import Producer, TransactionWorld

Answered = Callable[[Any], None]


@dataclass(frozen=True)
class FlyingMarker:
    """On its way to a partition."""

    wanted: WriteMarkers
    at: TopicPartition


class CrashingWorld(TransactionWorld):
    """Answers and effects are due when the log is committed up to them; a crash loses what is not.

    flying: markers of this coordinator and of those before.
    """

    def __init__(self, transaction_version: int) -> None:
        super().__init__(transaction_version=transaction_version)
        self.committed = 0
        self.flying: list[FlyingMarker] = []
        self._due: deque[tuple[int, Callable[[], None]]] = deque()
        self._owed: dict[Token, Answered] = {}
        self._tokens = 0
        self._shadow = self._new_shard()
        self._shadowed = 0

    def submit(self, request: TransactionRequest, version: int, answered: Answered) -> Any:
        """The response as it stands now, which the one who asked learns when it is committed."""
        self._tokens += 1
        self._owed[Token(self._tokens)] = answered
        result = self._handle(request, Token(self._tokens), version)
        self._take(result)
        (completion,) = result.completed
        return completion.response

    def _take(self, result: Result[TransactionRecord]) -> None:
        self.log += [record.encode() for record in result.records]
        end = len(self.log)
        for effect in result.effects:
            assert isinstance(effect, WriteMarkers)
            self._due.append((end, lambda effect=effect: self._send(effect)))
        for completion in result.completed:
            answered, response = self._owed.pop(completion.token), completion.response
            self._due.append((end, lambda answered=answered, response=response: answered(response)))

    def _send(self, effect: WriteMarkers) -> None:
        self.flying += [FlyingMarker(effect, at) for at in effect.partitions]

    @property
    def has_due(self) -> bool:
        return bool(self._due)

    def commit(self) -> None:
        """Everything that was appended so far is replicated."""
        self.committed = len(self.log)
        while self._due and self._due[0][0] <= self.committed:
            self._due.popleft()[1]()

    def crash(self, kept: int) -> None:
        """The next coordinator finds what was committed, and so many of the records behind it."""
        self._due.clear()
        self._owed.clear()
        end = min(self.committed + kept, len(self.log))
        self.committed = end
        self.restart(log_end=end)
        self._shadow, self._shadowed = self._new_shard(), 0

    def shadow(self) -> TransactionShard:
        """Of the log only the news are read."""
        for key, value in self.log[self._shadowed :]:
            record = decode_record(key, value)
            self._shadow.replay(record.key, record.value)
        self._shadowed = len(self.log)
        return self._shadow

    def report_written(self, marker: FlyingMarker) -> None:
        """A coordinator hears of its own markers only."""
        if marker.wanted.coordinator_epoch == self.coordinator_epoch:
            wanted = marker.wanted
            written = MarkersWritten(
                transactional_id=wanted.transactional_id,
                producer_id=wanted.producer_id,
                producer_epoch=wanted.producer_epoch,
                partitions=(marker.at,),
            )
            self.submit(written, 0, lambda response: None)


@dataclass(eq=False)
class Instance:
    """One transaction, as its producer sees it.

    asked_to_commit: None as long as its end was not asked for. told: what its producer was answered at last.
    outcomes: of the partitions that have its marker.
    """

    number: int
    writes: set[TopicPartition] = field(default_factory=set)
    asked_to_commit: bool | None = None
    told: bool | None = None
    outcomes: dict[TopicPartition, bool] = field(default_factory=dict)

    def decide(self, at: TopicPartition, is_commit: bool) -> None:
        self.outcomes[at] = is_commit
        assert len(set(self.outcomes.values())) == 1, f"transaction {self.number} is committed in part: {self.outcomes}"
        assert not is_commit or self.asked_to_commit, f"nobody asked to commit transaction {self.number}"
        assert self.told in (None, is_commit), f"the producer of transaction {self.number} was told something else"

    def tell(self, is_commit: bool) -> None:
        self.told = is_commit
        for at, outcome in self.outcomes.items():
            assert outcome == is_commit, f"{at}: told {is_commit} of transaction {self.number}, but it is {outcome}"


class DataPartition:
    """What a log keeps of its transactional producers."""

    def __init__(self, at: TopicPartition) -> None:
        self.at = at
        self.open: dict[int, Instance] = {}
        self._epochs: dict[int, int] = {}
        self._coordinator_epochs: dict[int, int] = {}

    def write(self, producer: Producer, instance: Instance) -> bool:
        """Whether the record is accepted."""
        producer_id, epoch = producer
        if epoch < self._epochs.get(producer_id, -1):
            return False
        self._epochs[producer_id] = epoch
        before = self.open.setdefault(producer_id, instance)
        assert before is instance, f"{self.at}: records of transactions {before.number} and {instance.number} mix"
        instance.writes.add(self.at)
        return True

    def append_marker(self, wanted: WriteMarkers) -> ErrorCode:
        producer_id = wanted.producer_id
        if wanted.coordinator_epoch < self._coordinator_epochs.get(producer_id, -1):
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        epoch = self._epochs.get(producer_id, -1)
        is_next = wanted.producer_epoch > epoch or producer_id not in self.open
        if wanted.producer_epoch < epoch or (wanted.transaction_version >= 2 and not is_next):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self._epochs[producer_id] = wanted.producer_epoch
        self._coordinator_epochs[producer_id] = wanted.coordinator_epoch
        instance = self.open.pop(producer_id, None)
        if instance is not None:
            instance.decide(self.at, wanted.is_commit)
        return ErrorCode.NONE
