"""The one shape of the group coordinator and the controller: `handle` a request, `replay` a record.

Groups, transactions and the controller have this shape; none of them waits or touches a file or a socket:

- `handle(request, token, now_ms) -> Result`: records and answers, of this request or of one that has waited.
- `replay(record)`: a record of the log changes the state.
- `next_deadline_ms()`, `expire(now_ms) -> Result`: what falls due with time.

A driver in `pykbroker.server` appends the records of a `Result` to the machine's internal topic, and sends the answers
once the records are committed. The controller's driver replays what it has appended; a coordinator's shard has applied
its own records already, and is replayed only those that are read back from the log. The model is Kafka's
`CoordinatorResult` and `ControllerResult`. Raft has another shape, etcd's: `step`, `ready`, `advance` (`raft.node`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, NewType, TypeVar

Token = NewType("Token", int)
"""Stands for one request whose answer is still owed; chosen by the driver, opaque to the machine."""

RecordT = TypeVar("RecordT")


class BadRecord(Exception):
    """The bytes are no record of the machine's, or the record makes no sense to it; the text says why."""


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer that is due once the records of the same `Result` are committed."""

    token: Token
    response: object


@dataclass(frozen=True, slots=True)
class Result(Generic[RecordT]):
    """The outcome of one step of a state machine.

    records: to append in this order, as one atomic batch; empty where nothing durable changed.
    completed: answers to send after the records are committed, this request's own among them unless it is parked.
    cause: which request, timer or record brought it about, in words an operator understands.
    effects: what else is to be done once the records are committed, before the answers go out; the machine's own
        types, carried out by whoever runs the driver.
    producer: id and epoch of the transactional producer whose records these are, where they count only once its
        transaction ends; the batch carries them.
    is_unfinished: the step did a part of what there is to do, and is to be made again, when others have had their turn.
    prepared: batches of records that were encoded beside the event loop, to append in front of `records`.
    """

    records: Sequence[RecordT] = ()
    completed: Sequence[Completion] = field(default=())
    cause: str = ""
    effects: Sequence[object] = ()
    producer: tuple[int, int] | None = None
    is_unfinished: bool = False
    prepared: Sequence[bytes] = ()
