"""A coordinated shard is what a coordinator's driver asks of the rules and of the records that it drives; Kafka's
`CoordinatorShard`.

`pykbroker.groups` and `pykbroker.transactions` each have a shard of this shape. What `handle` and `expire` change is
applied already when their result is there, and can be taken back where a trial was begun before; what is replayed was
read back from the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from pykbroker.state_machine import Result, Token

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
ContextT_contra = TypeVar("ContextT_contra", contravariant=True)


class EncodableRecord(Protocol):
    """A record can be encoded as a key and a value."""

    def encode(self) -> tuple[bytes, bytes | None]: ...


class LoggedRecord(EncodableRecord, Protocol):
    """A logged record stands in an internal topic."""

    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...


class CoordinatedShard(Protocol[RequestT_contra, ContextT_contra]):
    """A shard has the rules and the state of one partition. now_ms is monotonic, timestamp_ms the wall clock that is
    written down.
    """

    def handle(
        self, request: RequestT_contra, token: Token, now_ms: int, context: ContextT_contra, timestamp_ms: int
    ) -> Result[Any]: ...

    def next_deadline_ms(self) -> int | None: ...

    def expire(self, now_ms: int, timestamp_ms: int) -> Result[Any]: ...

    def look_now(self) -> None:
        """Have the next `expire` begin to look at everything that is looked at now and then."""
        ...

    def begin_trial(self) -> None:
        """Begin a trial: what changes until `end_trial` may be taken back."""
        ...

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial. is_kept: whether the records of the step are in the log; else all is as it was."""
        ...

    def replay(self, key: Any, value: Any) -> None:
        """Raises BadRecord."""
        ...

    def replay_pending(self, producer_id: int, key: Any, value: Any) -> None:
        """Replay a record that counts once the producer's transaction is committed. Raises BadRecord."""
        ...

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """End the producer's transaction: what it left pending counts from now on, or never did."""
        ...

    def tidy_up(self) -> bool:
        """Tidy up a part of what the ends of transactions leave, which changes nothing for anybody who asks, and tell
        whether there is more.
        """
        ...

    def prepare_timers(self, now_ms: int) -> Iterator[None]:
        """Gone through when every record is replayed, and nobody asks for anything yet; others have their turn at each
        yield."""
        ...

    def start_timers(self, now_ms: int, timestamp_ms: int) -> Result[Any]:
        """Called behind that, once or until it is not unfinished any more."""
        ...
