"""An idempotent producer with several requests in flight on one connection, each for many partitions.

What failed is sent again as Kafka's producer does it: a batch that was sent before goes when it is the first of its
partition that is not acknowledged, and one that came out of order behind another is simply sent again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import trio

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import Message
from pykbroker.server.network.transport import Address
from tests.history.recorder import Recording
from tests.server.serving import Client

from .partitions import Produced, batch_of, produce_request, produced
from .producing import init_producer
from .stage import RETRIABLE, Gone, Lost, Stage, Wire

_VERSION = 9
_MOST_ATTEMPTS = 8
_MOST_UNACKNOWLEDGED = 5
"""Of one partition's batches."""
_KNOWN_BATCHES = 5
"""A producer's last ones, whose repetition a partition notices: `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`."""
_MOST_PARTITIONS = 12
"""Of those that get a batch at once."""


class Pipeline:
    """One connection, whose requests do not wait for each other's answers; these come in the same order."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sending, self._receiving = trio.StrictFIFOLock(), trio.StrictFIFOLock()
        self.in_flight = 0
        self.is_lost = False

    async def ask(self, request: Message, version: int) -> Any:
        """Raises Lost; so do all others that wait, since nobody knows whose the next answer is."""
        self.in_flight += 1
        try:
            async with self._sending:
                await self._client.send(request, version)
                correlation_id = self._client.correlation_id
            async with self._receiving:
                answered_id, response = await self._client.receive(ApiKey.PRODUCE, version)
                assert answered_id == correlation_id, "answers do not come in the order of their requests"
                return response
        except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.cut()
            raise Lost from error
        except trio.Cancelled:
            self.cut()
            raise
        finally:
            self.in_flight -= 1

    def cut(self) -> None:
        self.is_lost = True
        self._client.transport.reset()  # type: ignore[attr-defined]


@dataclass(eq=False, slots=True)
class _Batch:
    """records_each: of each value. overtaken_by: how many later ones were acknowledged before."""

    key: str
    records: bytes
    recording: Recording
    values: list[int]
    records_each: int
    sequence: int
    attempts: int = 0
    is_under_way: bool = False
    overtaken_by: int = 0


async def produce_pipelined(stage: Stage, keys: Sequence[str]) -> None:
    while not stage.is_quiet:
        try:
            await _Producer(stage, keys).run()
        except Gone:
            await stage.pause(50)


class _Producer:
    """One producer id. Each batch is an operation of its own, and so of a process of its own."""

    def __init__(self, stage: Stage, keys: Sequence[str]) -> None:
        self._stage = stage
        self._keys = keys
        self._wire = Wire(stage, "pipelining producer")
        self._producer_id = -1
        self._sequences: Counter[str] = Counter()
        self._unacknowledged: defaultdict[str, list[_Batch]] = defaultdict(list)
        self._pipelines: dict[Address, Pipeline] = {}
        self._has_given_up = False

    async def run(self) -> None:
        """Raises Gone."""
        stage = self._stage
        self._producer_id = await init_producer(stage, self._wire)
        async with trio.open_nursery() as nursery:
            while not self._has_given_up and not (stage.is_quiet and not any(self._unacknowledged.values())):
                if not stage.is_quiet:
                    self._make_batches()
                await self._send_what_is_ready(nursery)
                await stage.pause(60)
            nursery.cancel_scope.cancel()
        for batches in self._unacknowledged.values():
            for batch in batches:
                batch.recording.info()
        self._wire.cut()
        for pipeline in self._pipelines.values():
            pipeline.cut()
        if self._has_given_up:
            raise Gone

    def _make_batches(self) -> None:
        rng = self._stage.rng
        for key in rng.sample(self._keys, rng.randint(1, min(len(self._keys), _MOST_PARTITIONS))):
            if len(self._unacknowledged[key]) < _MOST_UNACKNOWLEDGED:
                self._unacknowledged[key].append(self._new_batch(key))

    def _new_batch(self, key: str) -> _Batch:
        stage = self._stage
        recording = stage.recorder.invoke(stage.recorder.new_process(), "send")
        values = [stage.new_value_for(key) for _ in range(stage.rng.randint(1, 3))]
        each, sequence = stage.new_records_each(key), self._sequences[key]
        self._sequences[key] += len(values) * each
        records = batch_of(
            values,
            records_each=each,
            compression=stage.sizes.compression,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        recording.note(bytes=len(records), sequence=[self._producer_id, 0, sequence])
        return _Batch(key, records, recording, [recording.sending(key, value) for value in values], each, sequence)

    # Sending

    async def _send_what_is_ready(self, nursery: trio.Nursery) -> None:
        """One request at most to each broker."""
        try:
            requests = await self._wire.attempt(self._ready)
        except Lost:
            return
        for address, batches in requests.items():
            try:
                pipeline = await self._wire.attempt(lambda at=address: self._pipeline(at))  # type: ignore[misc]
            except Lost:
                continue
            if pipeline.in_flight < self._stage.sizes.in_flight:
                for batch in batches:
                    batch.is_under_way = True
                nursery.start_soon(self._request, pipeline, batches)

    async def _ready(self) -> dict[Address, list[_Batch]]:
        """By the leaders' addresses, one batch of a partition at most."""
        found: dict[Address, list[_Batch]] = {}
        for key, batches in self._unacknowledged.items():
            batch = next((each for each in batches if not each.is_under_way), None)
            if batch is not None and (batch.attempts == 0 or batch is batches[0]):
                address, _ = await self._stage.leader_of(self._wire, key)
                found.setdefault(address, []).append(batch)
        return found

    async def _pipeline(self, address: Address) -> Pipeline:
        pipeline = self._pipelines.get(address)
        if pipeline is None or pipeline.is_lost:
            client = Client(await self._stage.connect(address))
            self._stage.opened(client.transport)
            pipeline = self._pipelines[address] = Pipeline(client)
        return pipeline

    async def _request(self, pipeline: Pipeline, batches: Sequence[_Batch]) -> None:
        blocks_s = self._stage.sizes.blocks_s
        request = produce_request({batch.key: batch.records for batch in batches}, blocks_s=blocks_s)
        answers: dict[str, Produced] = {}
        with trio.move_on_after(blocks_s + 1):
            try:
                answers = produced(await pipeline.ask(request, _VERSION))
            except Lost:
                pass
        for batch in batches:
            batch.is_under_way = False
            self._answered(batch, answers.get(batch.key))
        if any(answer.error_code for answer in answers.values()) or not answers:
            self._stage.forget_leaders()

    def _answered(self, batch: _Batch, answer: Produced | None) -> None:
        unacknowledged = self._unacknowledged[batch.key]
        code = ErrorCode.REQUEST_TIMED_OUT if answer is None else answer.error_code
        if answer is not None and code is ErrorCode.NONE:
            for at, number in enumerate(batch.values):
                batch.recording.sent(number, answer.base_offset + at * batch.records_each)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            batch.recording.ok()
            for earlier in unacknowledged[: unacknowledged.index(batch)]:
                earlier.overtaken_by += 1
            unacknowledged.remove(batch)
            return
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._is_out_of_order(batch, is_behind_another=batch is not unacknowledged[0])
        else:
            assert code in RETRIABLE, code
        batch.attempts += 1
        self._has_given_up = self._has_given_up or batch.attempts >= _MOST_ATTEMPTS

    def _is_out_of_order(self, batch: _Batch, *, is_behind_another: bool) -> None:
        """Two kinds of batches come too late for ever. A partition that knows nothing of a producer takes any sequence
        first (KAFKA-14312): where the first batch of all finds no in-sync replicas, and the next one does, the first
        finds no place. And what was appended already is known as a duplicate as long as it is among the last batches
        of its producer; its answer may be lost while a new leader takes the later ones. The answers about these may
        still be to come.
        """
        if not is_behind_another:
            later = [each for each in self._unacknowledged[batch.key] if each is not batch]
            overtaking = batch.overtaken_by + sum(each.is_under_way or each.attempts > 0 for each in later)
            is_too_late = overtaking >= (1 if batch.sequence == 0 else _KNOWN_BATCHES)
            assert is_too_late, f"{batch.key} lacks what was acknowledged before sequence {batch.sequence}"
            self._has_given_up = True
