"""One step of a group coordinator with what it gathers, and the request that travels with it.

A `Step` is one `handle` or `expire`: rules append records to it, answer tokens and say why; it becomes a `Result`. A
request that is answered at once needs the context and the step; a request that may wait, or be answered between
others, travels as a `Call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pykbroker.state_machine import Cause, CauseKind, Completion, CoordinatorContext, Result, Token

from .records import CoordinatorRecord


@dataclass(slots=True)
class Step:
    """One `handle` or `expire`, with what it has brought about so far.

    now_ms: monotonic, for deadlines. timestamp_ms: wall clock, for what is written. producer: id and epoch of the
    producer in whose transaction the records are. is_unfinished: the step did a part of the work and has to be made
    again. prepared: batches that are encoded already; they go in front of the records. may_describe: whether the client
    whose request it is may describe a topic; None where it may describe all of them. effects: what the driver does when
    the records are committed.
    """

    now_ms: int
    timestamp_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list)
    completed: list[Completion] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    producer: tuple[int, int] | None = None
    is_unfinished: bool = False
    prepared: Sequence[bytes] = ()
    may_describe: Callable[[str], bool] | None = None
    effects: list[object] = field(default_factory=list)

    def append(self, record: CoordinatorRecord) -> None:
        self.records.append(record)

    def answer(self, token: Token, response: object) -> None:
        self.completed.append(Completion(token, response))

    def because(self, group_id: str, words: str, kind: CauseKind = CauseKind.CHANGE) -> None:
        """Say what has become of a group, and why."""
        self.causes.append(Cause(group_id, words, kind))

    def result(self) -> Result[CoordinatorRecord]:
        causes = self.causes
        if len(causes) == 1:  # as each commit of offsets has
            cause = f"group {causes[0].key}: {causes[0].words}"
        else:
            cause = "; ".join([f"group {key}: {words}" for key, words, _ in causes])
        return Result(
            tuple(self.records),
            tuple(self.completed),
            cause,
            self.effects,
            self.producer,
            self.is_unfinished,
            self.prepared,
            causes,
        )


@dataclass(frozen=True, slots=True)
class Call:
    """A request on its way through the rules: the token that its answer goes to, who sent it, and the step it is in."""

    token: Token
    context: CoordinatorContext
    step: Step

    def answer(self, response: object) -> None:
        self.step.answer(self.token, response)
