"""The transaction coordinator of a node has `pykbroker.transactions` in the partitions of `__transaction_state` it
leads.

What has nothing to do with transactions is in `coordinator_driver`. Kafka's counterparts are `TransactionCoordinator`
and `TransactionStateManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.features import TRANSACTION_VERSION, feature_level
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.replication.partition import Partition
from pykbroker.state_machine import CoordinatorContext, Result
from pykbroker.transactions.config import TransactionConfig
from pykbroker.transactions.effects import WriteMarkers
from pykbroker.transactions.records import TransactionRecord, decode_record
from pykbroker.transactions.requests import MarkersWritten

from ..runtime.clock import Clock
from ..runtime.threads import Threads
from ..runtime.time_scopes import BY_THE_CLOCK, TimeScopes
from .coordinator_driver import CoordinatorDriver, Replicas
from .coordinator_log import record_room_bytes
from .led_shard import CoordinatorState, LedShard
from .transaction_markers import TransactionMarkers

if TYPE_CHECKING:
    from pykbroker.transactions.shard import TransactionRequest, TransactionShard  # noqa: F401 - the class's base names it
    from pykbroker.transactions.transaction import TransactionState

TRANSACTION_STATE = "__transaction_state"

_MARKERS_POLL_S = 0.01
_LOOKED_AT_ONCE = 1000

_OWN_CONTEXT = CoordinatorContext(api_version=0)
"""Of what this node tells its coordinator itself."""


class TransactionCoordinator(CoordinatorDriver["TransactionShard", "TransactionRequest", CoordinatorContext]):
    """The transaction coordinator is to be subscribed to `__transaction_state` at the replica manager.

    take_producer_id: gives a new one, or None where there is none now.
    """

    topic = TRANSACTION_STATE

    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        markers: TransactionMarkers,
        *,
        take_producer_id: Callable[[], int | None],
        image: Callable[[], MetadataImage],
        clock: Clock,
        threads: Threads,
        time: TimeScopes = BY_THE_CLOCK,
    ) -> None:
        timeout_ms = config.int("request.timeout.ms")
        super().__init__(replicas, image=image, clock=clock, threads=threads, commit_timeout_ms=timeout_ms)
        self._broker_config = config
        self._config = replace(
            transaction_config(config), reckon_timeouts=time.transactions, reckon_unused=time.producers
        )
        self._markers = markers
        self._take_producer_id = take_producer_id

    def refusal(self, request: InitProducerIdRequest) -> ErrorCode | None:
        """The error of a request that no coordinator would serve, whichever there is."""
        from pykbroker.transactions.init_producer_id import refusal

        return refusal(request, self._config)

    def new_shard(self, partition: Partition) -> TransactionShard:
        from pykbroker.transactions.shard import TransactionShard  # a broker without transactions needs none of it

        room = record_room_bytes(partition.log.config.max_message_bytes)
        return TransactionShard(
            replace(self._config, max_record_bytes=room),
            coordinator_epoch=partition.leader_epoch,
            transaction_version=lambda: feature_level(self._image(), TRANSACTION_VERSION),
            take_producer_id=self._take_producer_id,
        )

    def decode_record(self, key: bytes | None, value: bytes | None) -> TransactionRecord:
        return decode_record(key, value)

    def describe(self, shard: TransactionShard) -> str:
        return f"{len(shard.transactions)} transactional ids" if shard.transactions else ""

    def new_topic(self, most_replicas: int) -> CreatableTopic:
        config = self._broker_config
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.int("transaction.state.log.min.isr")),
            "segment.bytes": str(config.int("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
        return CreatableTopic(
            name=TRANSACTION_STATE,
            num_partitions=config.int("transaction.state.log.num.partitions"),
            replication_factor=min(config.int("transaction.state.log.replication.factor"), most_replicas),
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )

    def level_of(self, result: Result[TransactionRecord], *, is_history: bool) -> int:
        """Return the level: what producers ask for is daily business; what time does to them is told."""
        return logging.DEBUG if result.completed else logging.INFO

    def carry_out(self, led: LedShard[TransactionShard], effect: object) -> None:
        assert isinstance(effect, WriteMarkers)
        self._markers.write(
            effect, is_wanted=lambda: led.state is CoordinatorState.ACTIVE, written=partial(self._markers_written, led)
        )

    async def look_at_timeouts(self) -> None:
        """Look at once for transactions that take too long, and for ids that nobody uses, and return when the former
        are aborted, with all their markers, and the latter forgotten.
        """
        from pykbroker.transactions.transaction import TransactionState

        await self.look_now()
        waiting: list[str] = []
        for led in self._active_shards():
            ids = iter(list(led.shard.transactions))
            while some := list(islice(ids, _LOOKED_AT_ONCE)):
                waiting += self._unfinished(some)
                await trio.lowlevel.checkpoint()
        while waiting := self._unfinished(waiting):
            await trio.sleep(_MARKERS_POLL_S)
            if any(self._state_of(each) is TransactionState.ONGOING for each in waiting):
                await self.look_now()  # it lacked a producer id

    def _unfinished(self, transactional_ids: Iterable[str]) -> list[str]:
        """Return those whose time is over and that are not decided, or whose markers are not all written."""
        now_ms = self._clock.now_ms()
        shards = [(each, self._shard_of(each)) for each in transactional_ids]
        return [each for each, shard in shards if shard is not None and shard.is_unfinished(each, now_ms)]

    def _state_of(self, transactional_id: str) -> TransactionState | None:
        shard = self._shard_of(transactional_id)
        transaction = None if shard is None else shard.transactions.get(transactional_id)
        return None if transaction is None else transaction.state

    def _shard_of(self, transactional_id: str) -> TransactionShard | None:
        index = self.partition_for(transactional_id)
        return None if index is None else self.shard(index)

    def _markers_written(self, led: LedShard[TransactionShard], written: MarkersWritten) -> None:
        self.tell(led, written, _OWN_CONTEXT)


def transaction_config(config: BrokerConfig) -> TransactionConfig:
    return TransactionConfig(
        max_timeout_ms=config.int("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=config.int("transactional.id.expiration.ms"),
        abort_timed_out_interval_ms=config.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        remove_expired_interval_ms=config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        two_phase_commit_enabled=config.bool("transaction.two.phase.commit.enable"),
    )
