"""A producer of transactions, as old clients work (partitions are added first) and as new ones do (KIP-890)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.history.operations import FAIL, INFO, OK, Producer, Value
from tests.history.recorder import Recording

from .partitions import batch_of, produce
from .sizes import LATEST
from .stage import COPY, ORDERS, RETRIABLE, WITHOUT_EFFECT, Gone, Lost, Stage, Wire, topic_of

_MOST_ATTEMPTS = 8
_LONGEST_PAUSE_MS = 200

_FATAL = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.NETWORK_EXCEPTION,
    )
)


class Fenced(Exception):
    """This incarnation is over; another one must begin with InitProducerId."""


class TransactionalClient:
    """One process. is_new: it leaves adding of partitions to the broker, and has a new epoch in each transaction."""

    def __init__(self, stage: Stage, transactional_id: str, *, is_new: bool, timeout_ms: int) -> None:
        self.stage = stage
        self.proc = stage.recorder.new_process()
        self.wire = Wire(stage, transactional_id)
        self._transactional_id = transactional_id
        self._is_new = is_new
        self._timeout_ms = timeout_ms
        self._producer = Producer(transactional_id, -1, -1)
        self._sequences: Counter[str] = Counter()
        self._added: set[str] = set()

    async def init(self) -> None:
        """Raises Gone where all is quiet before there is an answer."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        while True:
            recording = self.stage.recorder.invoke(self.proc, "init")
            try:
                response = await self.wire.ask(request, 4)
            except Lost:
                recording.info()
            else:
                code = ErrorCode(response.error_code)
                if code is ErrorCode.NONE:
                    self._is_given(response.producer_id, response.producer_epoch)
                    recording.note(producer=self._producer)
                    recording.ok()
                    return
                recording.info()
                assert code in RETRIABLE, code
            if self.stage.chance(0.1):
                raise Gone
            await self.stage.pause(_LONGEST_PAUSE_MS)

    def _is_given(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != self._producer[1:]:
            self._producer = Producer(self._transactional_id, producer_id, epoch)
            self._sequences.clear()

    def begin(self) -> Recording:
        self._added.clear()
        recording = self.stage.recorder.invoke(self.proc, "txn")
        recording.note(producer=self._producer)
        return recording

    # Within a transaction: Fenced where it cannot go on

    async def send(self, recording: Recording, key: str, values: Sequence[Value]) -> None:
        if not self._is_new and key not in self._added:
            await self._until_done(lambda: self._add_partition(key))
            self._added.add(key)
        numbers = [recording.sending(key, value) for value in values]
        sequence = self._sequences[key]
        each = 1 if key == COPY else self.stage.new_records_each(key)
        self._sequences[key] += len(values) * each
        batch = batch_of(
            values,
            records_each=each,
            compression=self.stage.sizes.compression,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )

        async def attempt() -> ErrorCode:
            version = 12 if self._is_new else 11
            code, offset = await produce(
                self.wire,
                key,
                batch,
                transactional_id=self._transactional_id,
                version=version,
                blocks_s=self.stage.sizes.blocks_s,
            )
            if code is ErrorCode.NONE:
                for at, number in enumerate(numbers):
                    recording.sent(number, offset + at * each)
            return ErrorCode.NONE if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER else code

        await self._until_done(attempt)

    async def _add_partition(self, key: str) -> ErrorCode:
        topic, index = topic_of(key)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=self._producer.producer_id,
            v3_and_below_producer_epoch=self._producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        response = await self.wire.ask(request, 3)
        added = response.results_by_topic_v3_and_below[0].results_by_partition[0]
        return ErrorCode(added.partition_error_code)

    async def commit_offset(self, recording: Recording, group: str, key: str, offset: int) -> None:
        recording.commits(group, {key: offset})
        if not self._is_new and group not in self._added:
            await self._until_done(lambda: self._add_offsets(group))
            self._added.add(group)
        topic, index = topic_of(key)
        partition = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=group,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )

        async def attempt() -> ErrorCode:
            response = await self.wire.ask(request, 5 if self._is_new else 3)
            return ErrorCode(response.topics[0].partitions[0].error_code)

        await self._until_done(attempt)

    async def _add_offsets(self, group: str) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            group_id=group,
        )
        return ErrorCode((await self.wire.ask(request, 3)).error_code)

    async def _until_done(self, attempt: Callable[[], Awaitable[ErrorCode]]) -> None:
        for _ in range(_MOST_ATTEMPTS):
            try:
                code = await attempt()
            except Lost:
                code = ErrorCode.REQUEST_TIMED_OUT
            if code is ErrorCode.NONE:
                return
            if code not in RETRIABLE:
                assert code in _FATAL, code
                raise Fenced
            await self.stage.pause(_LONGEST_PAUSE_MS)
        raise Fenced

    # The end

    async def end(self, recording: Recording, *, is_commit: bool) -> None:
        """Ends the recording too. Raises Fenced where it is not known that the transaction ended as it was to."""
        if is_commit:
            recording.decided()
        outcome = await self._end(recording, is_commit=is_commit)
        recording.ended(outcome if is_commit else FAIL)
        if outcome != OK:
            raise Fenced

    async def _end(self, recording: Recording, *, is_commit: bool) -> str:
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            committed=is_commit,
        )
        is_certain = True
        for _ in range(_MOST_ATTEMPTS):
            try:
                response = await self.wire.ask(request, 5 if self._is_new else 4)
            except Lost:
                is_certain = False
                if self.stage.chance(0.4):
                    return INFO  # the client dies together with the broker
            else:
                code = ErrorCode(response.error_code)
                if code is ErrorCode.NONE:
                    self._has_ended(recording, response)
                    return OK
                if code not in RETRIABLE:
                    assert code in _FATAL, code
                    return FAIL if is_certain else INFO
                is_certain = is_certain and code in WITHOUT_EFFECT
            await self.stage.pause(_LONGEST_PAUSE_MS)
        return INFO

    def _has_ended(self, recording: Recording, response: Any) -> None:
        if self._is_new:
            self._is_given(response.producer_id, response.producer_epoch)
            recording.note(next_producer=self._producer)


async def transact(stage: Stage, transactional_id: str) -> None:
    """Incarnation after incarnation of one transactional id. Others may have the same: they fence each other."""
    while not stage.is_quiet:
        client = TransactionalClient(
            stage, transactional_id, is_new=stage.rng.random() < 0.5, timeout_ms=stage.rng.choice((1_000, 3_000))
        )
        try:
            await client.init()
            while not stage.is_quiet:
                await stage.pause(60)
                await _transaction(client)
        except (Fenced, Gone):
            await stage.pause(400)
        finally:
            client.wire.cut()


async def _transaction(client: TransactionalClient) -> None:
    """Raises Fenced, or Gone when the client dies in the midst of it."""
    stage = client.stage
    recording = client.begin()
    try:
        for _ in range(stage.rng.randint(1, 3)):
            await stage.pause(30)
            if stage.chance(0.03) or (stage.is_quiet and stage.rng.random() < 0.5):
                recording.info()
                raise Gone
            key = stage.rng.choice([*ORDERS, *stage.keys_of(LATEST)])
            values = [stage.new_value_for(key) for _ in range(stage.rng.randint(1, 2))]
            await client.send(recording, key, values)
    except Fenced:
        recording.fail()
        raise
    await client.end(recording, is_commit=stage.rng.random() < 0.75)
