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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, NewType, TypeVar

Token = NewType("Token", int)
"""Stands for one request whose answer is still owed; chosen by the driver, opaque to the machine."""

RecordT = TypeVar("RecordT")


class BadRecord(Exception):
    """The bytes are no record of the machine's, or the record makes no sense to it; the text says why."""


class UnknownRecord(BadRecord):
    """A record type or a record version of a later Kafka, or of what is not served here; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorContext:
    """The version of a request to a coordinator, and who sent it (a part of Kafka's `AuthorizableRequestContext`).

    api_version: the version on the wire. In groups some rules depend on it. A coordinator of transactions decides by it
    which of two errors a fenced producer is told, and from EndTxn 5 and AddPartitionsToTxn 4 on that the producer
    follows the second transaction protocol (KIP-890). client_host: `/127.0.0.1`, as Kafka writes it.
    is_loadable: whether Kafka could load all subscriptions of a JoinGroup; None where nobody has looked so far.
    may_describe: whether the client may describe a topic; None where it may describe all of them. prepared: what was
    computed beside the event loop for the request.
    """

    api_version: int
    client_id: str = ""
    client_host: str = ""
    principal: str = ""
    is_loadable: bool | None = None
    may_describe: Callable[[str], bool] | None = None
    prepared: object = None


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer that is due once the records of the same `Result` are committed."""

    token: Token
    response: object


class CauseKind(Enum):
    """The kinds of what a step brought about, as far as somebody asks for them."""

    CHANGE = "change"
    REBALANCE = "rebalance"
    """A group begins to share out its partitions anew."""
    END = "end"
    """The group or transactional id is gone."""


class Cause(NamedTuple):
    """A cause: why a group or a transactional id, `key`, is another one now, in words that an operator understands."""

    key: str
    words: str
    kind: CauseKind = CauseKind.CHANGE


@dataclass(frozen=True, slots=True)
class Result(Generic[RecordT]):
    """The outcome of one step of a state machine.

    records: to append in this order, as one atomic batch; empty where nothing durable changed.
    completed: answers to send after the records are committed, this request's own among them unless it is parked.
    cause: which request, timer or record brought it about, in words an operator understands.
    causes: the same one by one, where a coordinator keeps them for who asks why.
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
    causes: Sequence[Cause] = ()
