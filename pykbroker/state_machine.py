"""The one shape of the group coordinator and the controller: `handle` a request, `replay` a record.

Neither waits nor touches a file or a socket. A driver in `pykbroker.server` appends the records of a `Result` to the
machine's internal topic, replays them, and sends the answers once the records are committed. The model is Kafka's
`CoordinatorResult` and `ControllerResult`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, NewType, TypeVar

Token = NewType("Token", int)
"""Stands for one request whose answer is still owed; chosen by the driver, opaque to the machine."""

RecordT = TypeVar("RecordT")


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer that is due once the records of the same `Result` are committed."""

    token: Token
    response: object


@dataclass(frozen=True, slots=True)
class Result(Generic[RecordT]):
    """What one step of a state machine brought about.

    records: to append in this order, as one atomic batch; empty where nothing durable changed.
    completed: answers to send after the records are committed, this request's own among them unless it is parked.
    cause: which request, timer or record brought it about, in words an operator understands.
    """

    records: Sequence[RecordT] = ()
    completed: Sequence[Completion] = field(default=())
    cause: str = ""
