"""An idempotent producer: it tries a batch again until it is told what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from tests.history.operations import FAIL, INFO, OK, Value
from tests.history.recorder import Recording

from .partitions import batch_of, produce
from .stage import RETRIABLE, Gone, Lost, Stage, Wire

_MOST_ATTEMPTS = 6


async def produce_idempotently(stage: Stage, keys: Sequence[str]) -> None:
    while not stage.is_quiet:
        try:
            await _Producer(stage).run(keys)
        except Gone:
            await stage.pause(50)


async def init_producer(stage: Stage, wire: Wire) -> int:
    """A producer id. Raises Gone where all is quiet before there is one."""
    while True:
        try:
            request = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
            response = await wire.ask(request, 4)
            if response.error_code == 0:
                return int(response.producer_id)
            assert ErrorCode(response.error_code) in RETRIABLE, ErrorCode(response.error_code)
        except Lost:
            pass
        if stage.is_quiet:
            raise Gone
        await stage.pause(100)


class _Producer:
    """One process, with one producer id."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._proc = stage.recorder.new_process()
        self._wire = Wire(stage, f"producer-{self._proc}")
        self._producer_id = -1
        self._sequences: Counter[str] = Counter()

    async def run(self, keys: Sequence[str]) -> None:
        """Raises Gone."""
        stage = self._stage
        self._producer_id = await init_producer(stage, self._wire)
        while not stage.is_quiet:
            await stage.pause(60)
            recording = stage.recorder.invoke(self._proc, "send")
            key = stage.rng.choice(keys)
            values = [stage.new_value_for(key) for _ in range(stage.rng.randint(1, 3))]
            outcome = await self._send(recording, key, values)
            recording.ended(outcome)
            if outcome != OK:
                raise Gone

    async def _send(self, recording: Recording, key: str, values: list[Value]) -> str:
        numbers = [recording.sending(key, value) for value in values]
        sequence = self._sequences[key]
        each = self._stage.new_records_each(key)
        self._sequences[key] += len(values) * each
        batch = batch_of(
            values,
            records_each=each,
            compression=self._stage.sizes.compression,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        recording.note(bytes=len(batch), sequence=[self._producer_id, 0, sequence])
        is_certain = True
        for _ in range(_MOST_ATTEMPTS):
            try:
                code, offset = await produce(self._wire, key, batch, blocks_s=self._stage.sizes.blocks_s)
            except Lost:
                is_certain = False
            else:
                if code is ErrorCode.NONE:
                    for number in numbers:
                        recording.sent(number, offset + number * each)
                    return OK
                if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    return OK
                if code not in RETRIABLE:
                    return FAIL if is_certain else INFO
                is_certain = False
            await self._stage.pause(300)
        return INFO
